# SPDX-License-Identifier: Apache-2.0
"""Changes traits and aggregates of providers that other clients change too.

Traits and aggregates can only be replaced as a whole, with the generation at
which they were read. Placement rejects an outdated generation. See `Update
resource provider traits
<https://docs.openstack.org/api-ref/placement/#update-resource-provider-traits>`_
and `Update resource provider aggregates
<https://docs.openstack.org/api-ref/placement/#update-resource-provider-aggregates>`_.
nova-compute writes its provider in the same way. So the second writer reads
again, and no change is lost. Providers are identified by uuid.
"""

from collections.abc import Callable, Iterable, Mapping
import logging

import os_traits
import tenacity

from isolate_aggregates import exception
from isolate_aggregates_tools.placement import generations, providers
from isolate_aggregates_tools.placement.client import PlacementClient
from isolate_aggregates_tools.placement.provider import Below

LOG = logging.getLogger(__name__)

# Providers are rarely written, so this many consecutive conflicts have another
# cause.
_ATTEMPTS = 10
_LONGEST_PAUSE = 0.5  # seconds

Edit = Callable[[frozenset[str]], frozenset[str]]


def delete_trait(placement: PlacementClient, name: str) -> None:
    """Delete a custom trait, if it exists and no provider has it."""
    placement.send('DELETE', f'/traits/{name}', accept=(204, 404, 409))


def change_traits(
    placement: PlacementClient, provider: str, edit: Edit
) -> tuple[frozenset[str], frozenset[str]]:
    """Change the traits of a resource provider.

    Custom traits that were deleted meanwhile are created again.

    :param edit: Takes the current traits and returns the new ones. It is
        called again after a conflict.
    :raises ServiceConflict: if there are conflicts on all attempts.
    """
    return _change(placement, provider, 'traits', edit)


def change_aggregates(
    placement: PlacementClient, provider: str, edit: Edit
) -> tuple[frozenset[str], frozenset[str]]:
    """Change the aggregates of a resource provider.

    :param edit: Takes the current uuids and returns the new ones. It is called
        again after a conflict.
    :raises ServiceConflict: if there are conflicts on all attempts.
    """
    return _change(placement, provider, 'aggregates', edit)


def known_traits(placement: PlacementClient) -> frozenset[str]:
    """Return all traits in Placement, including those that no provider has."""
    return placement.read(
        '/traits', lambda document: frozenset(document['traits'])
    )


def holders_below(placement: PlacementClient, traits: Iterable[str]) -> Below:
    """Return the child and sharing providers that have some traits."""
    names = sorted(traits)
    below: dict[str, dict[str, tuple[str, ...]]] = {}

    def note(root: str, trait: str, provider: Mapping[str, str]) -> None:
        by_trait = below.setdefault(root, {})
        by_trait[trait] = (*by_trait.get(trait, ()), provider['name'])

    sharing = {
        provider['uuid']
        for provider in (
            placement.resource_providers(
                required=[os_traits.MISC_SHARES_VIA_AGGREGATE]
            )
            if names
            else ()
        )
    }
    with placement.pool() as pool:
        holders = pool.map(
            lambda trait: placement.resource_providers(required=[trait]), names
        )
        for trait, providers in zip(names, holders, strict=True):
            for provider in providers:
                if provider['parent_provider_uuid']:
                    note(provider['root_provider_uuid'], trait, provider)
                if provider['uuid'] in sharing:
                    for root in _served_by(placement, provider):
                        note(root, trait, provider)
    return below


def _served_by(
    placement: PlacementClient, provider: Mapping[str, str]
) -> list[str]:
    """Return the roots of the other trees that a provider shares with."""
    aggregates = placement.aggregates(provider['uuid'])
    if not aggregates:
        return []
    members = placement.resource_providers(member_of=aggregates)
    roots = {member['root_provider_uuid'] for member in members}
    return sorted(roots - {provider['root_provider_uuid']})


def create_trait(placement: PlacementClient, trait: str) -> None:
    """Create a custom trait, unless it exists."""
    placement.send('PUT', f'/traits/{trait}')


@tenacity.retry(
    retry=tenacity.retry_if_exception_type(exception.ServiceConflict),
    stop=tenacity.stop_after_attempt(_ATTEMPTS),
    # Random, or two clients could conflict again on every attempt.
    wait=tenacity.wait_random_exponential(0.02, _LONGEST_PAUSE),
    before_sleep=tenacity.before_sleep_log(LOG, logging.DEBUG),
    reraise=True,
)
def _change(
    placement: PlacementClient, provider: str, what: str, edit: Edit
) -> tuple[frozenset[str], frozenset[str]]:
    before, generation = providers.read(placement, provider, what)
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
            # Another client has deleted them since they were created.
            for trait in missing:
                create_trait(placement, trait)
            raise exception.ServiceConflict(
                exc.service, exc.url, exc.problem
            ) from exc
    return before, after


def _missing(
    placement: PlacementClient, what: str, names: frozenset[str]
) -> Iterable[str]:
    custom = {one for one in names if os_traits.is_custom(one)}
    if what != 'traits' or not custom:
        return ()
    return sorted(custom - known_traits(placement))
