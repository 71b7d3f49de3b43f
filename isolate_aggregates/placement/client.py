# SPDX-License-Identifier: Apache-2.0
"""Asks Placement over HTTP.

Each call asks for the oldest microversion that understands it, so that an
older Placement works for every feature it supports. Formats are those of
the `Placement API reference <https://docs.openstack.org/api-ref/placement/>`_.
"""

from collections.abc import Callable, Iterable, Mapping
import dataclasses
import datetime
import email.utils
import re
from typing import TYPE_CHECKING, Any, TypeVar
from urllib import parse

import os_traits

from isolate_aggregates import exception
from isolate_aggregates.placement import microversion as mv
from isolate_aggregates.placement.group import ResourceRequest

if TYPE_CHECKING:
    from keystoneauth1 import adapter
    import requests

# Since this microversion an answer names the root of each provider's tree
# and combines the providers of one tree.
_OLDEST = mv.NESTED

# What Placement says of a query that asks for nothing. If the query asks for
# something, uWSGI had no room for it in its buffer and has dropped it.
_NOTHING_ASKED = 'At least one request group'
_ASKED = re.compile('[?&]resources[^=&]*=')

_T = TypeVar('_T')


@dataclasses.dataclass(frozen=True)
class ProviderSummary:
    """What an answer says of one resource provider.

    :param root: Uuid of the root of its tree.
    :param parent: Uuid of its parent; None for a root.
    :param capacity: What may be given out in all, by resource class.
    :param used: What is given out, by resource class.
    :param traits: Its traits.
    """

    uuid: str
    root: str
    parent: str | None
    capacity: Mapping[str, int]
    used: Mapping[str, int]
    traits: frozenset[str]

    def free(self, resource_class: str) -> int:
        """Return how much of a resource class is left."""
        return self.capacity.get(resource_class, 0) - self.used.get(
            resource_class, 0
        )

    @property
    def is_sharing(self) -> bool:
        """Whether it shares its resources with its aggregates' members."""
        return os_traits.MISC_SHARES_VIA_AGGREGATE in self.traits


@dataclasses.dataclass(frozen=True)
class AllocationCandidates:
    """The answer to ``GET /allocation_candidates``.

    :param allocation_requests: For each candidate the amounts by resource
        class, by uuid of the provider that gives them.
    :param mappings: For each candidate the uuids of the providers by the
        suffix of the request group they serve; empty before 1.34.
    :param summaries: The providers involved, by uuid.
    """

    allocation_requests: tuple[Mapping[str, Mapping[str, int]], ...]
    mappings: tuple[Mapping[str, tuple[str, ...]], ...]
    summaries: Mapping[str, ProviderSummary]

    def by_root(
        self, request: ResourceRequest
    ) -> dict[str, list[Mapping[str, Mapping[str, int]]]]:
        """Return the candidates by the root of the tree that each is for.

        All else that a candidate takes comes from providers that share. The
        answer does not say which roots are compute nodes; see :meth:`lends`.

        :param request: What was asked for.
        """
        found: dict[str, list[Mapping[str, Mapping[str, int]]]] = {}
        for candidate in self.allocation_requests:
            givers = [self.summaries[provider] for provider in candidate]
            own = {giver.root for giver in givers if not giver.is_sharing}
            for root in dict.fromkeys(giver.root for giver in givers):
                if own <= {root} and self._is_right(root, request):
                    found.setdefault(root, []).append(candidate)
        return found

    def _is_right(self, root: str, request: ResourceRequest) -> bool:
        """Return whether a root has the right traits.

        One that lends may give to others all the same.
        """
        traits = self.summaries[root].traits
        return request.root_required <= traits and not (
            request.root_forbidden & traits
        )

    def lends(self, root: str) -> bool:
        """Return whether a tree gives nothing but what it shares with others.

        So does shared storage, and so may a compute node that shares.

        :param root: The uuid of its root provider.
        """
        return all(
            self.summaries[provider].is_sharing
            for candidate in self.allocation_requests
            for provider in candidate
            if self.summaries[provider].root == root
        )


