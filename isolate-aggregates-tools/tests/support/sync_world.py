# SPDX-License-Identifier: Apache-2.0
"""A cloud for sync, of which each call can be broken."""

from fake_nova import NOVA, uuid
import placement_rows
from wired_world import WiredWorld

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates_tools.operate.sync import apply
from isolate_aggregates_tools.operate.sync import plan as plans
from isolate_aggregates_tools.operate.sync.snapshot import read

LICENSED, GOLD = 'CUSTOM_LICENSED', 'CUSTOM_GOLD'
# The call that reads the aggregates.
AGGREGATES = ('GET', f'{NOVA}/os-aggregates')


class World(WiredWorld):
    """Nova and Placement.

    :param client: The adapter of an embedded Placement, which is empty.
    :param conf: A configuration.
    """

    def __init__(self, client, conf):
        super().__init__(client)
        self._conf = conf
        self._connection = self.connection()
        self.cloud = self.fresh()
        conf.set_override(
            'placement_req_default_forbidden_member_prefix',
            ['reservation:'],
            ia_conf.SCHEDULER,
        )
        self.pipeline = Pipeline(loading.load(conf))

    def fresh(self):
        """Return a cloud without cached data."""
        return LiveCloud(self._conf, lambda: self._connection)

    @property
    def groups(self):
        """The aggregates by name."""
        return {
            found['name']: Aggregate(
                found['uuid'],
                found['name'],
                dict(found['metadata']),
                frozenset(found['hosts']),
            )
            for found in self.nova.aggregates.values()
        }

    def add_host(self, name, traits=(), aggregates=(), vcpus=4):
        """Add a compute node with its provider."""
        inventories = {'VCPU': {'total': vcpus}} if vcpus else None
        self.provide(name, uuid(1, name), inventories=inventories)
        self.put(name, traits=traits, aggregates=aggregates)
        self.add_node(name)

    def put(self, host, **what):
        """Write as another client; other fields do not change."""
        for part, values in what.items():
            path = f'/resource_providers/{uuid(1, host)}'
            for trait in values if part == 'traits' else ():
                if trait.startswith('CUSTOM_'):
                    self.direct.send('PUT', f'/traits/{trait}')
            generation = self.direct.get(path)['generation']
            self.direct.send(
                'PUT',
                f'{path}/{part}',
                {
                    'resource_provider_generation': generation,
                    part: sorted(values),
                },
            )

    def require(self, name, hosts, *traits):
        """Make or change an aggregate that requires traits."""
        self.remove(name)
        number = max(self.nova.aggregates, default=0) + 1
        self.nova.aggregates[number] = {
            'id': number,
            'uuid': uuid(2, name),
            'name': name,
            'hosts': sorted(hosts),
            'metadata': {f'trait:{trait}': 'required' for trait in traits},
            'availability_zone': None,
        }

    def remove(self, name):
        """Remove an aggregate, if there is one of that name."""
        self.nova.aggregates = {
            number: found
            for number, found in self.nova.aggregates.items()
            if found['name'] != name
        }

    def plan(self, parts=tuple(plans.Part), forget=False):
        snapshot = read(self.cloud)
        locks = self.pipeline.locks(snapshot.index)
        return plans.make(snapshot, locks, parts, forget)

    def sync(self, parts=tuple(plans.Part), parallel=1, forget=False):
        """Run sync once."""
        return self.carry_out(self.plan(parts, forget), parallel)

    def carry_out(self, plan, parallel=1):
        """Carry a plan out."""
        return apply.carry_out(
            plan,
            self.cloud.placement,
            self.cloud.nova.aggregates,
            self.pipeline.locks,
            parallel=parallel,
        )

    def todo(self):
        """Return what sync would change, in short."""
        changes = self.plan().changes
        return [f'{c.host}: {c.action} {c.subject}' for c in changes]

    def custom_traits(self):
        return placement_rows.custom('traits')

    def of(self, host, part):
        return getattr(placement_rows.read()[host], part)

    def picture(self):
        """Return all that sync might change: providers, and custom traits."""
        return {
            host: {'traits': rows.traits, 'aggregates': rows.aggregates}
            for host, rows in placement_rows.read().items()
        }, self.custom_traits()
