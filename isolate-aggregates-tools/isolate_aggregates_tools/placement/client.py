# SPDX-License-Identifier: Apache-2.0
"""A client for Placement's API, which also finds candidates and writes."""

from collections.abc import Callable, Iterable, Mapping
from concurrent import futures
import dataclasses
import datetime
import email.utils
from typing import TYPE_CHECKING, Any, TypeVar

import os_traits

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.placement import PlacementWriter
from isolate_aggregates_tools.placement import microversion as mv
from isolate_aggregates_tools.placement.group import ResourceRequest

if TYPE_CHECKING:
    from keystoneauth1 import adapter

    from isolate_aggregates.rest.connection import Connection
    from isolate_aggregates.rest.errors import Options

_T = TypeVar('_T')
_R = TypeVar('_R')


@dataclasses.dataclass(frozen=True)
class ProviderSummary:
    """The summary of a resource provider in a response.

    :param parent: The uuid of its parent; None for a root.
    """

    uuid: str
    root: str
    parent: str | None
    capacity: Mapping[str, int]
    used: Mapping[str, int]
    traits: frozenset[str]

    def free(self, resource_class: str) -> int:
        """Return the free amount of a resource class."""
        return self.capacity.get(resource_class, 0) - self.used.get(
            resource_class, 0
        )

    @property
    def is_sharing(self) -> bool:
        """Whether it is a sharing provider."""
        return os_traits.MISC_SHARES_VIA_AGGREGATE in self.traits


@dataclasses.dataclass(frozen=True)
class AllocationCandidates:
    """The response of ``GET /allocation_candidates``.

    :param allocation_requests: For each candidate, the amounts by resource
        class, by provider uuid.
    :param mappings: For each candidate, the uuids of the providers that serve
        each request group, by suffix; empty before 1.34.
    """

    allocation_requests: tuple[Mapping[str, Mapping[str, int]], ...]
    mappings: tuple[Mapping[str, tuple[str, ...]], ...]
    summaries: Mapping[str, ProviderSummary]

    def by_root(
        self, request: ResourceRequest
    ) -> dict[str, list[Mapping[str, Mapping[str, int]]]]:
        """Return the candidates by root of the tree that each belongs to.

        A candidate can also use sharing providers of other trees. The response
        does not tell which roots are compute nodes; see :meth:`only_shares`.
        """
        candidates: dict[str, list[Mapping[str, Mapping[str, int]]]] = {}
        for candidate in self.allocation_requests:
            providers = [self.summaries[provider] for provider in candidate]
            own = {
                provider.root
                for provider in providers
                if not provider.is_sharing
            }
            for root in dict.fromkeys(provider.root for provider in providers):
                if own <= {root} and self._is_right(root, request):
                    candidates.setdefault(root, []).append(candidate)
        return candidates

    def _is_right(self, root: str, request: ResourceRequest) -> bool:
        """Return whether a root meets ``root_required``.

        A sharing provider without these traits can still be in candidates.
        """
        traits = self.summaries[root].traits
        return request.root_required <= traits and not (
            request.root_forbidden & traits
        )

    def only_shares(self, root: str) -> bool:
        """Return whether only sharing providers of a tree are in candidates.

        This is so for shared storage, and can be so for a compute node that
        shares its resources.
        """
        return all(
            self.summaries[provider].is_sharing
            for candidate in self.allocation_requests
            for provider in candidate
            if self.summaries[provider].root == root
        )


class PlacementClient(PlacementWriter):
    """A client for Placement.

    :param max_concurrency: How many requests it sends at the same time. It
        sends none for a while after Placement has answered 503.
    """

    def __init__(
        self,
        client: 'adapter.Adapter',
        retries: int | None = None,
        options: 'Options | None' = None,
        max_concurrency: int = ia_conf.MAX_CONCURRENCY,
    ) -> None:
        super().__init__(client, retries, options)
        # Imported late, as keystoneauth.
        from isolate_aggregates_tools.placement.request_limit import (
            RequestLimit,
        )

        self._max_concurrency = max_concurrency
        self._service.rate_semaphore = RequestLimit.of(
            client.session, max_concurrency
        )

    @classmethod
    def of(cls, connection: 'Connection') -> 'PlacementClient':
        """Return the client for a connection."""
        return cls(
            connection.adapter('placement'),
            max_concurrency=connection.max_concurrency,
        )

    def pool(self, most: int | None = None) -> futures.ThreadPoolExecutor:
        """Return a pool of threads.

        :param most: How many; None for as many as requests may be sent.
        """
        return futures.ThreadPoolExecutor(most or self._max_concurrency)

    def each(
        self, function: Callable[[_T], _R], items: Iterable[_T]
    ) -> dict[_T, _R]:
        """Return the result for each item, of parallel calls."""
        items = list(items)
        with self.pool() as pool:
            return dict(zip(items, pool.map(function, items), strict=True))

    def allocation_candidates(
        self, request: ResourceRequest
    ) -> AllocationCandidates:
        """Return the allocation candidates for a request."""
        path = f'/allocation_candidates?{request.to_querystring()}'
        return self.read(path, _candidates, max(mv.NESTED, request.needed))

    def date(self) -> datetime.datetime | None:
        """Return the ``Date`` header of Placement's web server.

        :returns: The time in whole seconds; None if the header is missing.
        """
        answer = self._service.request('GET', '/')
        try:
            date = email.utils.parsedate_to_datetime(answer.headers['Date'])
        except (KeyError, ValueError):
            return None
        return date if date.tzinfo else None


def _candidates(document: Mapping[str, Any]) -> AllocationCandidates:
    entries = document['allocation_requests']
    summaries = {
        uuid: ProviderSummary(
            uuid=uuid,
            root=summary['root_provider_uuid'],
            parent=summary['parent_provider_uuid'],
            capacity={
                resource_class: amounts['capacity']
                for resource_class, amounts in summary['resources'].items()
            },
            used={
                resource_class: amounts['used']
                for resource_class, amounts in summary['resources'].items()
            },
            traits=frozenset(summary['traits']),
        )
        for uuid, summary in document['provider_summaries'].items()
    }
    candidates = tuple(
        {
            uuid: allocation['resources']
            for uuid, allocation in entry['allocations'].items()
        }
        for entry in entries
    )
    for candidate in candidates:
        for uuid in candidate:
            # Check that both exist, as they are used later.
            summaries[summaries[uuid].root]
    return AllocationCandidates(
        allocation_requests=candidates,
        mappings=tuple(
            {
                suffix: tuple(uuids)
                for suffix, uuids in entry.get('mappings', {}).items()
            }
            for entry in entries
        ),
        summaries=summaries,
    )
