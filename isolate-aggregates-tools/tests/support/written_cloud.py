# SPDX-License-Identifier: Apache-2.0
"""A real Placement that other clients write to at random, while it is read."""

import dataclasses
import uuid

import os_traits
from wired_world import WiredWorld

from isolate_aggregates import exception
from isolate_aggregates.placement import NESTED, Feature
from isolate_aggregates_tools.cloud.live import snapshots
from isolate_aggregates_tools.cloud.live.provider_memory import ProviderMemory
from isolate_aggregates_tools.compute.client import NovaClient
from isolate_aggregates_tools.placement.client import PlacementClient

HOSTS = 8
GENERATION = 'resource_provider_generation'
OLD = Feature(18, 'aggregates without a generation', 'Queens')
REPARENTING = Feature(37, 're-parenting', 'Wallaby')
CLASSES = ('VCPU', 'MEMORY_MB', 'DISK_GB', 'CUSTOM_SLOT')
SHARES = os_traits.MISC_SHARES_VIA_AGGREGATE
TRAITS = ('CUSTOM_A', 'CUSTOM_B', 'HW_CPU_X86_VMX')


def an_id(*names):
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, '.'.join(map(str, names))))


# In Nova; in neither Nova nor, at first, any provider.
KNOWN = [an_id('aggregate', number) for number in range(4)]
UNKNOWN = [an_id('unknown', number) for number in range(2)]


