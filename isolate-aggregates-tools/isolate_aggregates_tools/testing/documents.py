# SPDX-License-Identifier: Apache-2.0
"""The JSON documents of the mocked Placement, by path.

Formats are those of the `Placement API reference
<https://docs.openstack.org/api-ref/placement/>`_ at the microversions that
:mod:`~isolate_aggregates_tools.testing.service` lists for each path.
Microversions are written without the ``1.`` here. The simulator computes
candidates and lists of providers. Data that is not in a snapshot is as
:mod:`~isolate_aggregates_tools.cloud.file.load` would create it: all usage of
a provider belongs to one consumer.
"""

import dataclasses
import re
from typing import Any, NamedTuple

from isolate_aggregates_tools import placement_rows
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.placement.client import (
    AllocationCandidates,
    ProviderSummary,
)
from isolate_aggregates_tools.placement.provider import Provider
from isolate_aggregates_tools.simulator import Simulator, query, refusal

Document = dict[str, Any]

# The microversions that introduced these parts of the responses.
_CONSUMER_GENERATION = 28
_MAPPINGS = 34
_CONSUMER_TYPE = 38

# Constant, as the mock is read-only.
_GENERATION = 0
_WITH_GENERATION = {'resource_provider_generation': _GENERATION}

# The parts of a provider that it has links to.
_PARTS = ('inventories', 'usages', 'aggregates', 'traits', 'allocations')
# In microversion 1.0, with which Nova finds a provider by its name.
_FIRST_PARTS = ('inventories', 'usages')

_TYPE = re.compile('[A-Z0-9_]+$|all|unknown$')


class Query(NamedTuple):
    """A query string and the microversion that it is sent with."""

    minor: int
    text: str

    def parameters(self, *names: str) -> dict[str, str]:
        """Return the query parameters; the last value of each.

        :raises Refused: if one has another name than these.
        """
        values = dict(query.parameters(self.text))
        unknown = sorted(values.keys() - set(names))
        if unknown:
            raise refusal.Refused(
                f'there is no parameter {", ".join(unknown)}'
            )
        return values


# The largest integer of SQLite, which the embedded Placement uses.
_MAX_SQLITE = 2**63 - 1


