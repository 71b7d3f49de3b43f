# SPDX-License-Identifier: Apache-2.0
"""A cloud for reservations, of which each call can be broken."""

import datetime
import json
import logging
import re

from fake_nova import uuid
import jsonschema
import placement_backup
import placement_rows
from published_schemas import of_package
from wired_world import WiredWorld

from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import names
from isolate_aggregates_tools.placement import inventories

NOW = datetime.datetime(2027, 3, 1, 12, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)
PROJECT = 'a' * 32


def told(status):
    """Return what is wrong with a reservation, without what mends it."""
    return tuple(problem.partition(';')[0] for problem in status.problems)


class World(WiredWorld):
    """Nova and Placement, and the library over a wire.

    :param client: The adapter of a Placement, which is empty.
    :param database: What reads, keeps and restores its database.
    """

    def __init__(self, client, database=placement_backup):
        super().__init__(client, database)
        self.nova.on_delete = self.free
        self.store = self.new_store()

    def new_store(self, line=None, **settings):
        """Return what another process would have."""
        connection = self.connection(line)
        return reservations.ReservationStore(connection, **settings)

    def put_back(self, scene):
        """Have what was kept, and nothing else."""
        super().put_back(scene)
        self.store = self.new_store()
        self.wire.calls.clear()

    def play_once(self, name, play):
        """Set a scene in an empty cloud, which takes its time only once.

        :param name: Names the scene.
        :param play: Sets it.
        """
        scenes = _scenes.setdefault(self._database, {})
        if name not in scenes:
            play()
            scenes[name] = self.keep()
        self.put_back(scenes[name])

    # The cloud.

    def add_host(self, name, vcpus=10, enable=True, **inventory):
        """Add a compute node."""
        root = uuid(1, name)
        self.provide(
            name,
            root,
            inventories={
                'VCPU': {'total': vcpus, 'max_unit': vcpus, **inventory},
                'MEMORY_MB': {'total': 10240, 'max_unit': 10240},
                'DISK_GB': {'total': 100, 'max_unit': 100},
            },
        )
        self.add_node(name)
        if enable:
            self._enable(name, root)

    def add_device(self, host, name, traits=(), **amounts):
        """Add a provider below a compute node; return its uuid."""
        device = uuid(4, name)
        self.provide(
            f'{host}_{name}',
            device,
            uuid(1, host),
            {
                key: {'total': total, 'max_unit': total}
                for key, total in amounts.items()
            },
        )
        for trait in traits:
            self.direct.send('PUT', f'/traits/{trait}')
        self.direct.send(
            'PUT',
            f'/resource_providers/{device}/traits',
            {'resource_provider_generation': 1, 'traits': list(traits)},
        )
        return device

    def write_as_blazar(self):
        """Close planned slots as ``reserved``, and remove all markers."""
        for entry in self.direct.resource_providers():
            inventory = inventories.read(self.direct, entry['uuid'])
            if names.MARKER not in inventory.by_class:
                continue
            by_class = {
                name: {
                    'total': body['total'],
                    'reserved': body['total'],
                    'max_unit': 1,
                }
                if body['min_unit'] > body['max_unit']
                else body
                for name, body in inventory.by_class.items()
                if name != names.MARKER
            }
            inventories.write(
                self.direct,
                entry['uuid'],
                inventories.Inventories(inventory.generation, by_class),
            )

    def set_vcpus(self, name, vcpus):
        """Let a compute node have another number of VCPUs."""
        inventory = inventories.read(self.direct, uuid(1, name))
        by_class = {**inventory.by_class}
        by_class['VCPU'] = {**by_class['VCPU'], 'total': vcpus}
        by_class['VCPU']['max_unit'] = vcpus
        inventories.write(
            self.direct,
            uuid(1, name),
            inventories.Inventories(inventory.generation, by_class),
        )

    def _enable(self, name, root):
        """Do the same as the library, with fewer calls."""
        pool = self.set_pool()
        pool['hosts'].append(name)
        self.direct.send(
            'PUT',
            f'/resource_providers/{root}/aggregates',
            {'resource_provider_generation': 1, 'aggregates': [pool['uuid']]},
        )
        child = names.provider_uuid(root)
        self.provide(
            names.provider(name), child, root, {names.MARKER: {'total': 1}}
        )
        self.direct.send(
            'PUT',
            f'/resource_providers/{child}/traits',
            {'resource_provider_generation': 1, 'traits': [names.TRAIT]},
        )

    def set_pool(self):
        """Return the pool, made if there is none yet."""
        if not self.nova.aggregates:
            self.direct.send('PUT', f'/traits/{names.TRAIT}')
            inventories.create_class(self.direct, names.MARKER)
            self.nova.create_aggregate({}, {'aggregate': {'name': 'freepool'}})
            self.nova.aggregates[1]['metadata'] = dict(names.POOL_METADATA)
        return self.nova.aggregates[1]

    def rename_host(self, name, new_name):
        """Give a compute node another hypervisor hostname, as Nova does."""
        root = uuid(1, name)
        self.direct.send(
            'PUT', f'/resource_providers/{root}', {'name': new_name}
        )
        self.nova.nodes[root]['hypervisor_hostname'] = new_name

    def fail_host(self, name, state='down', status='enabled'):
        """Let a host be down or disabled."""
        self.nova.nodes[uuid(1, name)].update(state=state, status=status)

    def boot(
        self, server, host, reservation_id=None, flavor_needs=None, devices=()
    ):
        """Boot a server; return whether Placement accepts it.

        :param devices: Pairs of a provider and what it gives the server.
        """
        needs = flavor_needs or {'VCPU': 1, 'MEMORY_MB': 64}
        allocations = {
            provider: {'resources': amounts}
            for provider, amounts in ((uuid(1, host), needs), *devices)
        }
        if reservation_id is not None:
            allocations[self.child(host)] = {
                'resources': {names.resource_class(reservation_id): 1}
            }
        is_accepted = self.claim(uuid(3, server), allocations)
        if is_accepted:
            self.nova.servers[uuid(3, server)] = reservation_id or 'ordinary'
        return is_accepted

    def claim(self, server, allocations):
        """Claim resources for a server; return whether Placement accepts."""
        answer = self.direct._service.request(
            'PUT',
            f'/allocations/{server}',
            '1.28',
            {
                'allocations': allocations,
                'consumer_generation': None,
                'project_id': PROJECT,
                'user_id': PROJECT,
            },
            accept=(204, 400, 409),
        )
        # Nova has no host then either: the reservation has just ended.
        if answer.status_code == 400:
            assert 'No such resource class' in answer.text, answer.text
        return answer.status_code == 204

    def move(self, server, other):
        """Give what one consumer has to another, in one request as Nova."""
        now = self.direct.send('GET', f'/allocations/{server}')
        taken = {
            provider: {'resources': entry['resources']}
            for provider, entry in now['allocations'].items()
        }
        owner = {'project_id': PROJECT, 'user_id': PROJECT}
        self.direct.send(
            'POST',
            '/allocations',
            {
                server: {
                    **owner,
                    'allocations': {},
                    'consumer_generation': now['consumer_generation'],
                },
                other: {
                    **owner,
                    'allocations': taken,
                    'consumer_generation': None,
                },
            },
        )

    def free(self, server):
        """Give up the claim of a server."""
        self.direct.send('DELETE', f'/allocations/{server}', accept=(204, 404))

    # What is there.

    def child(self, host):
        """Return the uuid of the reservation provider of a host."""
        return names.provider_uuid(uuid(1, host))

    def classes(self):
        found = placement_rows.custom(
            'resource_classes', self._database.engine()
        )
        return [name for name in found if names.reservation_of(name)]

    def slots(self):
        """Return total and open slots by host and reservation."""
        return {
            (name, names.reservation_of(found)): (total, total - reserved)
            for name, rows in placement_rows.read(
                self._database.engine()
            ).items()
            if rows.parent
            for found, (total, reserved) in rows.inventories.items()
            if names.reservation_of(found)
        }

    def records(self):
        """Return the flavors of reservations as their newest records are."""
        found = {
            key: flavor
            for key, flavor in self.nova.flavors.items()
            if not names.revision_of(key) and not names.archive_of(key)
        }
        for key in self._newest().values():
            flavor = self.nova.flavors[key]
            first = found[names.revision_of(key).reservation]
            found[first['id']] = {
                **first,
                'description': flavor['description'],
            }
        return found

    def archives(self):
        """Return the flavors that are archives of ended reservations."""
        return {
            key: flavor
            for key, flavor in self.nova.flavors.items()
            if names.archive_of(key)
        }

    def litter(self):
        """Return the revisions of records that count for nothing."""
        newest = set(self._newest().values())
        return [
            key
            for key in self.nova.flavors
            if names.revision_of(key) and key not in newest
        ]

    def _newest(self):
        """Return the flavor with the newest revision of each record."""
        found = {}
        for key in sorted(self.nova.flavors):
            revision = names.revision_of(key)
            first = revision and self.nova.flavors.get(revision.reservation)
            if first and revision.incarnation in first['description']:
                found[first['id']] = key
        return found

    def picture(self):
        """Return all that the library writes, in Placement and Nova."""
        return {
            'providers': {
                name: {
                    'parent': rows.parent,
                    'traits': sorted(rows.traits),
                    'aggregates': sorted(rows.aggregates),
                    'is_marked': names.MARKER in rows.inventories,
                }
                for name, rows in placement_rows.read(
                    self._database.engine()
                ).items()
            },
            'slots': self.slots(),
            'classes': sorted(self.classes()),
            'flavors': {
                key: {
                    **value,
                    'description': _without_chance(value['description']),
                    'access': sorted(self.nova.access[key]),
                }
                for key, value in self.records().items()
            },
            'litter': self.litter(),
            'archives': {
                key: _without_chance(flavor['description'])
                for key, flavor in self.archives().items()
            },
            'aggregates': {
                found['name']: (sorted(found['hosts']), {**found['metadata']})
                for found in self.nova.aggregates.values()
            },
            'servers': dict(self.nova.servers),
        }


def _without_chance(description):
    """Return a description without what a refused or repeated command leaves.

    These are random parts, times and the number of changes asked for.
    """
    return re.sub(
        r'"(incarnation|at)": "[^"]*"|"change": \d+'
        r'|"unused_since": ("[^"]*"|null)',
        '',
        description or '',
    )


# By database.
_scenes = {}
SCHEMAS = of_package('isolate_aggregates_reservations')


def typed(run, *arguments):
    """Run a command, and let it leave no handler of the log behind.

    A JSON document must have its published schema.
    """
    root = logging.getLogger()
    handlers = list(root.handlers)
    result = run(*arguments)
    root.handlers[:] = handlers
    if 'json' in arguments and 'reservation' in arguments and result.out:
        jsonschema.validate(json.loads(result.out), _schema(arguments))
    return result


def _schema(arguments):
    words = ' '.join(arguments)
    [name] = [name for name in SCHEMAS if name in words]
    return SCHEMAS[name]
