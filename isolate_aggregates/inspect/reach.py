# SPDX-License-Identifier: Apache-2.0
"""Whether servers find a trait on the provider that has it.

Placement does not look for a trait on every provider of a tree: only on those
from which a server takes something.
"""

from collections.abc import Collection, Iterable, Iterator

from isolate_aggregates import exception
from isolate_aggregates.placement import resources
from isolate_aggregates.placement.group import ResourceRequest
from isolate_aggregates.placement.provider import Provider
from isolate_aggregates.request import Flavor, Image, Request
from isolate_aggregates.request import extra_specs as xs


def requests(
    trait: str, flavors: Iterable[Flavor], images: Iterable[Image] = ()
) -> Iterator[ResourceRequest]:
    """Yield what servers that require a trait ask of Placement.

    :param flavors: The flavors that servers may have.
    :param images: The images whose traits count.
    """
    requiring = [i for i in images if _requires(trait, Request(Flavor(''), i))]
    for flavor in flavors:
        # Images that require it make the same of a flavor.
        for image in (None, *requiring[:1]):
            request = Request(flavor, image)
            if _requires(trait, request):
                yield resources.resource_request(request)


def _requires(trait: str, request: Request) -> bool:
    try:
        return trait in request.required_traits
    except exception.InvalidRequest:
        return False


def unreached(
    holders: Collection[Provider],
    trait: str,
    asked: Iterable[ResourceRequest],
) -> bool:
    """Return whether none of some requests looks where a trait is.

    :param holders: The providers of a tree that have it.
    :param asked: The requests; of none at all nothing is said.
    """
    if trait == xs.RESERVATION_TRAIT:
        # Where nothing is reserved, nobody is to find it.
        return False
    looking = [
        any(_looks_at(query, holder, trait) for holder in holders)
        for query in asked
    ]
    return bool(looking) and not any(looking)


def _looks_at(query: ResourceRequest, holder: Provider, trait: str) -> bool:
    classes = holder.inventories.keys()
    for group in query.groups.values():
        if trait not in group.required_traits:
            continue
        asked = group.resources.keys()
        # One provider serves all of a group with a suffix.
        if asked <= classes if group.suffix else asked & classes:
            return True
    return False