class Failure(Exception):
    """An error response; ``fields`` are further ones of the error."""

    def __init__(self, status: int, problem: str, **fields: str) -> None:
        super().__init__(problem)
        self.status = status
        self.problem = problem
        self.fields = fields


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
            snapshot.providers,
            snapshot.traits,
            snapshot.resource_classes,
            _MAX_SQLITE,
        )
        self._consumers = {
            placement_rows.consumer(provider): provider
            for provider in snapshot.providers
            if _used(provider)
        }

    def versions(self, request: Query) -> Document:
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

    def candidates(self, request: Query) -> Document:
        """List allocation candidates."""
        answer = self._simulator.allocation_candidates(
            request.text, request.minor
        )
        return {
            'allocation_requests': _allocation_requests(answer, request.minor),
            'provider_summaries': {
                uuid: _summary(summary)
                for uuid, summary in answer.summaries.items()
            },
        }

    def providers(self, request: Query) -> Document:
        """List resource providers."""
        providers = self._simulator.resource_providers(
            request.text, request.minor
        )
        return {
            'resource_providers': [
                self._show(provider, request.minor) for provider in providers
            ]
        }

    def provider(self, request: Query, provider: str) -> Document:
        """Show a resource provider."""
        return self._show(self._find(provider), request.minor)

    def inventories(self, request: Query, provider: str) -> Document:
        """List the inventories of a provider."""
        inventories = {
            resource_class: dataclasses.asdict(inventory)
            for resource_class, inventory in self._find(
                provider
            ).inventories.items()
        }
        return {'inventories': inventories, **_WITH_GENERATION}

    def inventory(
        self, request: Query, provider: str, resource_class: str
    ) -> Document:
        """Show an inventory of a provider."""
        inventory = self._find(provider).inventories.get(resource_class)
        if inventory is None:
            raise Failure(
                404, f'No inventory of class {resource_class} for {provider}'
            )
        return {**dataclasses.asdict(inventory), **_WITH_GENERATION}

    def usages(self, request: Query, provider: str) -> Document:
        """List the usages of a provider."""
        host = self._find(provider)
        usages = {rc: host.usages.get(rc, 0) for rc in host.inventories}
        return {'usages': usages, **_WITH_GENERATION}

    def aggregates(self, request: Query, provider: str) -> Document:
        """List the aggregates of a provider."""
        aggregates = sorted(self._find(provider).aggregates)
        return {'aggregates': aggregates, **_WITH_GENERATION}

    def provider_traits(self, request: Query, provider: str) -> Document:
        """List the traits of a provider."""
        traits = sorted(self._find(provider).traits)
        return {'traits': traits, **_WITH_GENERATION}

    def allocations(self, request: Query, provider: str) -> Document:
        """List the allocations of a provider."""
        host = self._find(provider)
        usage = _used(host)
        allocation: Document = {'resources': usage}
        if request.minor >= _CONSUMER_GENERATION:
            allocation['consumer_generation'] = 1
        return {
            'allocations': {placement_rows.consumer(host): allocation}
            if usage
            else {},
            **_WITH_GENERATION,
        }

    def consumer(self, request: Query, consumer: str) -> Document:
        """List the allocations of a consumer."""
        provider = self._consumers.get(consumer)
        if provider is None:
            return {'allocations': {}}
        allocation = {'generation': _GENERATION, 'resources': _used(provider)}
        document = {
            'allocations': {provider.uuid: allocation},
            'project_id': placement_rows.OWNER,
            'user_id': placement_rows.OWNER,
            'consumer_generation': 1,
        }
        if request.minor >= _CONSUMER_TYPE:
            document['consumer_type'] = 'unknown'
        return document

    def total_usages(self, request: Query) -> Document:
        """Show the total usages of a project."""
        has_types = request.minor >= _CONSUMER_TYPE
        names = (
            'project_id',
            'user_id',
            *(['consumer_type'] if has_types else []),
        )
        parameters = request.parameters(*names)
        if 'project_id' not in parameters:
            raise refusal.Refused('project_id is required')
        for name, value in parameters.items():
            if not 0 < len(value) <= 255:
                raise refusal.Refused(f'{name} is empty or longer than 255')
        kind = parameters.get('consumer_type', 'unknown')
        if not _TYPE.match(kind):
            raise refusal.Refused(f'{kind!r} is not a consumer type')
        owners = {
            parameters['project_id'],
            parameters.get('user_id', placement_rows.OWNER),
        }
        total: Document = {}
        if owners == {placement_rows.OWNER} and kind in ('all', 'unknown'):
            for provider in self._consumers.values():
                for resource_class, amount in _used(provider).items():
                    total[resource_class] = (
                        total.get(resource_class, 0) + amount
                    )
        if has_types and total:
            total = {kind: {**total, 'consumer_count': len(self._consumers)}}
        return {'usages': total}

    def resource_classes(self, request: Query) -> Document:
        """List all resource classes."""
        return {
            'resource_classes': [
                self.resource_class(request, name)
                for name in sorted(self._simulator.resource_classes)
            ]
        }

    def resource_class(self, request: Query, name: str) -> Document:
        """Show a resource class."""
        if name not in self._simulator.resource_classes:
            raise Failure(404, f'No such resource class {name}.')
        href = f'{self._prefix}/resource_classes/{name}'
        return {'name': name, 'links': [{'rel': 'self', 'href': href}]}

    def traits(self, request: Query) -> Document:
        """List traits."""
        parameters = request.parameters('name', 'associated')
        operator, colon, value = parameters.get('name', ':').partition(':')
        if not colon:
            raise refusal.Refused(
                f'name={operator} is not in:A,B or startswith:A'
            )
        traits = set(self._simulator.traits)
        # Placement ignores other operators.
        if operator == 'in':
            traits &= set(value.split(','))
        elif operator == 'startswith':
            traits = {name for name in traits if name.startswith(value)}
        associated = parameters.get('associated', '').lower()
        if associated == 'true':
            traits &= set(self._simulator.index.traits)
        elif associated == 'false':
            traits -= set(self._simulator.index.traits)
        elif 'associated' in parameters:
            raise refusal.Refused(
                f'associated={associated} is neither true nor false'
            )
        return {'traits': sorted(traits)}

    def trait(self, request: Query, name: str) -> None:
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
        links = {'self': path}
        parts = _PARTS if minor else _FIRST_PARTS
        links.update((part, f'{path}/{part}') for part in parts)
        parents = {
            'parent_provider_uuid': provider.parent,
            'root_provider_uuid': index.uuids[root],
        }
        return {
            'uuid': provider.uuid,
            'name': provider.name,
            'generation': _GENERATION,
            **(parents if minor else {}),
            'links': [
                {'rel': rel, 'href': href} for rel, href in links.items()
            ],
        }


def _summary(summary: ProviderSummary) -> Document:
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


def _used(provider: Provider) -> dict[str, int]:
    return {rc: amount for rc, amount in provider.usages.items() if amount}


def _allocation_requests(
    answer: AllocationCandidates, minor: int
) -> list[Document]:
    requests = []
    for amounts, mappings in zip(
        answer.allocation_requests, answer.mappings, strict=True
    ):
        request: Document = {
            'allocations': {
                provider: {'resources': dict(resources)}
                for provider, resources in amounts.items()
            }
        }
        if minor >= _MAPPINGS:
            request['mappings'] = {
                suffix: list(uuids) for suffix, uuids in mappings.items()
            }
        requests.append(request)
    return requests