class PlacementClient:
    """Placement, as far as it is asked here.

    :param client: A keystoneauth adapter for the placement endpoint.
    :param retry_delay: Seconds to wait before each retry; None for half a
        second before the first one and twice as long before each further.
    :param retries: How often to try again what may succeed then; None for
        three times.
    :param long_query: The bytes of a path and query that was answered, for
        those who try longer ones to find a limit: what fails beyond them may
        be too long. None for what web servers take at least.
    """

    def __init__(
        self,
        client: 'adapter.Adapter',
        retry_delay: float | None = None,
        retries: int | None = None,
        long_query: int | None = None,
    ) -> None:
        # Commands on a cloud file use what is answered, and never ask. They
        # need no keystoneauth, which takes long to import.
        from isolate_aggregates.rest.client import Service

        self._service = Service(
            'Placement', client, retry_delay, retries, long_query
        )

    def allocation_candidates(
        self, request: ResourceRequest
    ) -> AllocationCandidates:
        """Return where the resources of a request could come from.

        :raises ServiceTooOld: if Placement does not understand the query.
        :raises BadQuery: if Placement calls the query invalid.
        :raises QueryTooLong: if no web server lets the query through.
        :raises ServiceError: if it gives no usable answer for another reason.
        """
        path = f'/allocation_candidates?{request.to_querystring()}'
        return self.read(path, _candidates, max(_OLDEST, request.needed))

    def resource_providers(
        self,
        name: str | None = None,
        in_tree: str | None = None,
        member_of: Iterable[str] = (),
        not_member_of: Iterable[str] = (),
        required: Iterable[str] = (),
    ) -> list[dict[str, Any]]:
        """Return resource providers as Placement lists them.

        :param name: Only the provider of this name.
        :param in_tree: Only the tree of the provider with this uuid.
        :param member_of: Only members of one of the aggregates with these
            uuids.
        :param not_member_of: Only members of none of the aggregates with
            these uuids.
        :param required: Only those with all of these traits.
        :raises ServiceTooOld: if Placement cannot list them so.
        :raises ServiceError: if Placement gives no usable answer.
        """
        feature = _OLDEST
        params = []
        if name is not None:
            params.append(('name', name))
        if in_tree is not None:
            params.append(('in_tree', in_tree))
        traits = sorted(required)
        if traits:
            params.append(('required', ','.join(traits)))
        uuids = sorted(member_of)
        if uuids:
            params.append(('member_of', f'in:{",".join(uuids)}'))
        uuids = sorted(not_member_of)
        if uuids:
            params.append(('member_of', f'!in:{",".join(uuids)}'))
            feature = mv.FORBIDDEN_AGGREGATES
        path = '/resource_providers'
        if params:
            path += f'?{parse.urlencode(params)}'
        return self.read(path, _providers, feature)

    def read(
        self,
        path: str,
        parser: Callable[[Any], _T],
        feature: mv.Feature = _OLDEST,
    ) -> _T:
        """Return what a parser makes of the answer to a GET.

        :param path: Path and query string.
        :param parser: Takes the JSON object of the answer apart.
        :raises ServiceTooOld: if Placement does not have the feature.
        :raises ServiceError: if it gives no usable answer.
        """
        return self._service.parsed(path, parser, self.get(path, feature))

    def get(self, path: str, feature: mv.Feature = _OLDEST) -> Any:
        """Return the JSON object that answers a GET.

        :param path: Path and query string.
        :raises ServiceTooOld: if Placement does not have the feature.
        :raises ServiceError: if it gives no usable answer.
        """
        answer = self._ask('GET', path, None, feature, (200,))
        return self._service.decode(answer, path)

    def date(self) -> datetime.datetime | None:
        """Return the time by the clock of the web server before Placement.

        :returns: The time in whole seconds; None if it does not tell.
        :raises ServiceError: if it gives no usable answer.
        """
        answer = self._service.request('GET', '/')
        try:
            found = email.utils.parsedate_to_datetime(answer.headers['Date'])
        except (KeyError, ValueError):
            return None
        return found if found.tzinfo else None

    @property
    def endpoint(self) -> str:
        """The endpoint, for messages."""
        return self._service.endpoint

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        feature: mv.Feature = _OLDEST,
        accept: Iterable[int] = (200, 201, 204),
    ) -> Any:
        """Change something in Placement.

        :param method: ``PUT``, ``POST`` or ``DELETE``.
        :param accept: The statuses that mean it is done.
        :raises ServiceTooOld: if Placement does not have the feature.
        :raises ServiceError: if it is not done.
        """
        answer = self._ask(method, path, body, feature, accept)
        return self._service.decode(answer, path) if answer.content else None

    def _ask(
        self,
        method: str,
        path: str,
        body: Any,
        feature: mv.Feature,
        accept: Iterable[int],
    ) -> 'requests.Response':
        try:
            answer = self._service.request(
                method, path, feature.microversion, body, accept=(*accept, 406)
            )
        except exception.BadQuery as exc:
            if _NOTHING_ASKED in exc.problem and _ASKED.search(path):
                raise exception.QueryTooLong(
                    exc.service,
                    exc.url,
                    'did not get the query',
                    len(path.partition('?')[2]),
                ) from exc
            raise
        if answer.status_code != 406:
            return answer
        try:
            newest = answer.json()['errors'][0]['max_version']
        except (LookupError, TypeError, ValueError):
            # It comes from something before Placement.
            raise self._service.failure(method, path, answer) from None
        raise exception.ServiceTooOld(
            'Placement',
            self._service.endpoint,
            newest,
            f'{feature.microversion} ({feature.release})',
            feature.purpose,
        )


def _providers(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    providers = document['resource_providers']
    for provider in providers:
        # What every caller reads.
        provider['uuid'], provider['name'], provider['generation']
        provider['parent_provider_uuid'], provider['root_provider_uuid']
    return list(providers)


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
            # Both are looked up later on.
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
