# SPDX-License-Identifier: Apache-2.0
"""What Placement answers to a GET, as status and JSON.

Formats are those of the `Placement API reference
<https://docs.openstack.org/api-ref/placement/>`_. Answers are worked out by
the simulator, so they can be given for the microversions whose rules it
follows: from 1.29, which brought nested providers, to 1.39.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import http
import re
from typing import Any
import uuid

from isolate_aggregates import exception
from isolate_aggregates.cloud.snapshot import Snapshot
from isolate_aggregates.placement import microversion as mv
from isolate_aggregates.placement.client import (
    AllocationCandidates,
    ProviderSummary,
)
from isolate_aggregates.placement.provider import Provider
from isolate_aggregates.placement.simulator import Simulator, query

NEWEST = mv.ANY_TRAITS.microversion

_OLDEST = mv.NESTED.minor
# Since these microversions an error has a code, and a candidate says who
# serves which request group.
_ERROR_CODES = 23
_MAPPINGS = 34

_VERSION = re.compile(r'([1-9][0-9]*)\.(0|[1-9][0-9]*)')
_PROVIDER = re.compile(
    r'/resource_providers/([^/]+)(?:/(inventories|usages|aggregates|traits))?'
)
_LINKS = ('inventories', 'usages', 'aggregates', 'traits', 'allocations')

# Nothing ever changes here.
_GENERATION = 0
_REQUEST_ID = f'req-{uuid.UUID(int=0)}'

# What a status means, which comes before what is wrong.
_MEANINGS = {
    400: 'The server could not comply with the request since it is either '
    'malformed or otherwise incorrect.',
    404: 'The resource could not be found.',
    405: 'The method is not allowed for this resource.',
    406: 'The resource could not be generated that was acceptable to your '
    'browser.',
    501: 'The server does not do this.',
}
# How the simulator's sentence on a bad query begins.
_INVALID = query.refused('').problem


@dataclasses.dataclass(frozen=True)
class Answer:
    """An answer.

    :param status: Its status.
    :param document: Its JSON.
    :param minor: The microversion it is of, without the ``1.``; None if the
        one that was asked for is no good.
    """

    status: int
    document: Mapping[str, Any]
    minor: int | None


class MockedService:
    """Answers as Placement would if it had the providers of a snapshot.

    :param snapshot: The cloud.
    :param max_microversion: The newest microversion it speaks, to 1.39.
    :param prefix: What the paths in links start with.
    :raises ValueError: if the microversion is none, or newer than 1.39.
    """

    def __init__(
        self, snapshot: Snapshot, max_microversion: str, prefix: str
    ) -> None:
        version = _VERSION.fullmatch(max_microversion)
        known = range(mv.ANY_TRAITS.minor + 1)
        if not version or version[1] != '1' or int(version[2]) not in known:
            raise ValueError(
                f'{max_microversion!r} is no microversion from 1.0 to {NEWEST}'
            )
        self._newest = int(version[2])
        self._prefix = prefix
        self._simulator = Simulator(snapshot.providers)

    def answer(
        self, method: str, path: str, query_string: str, version: str | None
    ) -> Answer:
        """Return the answer to a request.

        :param method: The HTTP method.
        :param path: The path, from the endpoint on.
        :param query_string: The query string.
        :param version: The header ``OpenStack-API-Version``, if any.
        """
        minor = None
        try:
            minor = self._minor(version)
            document = self._document(method, path, query_string, minor)
        except _Failure as failure:
            return Answer(failure.status, _error(failure, minor), minor)
        except exception.BadQuery as exc:
            bad = _Failure(400, exc.problem.removeprefix(_INVALID))
            return Answer(400, _error(bad, minor), minor)
        return Answer(200, document, minor)

    def _minor(self, header: str | None) -> int:
        """Return what comes after the point in the microversion asked for."""
        services = dict(
            part.strip().partition(' ')[::2]
            for part in (header or '').split(',')
        )
        version = services.get('placement') or '1.0'
        if version == 'latest':
            return self._newest
        match = _VERSION.fullmatch(version)
        if not match:
            raise _Failure(400, f'Invalid microversion: {version}')
        if match[1] != '1' or int(match[2]) > self._newest:
            raise _Failure(
                406,
                'Invalid microversion: Unacceptable version header: '
                f'{version}',
                min_version='1.0',
                max_version=f'1.{self._newest}',
            )
        return int(match[2])

    def _document(
        self, method: str, path: str, query_string: str, minor: int
    ) -> dict[str, Any]:
        found = _PROVIDER.fullmatch(path)
        if not found and path not in (
            '',
            '/',
            '/allocation_candidates',
            '/resource_providers',
        ):
            raise _Failure(404, f'the mocked Placement has no {path}')
        if method != 'GET':
            raise _Failure(405, 'the mocked Placement can only be read')
        if path in ('', '/'):
            return self._versions()
        if minor < _OLDEST:
            raise _Failure(
                501,
                'the mocked Placement answers from microversion '
                f'1.{_OLDEST} on, not 1.{minor}',
            )
        if found:
            return self._provider(found[1], found[2])
        if path == '/resource_providers':
            return self._providers(query_string, minor)
        return self._candidates(query_string, minor)

    def _versions(self) -> dict[str, Any]:
        return {
            'versions': [
                {
                    'id': 'v1.0',
                    'min_version': '1.0',
                    'max_version': f'1.{self._newest}',
                    'status': 'CURRENT',
                    'links': [{'rel': 'self', 'href': ''}],
                }
            ]
        }

    def _candidates(self, query_string: str, minor: int) -> dict[str, Any]:
        asked = query.candidates(query.parameters(query_string))
        _check_features(asked.features(), minor)
        answer = self._simulator.allocation_candidates(query_string)
        return {
            'allocation_requests': _allocation_requests(answer, minor),
            'provider_summaries': {
                provider: _summary(summary)
                for provider, summary in answer.summaries.items()
            },
        }

    def _providers(self, query_string: str, minor: int) -> dict[str, Any]:
        asked = query.providers(query.parameters(query_string))
        # Providers could be listed by tree long before candidates could.
        _check_features(set(asked.group.features()) - {mv.IN_TREE}, minor)
        found = self._simulator.resource_providers(query_string)
        return {'resource_providers': [self._listed(p) for p in found]}

    def _listed(self, provider: Provider) -> dict[str, Any]:
        index = self._simulator.index
        path = f'{self._prefix}/resource_providers/{provider.uuid}'
        return {
            'uuid': provider.uuid,
            'name': provider.name,
            'generation': _GENERATION,
            'parent_provider_uuid': provider.parent,
            'root_provider_uuid': index.uuids[
                index.root_of[index.numbers[provider.uuid]]
            ],
            'links': [
                {'rel': 'self', 'href': path},
                *({'rel': r, 'href': f'{path}/{r}'} for r in _LINKS),
            ],
        }

    def _provider(self, provider_id: str, part: str | None) -> dict[str, Any]:
        index = self._simulator.index
        if provider_id not in index.numbers:
            raise _Failure(
                404, f'No resource provider with uuid {provider_id} found'
            )
        provider = index.providers[index.numbers[provider_id]]
        if part is None:
            return self._listed(provider)
        return {
            part: _part(provider, part),
            'resource_provider_generation': _GENERATION,
        }


class _Failure(Exception):
    """Something else than an answer with status 200.

    :param status: The status.
    :param problem: What is wrong.
    :param facts: What else the answer says.
    """

    def __init__(self, status: int, problem: str, **facts: str) -> None:
        super().__init__(problem)
        self.status = status
        self.problem = problem
        self.facts = facts


def _error(failure: _Failure, minor: int | None) -> dict[str, Any]:
    """Return a failure as the JSON of an answer."""
    error: dict[str, Any] = {
        'status': failure.status,
        'title': http.HTTPStatus(failure.status).phrase,
        'detail': f'{_MEANINGS[failure.status]}\n\n {failure.problem}  ',
        'request_id': _REQUEST_ID,
        **failure.facts,
    }
    if minor is not None and minor >= _ERROR_CODES:
        error['code'] = 'placement.undefined_code'
    return {'errors': [error]}


def _check_features(features: Iterable[mv.Feature], minor: int) -> None:
    """Refuse what a microversion does not understand yet."""
    for feature in sorted(features):
        if feature.minor > minor:
            raise _Failure(
                400,
                f'Invalid query string parameters: {feature.purpose} needs '
                f'{feature.microversion}',
            )


def _allocation_requests(
    answer: AllocationCandidates, minor: int
) -> list[dict[str, Any]]:
    found = []
    for amounts, mappings in zip(
        answer.allocation_requests, answer.mappings, strict=True
    ):
        candidate: dict[str, Any] = {
            'allocations': {
                provider: {'resources': dict(resources)}
                for provider, resources in amounts.items()
            }
        }
        if minor >= _MAPPINGS:
            candidate['mappings'] = {
                suffix: list(providers)
                for suffix, providers in mappings.items()
            }
        found.append(candidate)
    return found


def _summary(summary: ProviderSummary) -> dict[str, Any]:
    return {
        'resources': {
            resource_class: {
                'capacity': capacity,
                'used': summary.used[resource_class],
            }
            for resource_class, capacity in summary.capacity.items()
        },
        'traits': sorted(summary.traits),
        'parent_provider_uuid': summary.parent,
        'root_provider_uuid': summary.root,
    }


def _part(provider: Provider, part: str) -> Any:
    """Return what is told of a provider under a path of its own."""
    if part == 'inventories':
        return {
            resource_class: dataclasses.asdict(inventory)
            for resource_class, inventory in provider.inventories.items()
        }
    if part == 'usages':
        return {
            resource_class: provider.usages.get(resource_class, 0)
            for resource_class in provider.inventories
        }
    if part == 'traits':
        return sorted(provider.traits)
    return sorted(provider.aggregates)