class Cloud(WiredWorld):
    """A Placement that other clients write to, and a service that reads it."""

    def __init__(self, client, chance):
        super().__init__(client)
        self.chance = chance
        connection = self.connection()
        self.nova_client = NovaClient(connection)
        self.placement = PlacementClient(connection.adapter('placement'))
        self.memory = ProviderMemory()
        # Of sync, which reads only roots.
        self.memory_of_roots = ProviderMemory()
        # The providers with changes that may be seen late.
        self.late = set()
        for name in CLASSES[3:]:
            self.direct.send('PUT', f'/resource_classes/{name}')
        for name in TRAITS[:2]:
            self.direct.send('PUT', f'/traits/{name}')
        self.numbers = iter(range(10**9))

    def host(self):
        """Add a compute node with inventories, traits and aggregates."""
        number = next(self.numbers)
        name = f'h{number:05}'
        root = self.add_node(name)
        self.provide(name, root)
        self.inventories(root)
        self.traits(root)
        self.aggregates(root)
        return root

    def read(self, memory=None):
        """Read all providers, as a service does."""
        return snapshots.take_providers(
            self.nova_client,
            self.placement,
            memory=memory,
            members_of=KNOWN,
        )

    def truth(self):
        """Read everything there is of each provider, as far as it matters.

        Requests name the aggregates of Nova, sharing providers all theirs, and
        ports those of network segments, which are no compute nodes.
        """
        found = snapshots.take_providers(self.nova_client, self.direct)
        matter = set(KNOWN).union(
            *(
                provider.aggregates
                for provider in found
                if SHARES in provider.traits
                or (provider.parent is None and provider.host is None)
            )
        )
        return [
            dataclasses.replace(p, aggregates=p.aggregates & matter)
            for p in found
        ]

    def read_capacities(self):
        """Read what ``lock list`` needs, and return the amounts."""
        found = snapshots.take_capacities(self.nova_client, self.placement)
        return [amounts(provider) for provider in found]

    def read_roots(self, memory=None):
        """Read the traits and aggregates of root providers."""
        return snapshots.take_roots(
            self.nova_client,
            self.placement,
            memory=memory,
            members_of=KNOWN,
        )

    def hidden(self):
        """Return the providers of trees of which summaries may not be read."""
        listed = self.listed()
        free = {
            entry['root_provider_uuid']
            for entry in self.direct.read(
                '/resource_providers?resources=VCPU:1',
                lambda document: document['resource_providers'],
            )
        }
        return {
            entry['uuid']
            for entry in listed
            if entry['root_provider_uuid'] not in free
        }

    def calls(self, during=None):
        """Return how many calls to Placement a round takes.

        :param during: Called before each call.
        """
        self.wire.calls.clear()
        self.wire.meddle = during
        try:
            self.read(self.memory)
            self.read_roots(self.memory_of_roots)
        except exception.ServiceError:
            # A provider was deleted while it was read.
            assert during
        finally:
            self.wire.meddle = None
        calls = [url for _, url in self.wire.calls]
        return sum(url.startswith(self.endpoint) for url in calls)

    # Writes of other clients.

    def listed(self):
        return self.direct.resource_providers()

    def any(self):
        """Return a random provider."""
        return self.chance.choice(self.listed())

    def put(self, provider, part, value, feature=None):
        path = f'/resource_providers/{provider}'
        body = {GENERATION: self.direct.get(path)['generation'], part: value}
        if feature:
            body = value
        self.direct.send('PUT', f'{path}/{part}', body, feature or NESTED)

    def some(self, names, most=None):
        number = self.chance.randint(0, most or len(names))
        return self.chance.sample(names, number)

    def inventories(self, provider=None):
        provider = provider or self.any()['uuid']
        self.put(
            provider,
            'inventories',
            {
                name: {
                    'total': self.chance.randint(1, 4),
                    'reserved': self.chance.choice([0, 0, 1]),
                    'min_unit': self.chance.choice([1, 1, 2]),
                    'max_unit': self.chance.randint(1, 4),
                    'step_size': self.chance.choice([1, 1, 2]),
                }
                for name in ['VCPU', *self.some(CLASSES[1:])]
            },
        )

    def traits(self, provider=None):
        some = self.some(TRAITS)
        if self.chance.random() < 0.1:
            some.append(SHARES)
        self.put(provider or self.any()['uuid'], 'traits', some)

    def aggregates(self, provider=None):
        self.put(
            provider or self.any()['uuid'],
            'aggregates',
            self.some([*KNOWN, *UNKNOWN], 2),
        )

    def old_aggregates(self):
        """Write aggregates so that the generation is not raised."""
        provider = self.any()['uuid']
        value = self.some([*KNOWN, *UNKNOWN], 2)
        self.put(provider, 'aggregates', value, OLD)

    def allocate(self):
        """Claim something, also for a consumer that has something."""
        provider = self.any()['uuid']
        consumer = an_id('consumer', self.chance.randrange(6))
        now = self.direct.get(f'/allocations/{consumer}')
        self.direct.send(
            'PUT',
            f'/allocations/{consumer}',
            {
                'allocations': {provider: {'resources': {'VCPU': 1}}},
                'project_id': 'p',
                'user_id': 'u',
                'consumer_generation': now.get('consumer_generation'),
            },
        )

    def free(self):
        """Delete allocations, which raises no generation."""
        consumer = an_id('consumer', self.chance.randrange(6))
        self.direct.send('DELETE', f'/allocations/{consumer}')

    def rename(self):
        provider = self.any()
        self.direct.send(
            'PUT',
            f'/resource_providers/{provider["uuid"]}',
            {
                'name': f'renamed-{next(self.numbers)}',
                'parent_provider_uuid': provider['parent_provider_uuid'],
            },
        )

    def segment(self):
        """Add a root that is no compute node, such as a network segment."""
        segment = an_id('segment', next(self.numbers))
        self.provide(segment, segment)
        self.aggregates(segment)

    def add_child(self):
        child = an_id('child', next(self.numbers))
        self.provide(child, child, self.any()['uuid'])
        self.inventories(child)
        self.aggregates(child)

    def adopt(self):
        """Give a provider another parent."""
        child, parent = self.any(), self.any()
        if child['root_provider_uuid'] != parent['root_provider_uuid']:
            self.direct.send(
                'PUT',
                f'/resource_providers/{child["uuid"]}',
                {
                    'name': child['name'],
                    'parent_provider_uuid': parent['uuid'],
                },
                REPARENTING,
            )

    def delete(self):
        if len(self.listed()) > HOSTS // 2:
            path = f'/resource_providers/{self.any()["uuid"]}'
            self.direct.send('DELETE', path)

    def recreate(self):
        """Delete a provider, and create it again with other contents."""
        provider = self.any()
        self.direct.send('DELETE', f'/resource_providers/{provider["uuid"]}')
        self.provide(
            provider['name'],
            provider['uuid'],
            provider['parent_provider_uuid'],
        )
        for write in self.some([self.inventories, self.traits]):
            write(provider['uuid'])
        self.aggregates(provider['uuid'])
        self.late.add(provider['uuid'])

    def largest(self, provider, amount):
        """Write the largest amount of CPUs for one server."""
        inventory = {'total': 4, 'max_unit': amount}
        self.put(provider, 'inventories', {'VCPU': inventory})

    def create_alike(self, provider, amount):
        """Create a provider again; only the largest amount tells."""
        path = f'/resource_providers/{provider}'
        before = self.direct.get(path)
        traits = self.direct.get(f'{path}/traits')['traits']
        self.direct.send('DELETE', path)
        self.provide(before['name'], provider)
        self.put(provider, 'traits', traits)
        while self.direct.get(path)['generation'] < before['generation']:
            self.largest(provider, amount)

    def write(self):
        """Write as another client; Placement may reject it."""
        kind = self.chance.choice(
            [
                self.inventories,
                self.traits,
                self.aggregates,
                self.old_aggregates,
                self.allocate,
                self.allocate,
                self.free,
                self.rename,
                self.segment,
                self.add_child,
                self.adopt,
                self.delete,
                self.recreate,
                self.host,
            ]
        )
        try:
            kind()
        except exception.ServiceError:
            # For example, a provider with allocations cannot be deleted.
            return None
        return kind.__name__


def amounts(provider):
    """Return the capacity and usage of a provider, and what it is."""
    return (
        (provider.uuid, provider.name, provider.parent, provider.host),
        provider.traits,
        {rc: one.capacity for rc, one in provider.inventories.items()},
        provider.usages,
    )
