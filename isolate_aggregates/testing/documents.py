# SPDX-License-Identifier: Apache-2.0
"""The JSON documents of the mocked Placement, by path.

Formats are those of the `Placement API reference
<https://docs.openstack.org/api-ref/placement/>`_, at each microversion.
Microversions are written without the ``1.`` here. The simulator computes
candidates and lists of providers. Data that is not in a snapshot is as
:mod:`~isolate_aggregates.cloud.load` would create it: all usage of a provider
belongs to one consumer.
"""

from collections.abc import Mapping
import dataclasses
import re
from typing import Any, NamedTuple

from isolate_aggregates.cloud import load
from isolate_aggregates.cloud.snapshot import Snapshot
from isolate_aggregates.placement import microversion as mv
from isolate_aggregates.placement.client import AllocationCandidates
from isolate_aggregates.placement.provider import Provider
from isolate_aggregates.placement.simulator import Simulator, query, refusal

Document = dict[str, Any]

# The microversions that introduced these parts of the API.
_AGGREGATES, _TRAITS, _ALLOCATIONS = 1, 6, 11
_BY_PROVIDER = _CONSUMER_PROJECT = 12
_PARENTS = 14
_SUMMARY_TRAITS = 17
_AGGREGATE_GENERATION = 19
_SUMMARY_CLASSES = 27
_CONSUMER_GENERATION = 28
_MAPPINGS = 34
_CONSUMER_TYPE = 38

# Constant, as the mock is read-only.
_GENERATION = 0
_WITH_GENERATION = {'resource_provider_generation': _GENERATION}

_TYPE = re.compile('[A-Z0-9_]+$|all|unknown$')


class Asked(NamedTuple):
    """The parts of a request apart from the path.

    :param minor: The microversion.
    :param query: The query string.
    """

    minor: int
    query: str

    def parameters(self, *names: str) -> dict[str, str]:
        """Return the query parameters; the last value of each.

        :param names: The valid names.
        :raises Refused: if there is another parameter.
        """
        found = dict(query.parameters(self.query))
        unknown = sorted(found.keys() - set(names))
        if unknown:
            raise refusal.Refused(
                f'there is no parameter {", ".join(unknown)}'
            )
        return found


