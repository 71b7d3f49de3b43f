# SPDX-License-Identifier: Apache-2.0
"""Reads resource providers from Placement.

Each call uses the oldest microversion that supports it, so that an older
Placement works for every feature it supports. Formats are those of
the `Placement API reference <https://docs.openstack.org/api-ref/placement/>`_.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses
import re
from typing import TYPE_CHECKING, Any, TypeVar
from urllib import parse
import uuid

from isolate_aggregates import exception

if TYPE_CHECKING:
    from keystoneauth1 import adapter
    import requests

    from isolate_aggregates.rest.errors import Options

_T = TypeVar('_T')


@dataclasses.dataclass(frozen=True, order=True)
class Feature:
    """A feature of Placement, ordered by microversion.

    :param minor: The microversion that introduced it, without the ``1.``.
    :param purpose: A description, as the subject of "... needs 1.x".
    """

    minor: int
    purpose: str
    release: str

    @property
    def microversion(self) -> str:
        """The complete microversion, for example ``1.33``."""
        return f'1.{self.minor}'


# The oldest that is used: summaries have the root of each provider's tree, and
# candidates can combine several providers of a tree.
NESTED = Feature(29, 'reading nested resource providers', 'Rocky')
FORBIDDEN_AGGREGATES = Feature(32, 'forbidding aggregates', 'Train')


# Placement's error message for an empty query. If the query was not empty,
# uWSGI has dropped it because it exceeded its buffer.
_NOTHING_ASKED = 'At least one request group'
_ASKED = re.compile('[?&]resources[^=&]*=')

# uWSGI drops queries between two lengths, and Placement then lists everything.
# With its default buffer of 4,096 bytes, which holds the query twice and the
# headers, the shorter length is about 1,900 bytes.
_MAY_BE_LOST = 1000
# What is added to such a query to find that out.
ARRIVAL_LENGTH = len('&name=') + 36


class PlacementReader:
    """Reads resource providers."""

    def __init__(
        self,
        client: 'adapter.Adapter',
        retries: int | None = None,
        options: 'Options | None' = None,
    ) -> None:
        # Imported late: nova-scheduler needs no client for most requests, and
        # commands on a cloud file need none.
        from isolate_aggregates.rest.client import Service
        from isolate_aggregates.rest.errors import OF_COMMANDS

        self._service = Service(
            'Placement', client, retries, options or OF_COMMANDS
        )

    @property
    def endpoint(self) -> str:
        """The endpoint, for messages."""
        return self._service.endpoint

    def resource_providers(
        self,
        name: str | None = None,
        in_tree: str | None = None,
        member_of: Iterable[str] = (),
        not_member_of: Iterable[str] = (),
        required: Iterable[str] = (),
    ) -> list[dict[str, Any]]:
        """List resource providers.

        :param member_of: Only members of at least one of these aggregates.
        :param not_member_of: Only members of none of these aggregates.
        """
        feature = NESTED
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
            feature = FORBIDDEN_AGGREGATES
        return self.providers(params, feature)

    def providers(
        self, params: Sequence[tuple[str, str]], feature: Feature
    ) -> list[dict[str, Any]]:
        """List resource providers.

        :param params: The parameters of the query.
        :param feature: What they need.
        """
        path = '/resource_providers'
        if not params:
            return self.read(path, _providers, feature)
        query = parse.urlencode(params)
        found = self.read(f'{path}?{query}', _providers, feature)
        if found and len(query) > _MAY_BE_LOST:
            self._check_arrival(query, feature)
        return found

    def _check_arrival(self, query: str, feature: Feature) -> None:
        """Raise if the web server drops a query, and all providers are listed.

        It is asked for a name that no provider has, too. What is lost of a
        longer query is not known to have arrived with a shorter one.

        :raises QueryTooLong: if all providers are listed.
        """
        more = f'&name={uuid.uuid4()}'
        assert len(more) == ARRIVAL_LENGTH
        if self.read(
            f'/resource_providers?{query}{more}', _providers, feature
        ):
            raise exception.QueryTooLong(
                'Placement',
                self._service.endpoint,
                'answered as if nothing was asked for',
                len(query),
            )

    def aggregates(self, provider: str) -> frozenset[str]:
        """Return the uuids of the aggregates of a resource provider."""
        return self.read(
            f'/resource_providers/{provider}/aggregates',
            lambda document: frozenset(document['aggregates']),
        )

    def read(
        self,
        path: str,
        parser: Callable[[Any], _T],
        feature: Feature = NESTED,
    ) -> _T:
        """Send a GET request and parse the response."""
        return self._service.parsed(path, parser, self.get(path, feature))

    def get(self, path: str, feature: Feature = NESTED) -> Any:
        """Send a GET request and return the JSON object of the response."""
        answer = self._ask('GET', path, None, feature, (200,))
        return self._service.decode(answer, path)

    def _ask(
        self,
        method: str,
        path: str,
        body: Any,
        feature: Feature,
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
                    'did not receive the query',
                    len(path.partition('?')[2]),
                ) from exc
            raise
        if answer.status_code != 406:
            return answer
        try:
            newest = answer.json()['errors'][0]['max_version']
        except (LookupError, TypeError, ValueError):
            # The response comes from a proxy in front of Placement.
            raise self._service.failure(method, path, answer) from None
        raise exception.ServiceTooOld(
            'Placement',
            self._service.endpoint,
            newest,
            f'{feature.microversion} ({feature.release})',
            feature.purpose,
        )


class PlacementWriter(PlacementReader):
    """Also changes what Placement has."""

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        feature: Feature = NESTED,
        accept: Iterable[int] = (200, 201, 204),
    ) -> Any:
        """Send a request that changes data."""
        answer = self._ask(method, path, body, feature, accept)
        return self._service.decode(answer, path) if answer.content else None


def _providers(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    providers = document['resource_providers']
    for provider in providers:
        # Check the keys that all callers use.
        provider['uuid'], provider['name'], provider['generation']
        provider['parent_provider_uuid'], provider['root_provider_uuid']
    return list(providers)
