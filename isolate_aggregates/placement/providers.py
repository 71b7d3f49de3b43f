# SPDX-License-Identifier: Apache-2.0
"""Changes traits and aggregates of a resource provider that others change too.

Both can only be replaced as a whole, together with the generation at which
they were read; Placement refuses a generation that is not the newest. See
`Update resource provider traits
<https://docs.openstack.org/api-ref/placement/#update-resource-provider-traits>`_
and `Update resource provider aggregates
<https://docs.openstack.org/api-ref/placement/#update-resource-provider-aggregates>`_.
nova-compute writes its provider in the same way, so the second writer
reads again, and nothing is lost. Providers are named by their uuids.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent import futures
import logging

import os_traits
import tenacity

from isolate_aggregates import exception
from isolate_aggregates.placement import generations
from isolate_aggregates.placement.client import PlacementClient

LOG = logging.getLogger(__name__)

# A provider is written now and then; that many conflicts in a row mean that
# something else is wrong.
_ATTEMPTS = 10
_LONGEST_PAUSE = 0.5  # seconds

# Enough to hide the time on the wire, few enough to be a good guest.
PARALLEL = 8

# By uuid of a root and by trait, the names of the providers below that root
# that have the trait.
Below = Mapping[str, Mapping[str, tuple[str, ...]]]

Edit = Callable[[frozenset[str]], frozenset[str]]


def delete_trait(placement: PlacementClient, name: str) -> None:
    """Delete a custom trait, unless it is gone or some provider has it.

    :raises ServiceError: if it cannot be done.
    """
    placement.send('DELETE', f'/traits/{name}', accept=(204, 404, 409))


def traits(placement: PlacementClient, provider: str) -> frozenset[str]:
    """Return the traits of a resource provider.

    :raises ServiceNotFound: if there is no such provider.
    :raises ServiceError: if they cannot be read.
    """
    return _read(placement, provider, 'traits')[0]


def aggregates(placement: PlacementClient, provider: str) -> frozenset[str]:
    """Return the uuids of the aggregates a resource provider is a member of.

    :raises ServiceNotFound: if there is no such provider.
    :raises ServiceError: if they cannot be read.
    """
    return _read(placement, provider, 'aggregates')[0]


def change_traits(
    placement: PlacementClient, provider: str, edit: Edit
) -> tuple[frozenset[str], frozenset[str]]:
    """Change the traits of a resource provider.

    Custom traits that Placement does not know any more are created again.

    :param edit: Takes the current traits and returns the new ones; called
        again with the then current ones if another client was faster.
    :returns: The traits before and after.
    :raises ServiceNotFound: if there is no such provider.
    :raises ServiceConflict: if another client is faster each time.
    :raises ServiceError: if it cannot be done.
    """
    return _change(placement, provider, 'traits', edit)


def change_aggregates(
    placement: PlacementClient, provider: str, edit: Edit
) -> tuple[frozenset[str], frozenset[str]]:
    """Change the aggregates a resource provider is a member of.

    :param edit: Takes the current uuids and returns the new ones; called again
        with the then current ones if another client was faster.
    :returns: The uuids before and after.
    :raises ServiceNotFound: if there is no such provider.
    :raises ServiceConflict: if another client is faster each time.
    :raises ServiceError: if it cannot be done.
    """
    return _change(placement, provider, 'aggregates', edit)


def known_traits(placement: PlacementClient) -> frozenset[str]:
    """Return all traits that Placement knows, those of no provider included.

    :raises ServiceError: if they cannot be read.
    """
    return placement.read(
        '/traits', lambda document: frozenset(document['traits'])
    )


def holders_below(placement: PlacementClient, traits: Iterable[str]) -> Below:
    """Return which providers below a root have some traits.

    :param traits: The names of traits that Placement knows.
    :raises ServiceError: if that cannot be read.
    """
    names = sorted(traits)
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    with futures.ThreadPoolExecutor(PARALLEL) as pool:
        listed = pool.map(
            lambda trait: placement.resource_providers(required=[trait]), names
        )
        for trait, having in zip(names, listed, strict=True):
            for provider in having:
                if provider['parent_provider_uuid']:
                    held = found.setdefault(provider['root_provider_uuid'], {})
                    held[trait] = (*held.get(trait, ()), provider['name'])
    return found


def create_trait(placement: PlacementClient, trait: str) -> None:
    """Create a custom trait, unless it is there.

    :param trait: Its name, which starts with ``CUSTOM_``.
    :raises ServiceError: if it cannot be done.
    """
    placement.send('PUT', f'/traits/{trait}')


@tenacity.retry(
    retry=tenacity.retry_if_exception_type(exception.ServiceConflict),
    stop=tenacity.stop_after_attempt(_ATTEMPTS),
    # Two of us would otherwise meet again and again.
    wait=tenacity.wait_random_exponential(0.02, _LONGEST_PAUSE),
    before_sleep=tenacity.before_sleep_log(LOG, logging.DEBUG),
    reraise=True,
)
def _change(
    placement: PlacementClient, provider: str, what: str, edit: Edit
) -> tuple[frozenset[str], frozenset[str]]:
    before, generation = _read(placement, provider, what)
    after = edit(before)
    if after != before:
        try:
            generations.replace(
                placement, provider, what, sorted(after), generation
            )
        except exception.BadQuery as exc:
            missing = _missing(placement, what, after - before)
            if not missing:
                raise
            # Another has deleted them since they were created.
            for trait in missing:
                create_trait(placement, trait)
            raise exception.ServiceConflict(
                exc.service, exc.url, exc.problem
            ) from exc
    return before, after


def _missing(
    placement: PlacementClient, what: str, added: frozenset[str]
) -> Iterable[str]:
    custom = {one for one in added if os_traits.is_custom(one)}
    if what != 'traits' or not custom:
        return ()
    return sorted(custom - known_traits(placement))


def _read(
    placement: PlacementClient, provider: str, what: str
) -> tuple[frozenset[str], int]:
    return placement.read(
        f'/resource_providers/{provider}/{what}',
        lambda document: (
            frozenset(document[what]),
            document[generations.KEY],
        ),
    )