class Failure(Exception):
    """An error response.

    :param status: The HTTP status.
    :param problem: The error message.
    :param facts: Further fields of the error.
    :param headers: The headers of the response.
    """

    def __init__(
        self,
        status: int,
        problem: str,
        facts: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(problem)
        self.status = status
        self.problem = problem
        self.facts = facts or {}
        self.headers = headers or {}


class Documents:
    """The documents of a snapshot, with a method for each path.

    :param snapshot: The cloud.
    :param newest: The newest supported microversion.
    :param prefix: The prefix of the paths in links.
    """

    def __init__(self, snapshot: Snapshot, newest: int, prefix: str) -> None:
        self._newest = newest
        self._prefix = prefix
        self._simulator = Simulator(
            snapshot.providers, snapshot.traits, snapshot.resource_classes
        )
        self._consumers = {
            load.consumer(provider): provider
            for provider in snapshot.providers
            if _used(provider)
        }

    def versions(self, asked: Asked) -> Document:
        """Show the supported microversions."""
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

    def candidates(self, asked: Asked) -> Document:
        """List allocation candidates."""
        minor = asked.minor
        answer = self._simulator.allocation_candidates(asked.query, minor)
        classes = self._simulator.resource_classes
        if minor < _SUMMARY_CLASSES:
            request = query.candidates(query.parameters(asked.query), minor)
            classes = frozenset(request.merged_resources())
        summaries = {
            provider: {
                'resources': {
                    resource_class: {
                        'capacity': capacity,
                        'used': summary.used[resource_class],
                    }
                    for resource_class, capacity in summary.capacity.items()
                    if resource_class in classes
                },
                **_known(
                    minor,
                    traits=(_SUMMARY_TRAITS, sorted(summary.traits)),
                    parent_provider_uuid=(mv.NESTED.minor, summary.parent),
                    root_provider_uuid=(mv.NESTED.minor, summary.root),
                ),
            }
            for provider, summary in answer.summaries.items()
        }
        return {
            'allocation_requests': _allocation_requests(answer, minor),
            'provider_summaries': summaries,
        }

    def providers(self, asked: Asked) -> Document:
        """List resource providers."""
        found = self._simulator.resource_providers(asked.query, asked.minor)
        return {
            'resource_providers': [self._show(p, asked.minor) for p in found]
        }

    def provider(self, asked: Asked, provider: str) -> Document:
        """Show a resource provider."""
        return self._show(self._find(provider), asked.minor)

    def inventories(self, asked: Asked, provider: str) -> Document:
        """List the inventories of a provider."""
        found = {
            resource_class: dataclasses.asdict(inventory)
            for resource_class, inventory in self._find(
                provider
            ).inventories.items()
        }
        return {'inventories': found, **_WITH_GENERATION}

    def inventory(
        self, asked: Asked, provider: str, resource_class: str
    ) -> Document:
        """Show an inventory of a provider."""
        found = self._find(provider).inventories.get(resource_class)
        if found is None:
            raise Failure(
                404, f'No inventory of class {resource_class} for {provider}'
            )
        return {**dataclasses.asdict(found), **_WITH_GENERATION}

    def usages(self, asked: Asked, provider: str) -> Document:
        """List the usages of a provider."""
        found = self._find(provider)
        usages = {rc: found.usages.get(rc, 0) for rc in found.inventories}
        return {'usages': usages, **_WITH_GENERATION}

    def aggregates(self, asked: Asked, provider: str) -> Document:
        """List the aggregates of a provider."""
        return {
            'aggregates': sorted(self._find(provider).aggregates),
            **(
                _WITH_GENERATION
                if asked.minor >= _AGGREGATE_GENERATION
                else {}
            ),
        }

    def provider_traits(self, asked: Asked, provider: str) -> Document:
        """List the traits of a provider."""
        traits = sorted(self._find(provider).traits)
        return {'traits': traits, **_WITH_GENERATION}

    def allocations(self, asked: Asked, provider: str) -> Document:
        """List the allocations of a provider."""
        found = self._find(provider)
        allocation = {
            'resources': _used(found),
            **_known(
                asked.minor, consumer_generation=(_CONSUMER_GENERATION, 1)
            ),
        }
        consumer = load.consumer(found)
        return {
            'allocations': {consumer: allocation} if _used(found) else {},
            **_WITH_GENERATION,
        }

    def consumer(self, asked: Asked, consumer: str) -> Document:
        """List the allocations of a consumer."""
        provider = self._consumers.get(consumer)
        if provider is None:
            return {'allocations': {}}
        allocation = {'generation': _GENERATION, 'resources': _used(provider)}
        return {
            'allocations': {provider.uuid: allocation},
            **_known(
                asked.minor,
                project_id=(_CONSUMER_PROJECT, load.OWNER),
                user_id=(_CONSUMER_PROJECT, load.OWNER),
                consumer_generation=(_CONSUMER_GENERATION, 1),
                consumer_type=(_CONSUMER_TYPE, 'unknown'),
            ),
        }

    def total_usages(self, asked: Asked) -> Document:
        """Show the total usages of a project."""
        typed = asked.minor >= _CONSUMER_TYPE
        names = (
            'project_id',
            'user_id',
            *(['consumer_type'] if typed else []),
        )
        wanted = asked.parameters(*names)
        if 'project_id' not in wanted:
            raise refusal.Refused('project_id is required')
        for name, value in wanted.items():
            if not 0 < len(value) <= 255:
                raise refusal.Refused(f'{name} is empty or longer than 255')
        kind = wanted.get('consumer_type', 'unknown')
        if not _TYPE.match(kind):
            raise refusal.Refused(f'{kind!r} is not a consumer type')
        owners = {wanted['project_id'], wanted.get('user_id', load.OWNER)}
        total: Document = {}
        if owners == {load.OWNER} and kind in ('all', 'unknown'):
            for provider in self._consumers.values():
                for resource_class, amount in _used(provider).items():
                    total[resource_class] = (
                        total.get(resource_class, 0) + amount
                    )
        if typed and total:
            total = {kind: {**total, 'consumer_count': len(self._consumers)}}
        return {'usages': total}

    def resource_classes(self, asked: Asked) -> Document:
        """List all resource classes."""
        return {
            'resource_classes': [
                self.resource_class(asked, name)
                for name in sorted(self._simulator.resource_classes)
            ]
        }

    def resource_class(self, asked: Asked, name: str) -> Document:
        """Show a resource class."""
        if name not in self._simulator.resource_classes:
            raise Failure(404, f'No such resource class {name}.')
        href = f'{self._prefix}/resource_classes/{name}'
        return {'name': name, 'links': [{'rel': 'self', 'href': href}]}

    def traits(self, asked: Asked) -> Document:
        """List traits."""
        wanted = asked.parameters('name', 'associated')
        operator, colon, value = wanted.get('name', ':').partition(':')
        if not colon:
            raise refusal.Refused(
                f'name={operator} is not in:A,B or startswith:A'
            )
        found = set(self._simulator.traits)
        # Placement ignores other operators.
        if operator == 'in':
            found &= set(value.split(','))
        elif operator == 'startswith':
            found = {name for name in found if name.startswith(value)}
        associated = wanted.get('associated', '').lower()
        if associated == 'true':
            found &= set(self._simulator.index.traits)
        elif associated == 'false':
            found -= set(self._simulator.index.traits)
        elif 'associated' in wanted:
            raise refusal.Refused(
                f'associated={associated} is neither true nor false'
            )
        return {'traits': sorted(found)}

    def trait(self, asked: Asked, name: str) -> None:
        """Show a trait, which has no document.

        :raises Failure: if it does not exist.
        """
        if name not in self._simulator.traits:
            raise Failure(404, f'No such trait(s): {name}.')

    def _find(self, provider: str) -> Provider:
        index = self._simulator.index
        if provider not in index.numbers:
            raise Failure(
                404, f'No resource provider with uuid {provider} found'
            )
        return index.providers[index.numbers[provider]]

    def _show(self, provider: Provider, minor: int) -> Document:
        index = self._simulator.index
        path = f'{self._prefix}/resource_providers/{provider.uuid}'
        root = index.root_of[index.numbers[provider.uuid]]
        parts = _known(
            minor,
            inventories=(0, f'{path}/inventories'),
            usages=(0, f'{path}/usages'),
            aggregates=(_AGGREGATES, f'{path}/aggregates'),
            traits=(_TRAITS, f'{path}/traits'),
            allocations=(_ALLOCATIONS, f'{path}/allocations'),
        )
        return {
            'uuid': provider.uuid,
            'name': provider.name,
            'generation': _GENERATION,
            'links': [
                {'rel': rel, 'href': href}
                for rel, href in {'self': path, **parts}.items()
            ],
            **_known(
                minor,
                parent_provider_uuid=(_PARENTS, provider.parent),
                root_provider_uuid=(_PARENTS, index.uuids[root]),
            ),
        }


def _known(minor: int, **fields: tuple[int, Any]) -> Document:
    """Return the fields that exist in a microversion.

    :param fields: For each field the microversion that introduced it, and its
        value.
    """
    return {
        name: value
        for name, (since, value) in fields.items()
        if minor >= since
    }


def _used(provider: Provider) -> dict[str, int]:
    return {rc: amount for rc, amount in provider.usages.items() if amount}


def _allocation_requests(
    answer: AllocationCandidates, minor: int
) -> list[Document]:
    found = []
    for amounts, mappings in zip(
        answer.allocation_requests, answer.mappings, strict=True
    ):
        allocations: Any = {
            provider: {'resources': dict(resources)}
            for provider, resources in amounts.items()
        }
        if minor < _BY_PROVIDER:
            allocations = [
                {'resource_provider': {'uuid': provider}, **allocation}
                for provider, allocation in allocations.items()
            ]
        groups = {suffix: list(uuids) for suffix, uuids in mappings.items()}
        found.append(
            {
                'allocations': allocations,
                **_known(minor, mappings=(_MAPPINGS, groups)),
            }
        )
    return found
