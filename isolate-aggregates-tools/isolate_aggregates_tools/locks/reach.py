# SPDX-License-Identifier: Apache-2.0
"""Checks whether required traits are on providers that servers use.

Placement does not look for a required trait on every provider of a tree, but
only on the providers that the candidate allocates from.
"""

from collections.abc import Collection, Iterable, Iterator

from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.answers.requests import bare
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.placement.provider import Provider
from isolate_aggregates_tools.request import Request, resources


def requests(
    trait: str, flavors: Iterable[Flavor], images: Iterable[Image] = ()
) -> Iterator[ResourceRequest]:
    """Yield the queries of servers that require a trait."""
    requiring = [i for i in images if _requires(trait, bare(image=i))]
    for flavor in flavors:
        # All images that require it have the same effect.
        for image in (None, *requiring[:1]):
            request = bare(flavor, image)
            if _requires(trait, request):
                yield resources.resource_request(request)


def _requires(trait: str, request: Request) -> bool:
    try:
        return trait in request.required_traits
    except errors.InvalidRequest:
        return False


def unreached(
    holders: Collection[Provider],
    trait: str,
    queries: Iterable[ResourceRequest],
) -> bool:
    """Return whether no query can use the providers with a trait.

    :param queries: The queries; False if there are none.
    """
    if trait == xs.RESERVATION_TRAIT:
        # Without reservations, no flavor requests slots from these providers.
        return False
    looking = [
        any(_looks_at(query, holder, trait) for holder in holders)
        for query in queries
    ]
    return bool(looking) and not any(looking)


def _looks_at(query: ResourceRequest, holder: Provider, trait: str) -> bool:
    classes = holder.inventories.keys()
    for group in query.groups.values():
        if trait not in group.required_traits:
            continue
        requests = group.resources.keys()
        # A suffixed group is served by a single provider.
        if requests <= classes if group.suffix else requests & classes:
            return True
    return False
