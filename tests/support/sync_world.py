# SPDX-License-Identifier: Apache-2.0
"""A real Placement with a fake Nova, for sync.

Each call to either goes over a wire where a test can count calls, break them,
or let somebody else write in between.
"""

import copy
import dataclasses
import json

from fake_nova import uuid
from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exceptions
import placement_backup
import placement_rows
import requests

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates.tools.compute.client import ComputeNode
from isolate_aggregates.tools.operate.sync import apply
from isolate_aggregates.tools.operate.sync import plan as plans
from isolate_aggregates.tools.operate.sync.snapshot import read
from isolate_aggregates.tools.placement.client import PlacementClient

PARTS = ('traits', 'aggregates')
LICENSED, GOLD = 'CUSTOM_LICENSED', 'CUSTOM_GOLD'


class Wire(adapter.Adapter):
    """Carries calls.

    :param client: The adapter of Placement.
    """

    def __init__(self, client):
        super().__init__(client.session, service_type='placement')
        self.calls = []
        self.fault = None
        self.meddle = None
        self.before = None

    def request(self, url, method, **kwargs):
        """Carry a call to Placement."""
        fault = self.count(method, url)
        if fault in ('refused', 'cut'):
            return self.fail(fault)
        if self.meddle:
            self.meddle(method, url)
        answer = super().request(url, method, **kwargs)
        return self.fail('cut') if fault == 'lost' else answer

    def count(self, method, url):
        """Note a call and return what shall happen to it."""
        self.calls.append((method, url))
        if self.before:
            self.before()
        return self.fault and self.fault(len(self.calls))

    @staticmethod
    def fail(fault):
        if fault == 'cut':
            raise ks_exceptions.ConnectFailure('the wire is cut')
        answer = requests.Response()
        answer.status_code = 500
        answer._content = json.dumps({'errors': [{'detail': 'no'}]}).encode()
        return answer


@dataclasses.dataclass
class NovaReader:
    """Stands in for this package's client of Nova; it needs no HTTP."""

    wire: Wire
    nodes: list = dataclasses.field(default_factory=list)
    groups: dict = dataclasses.field(default_factory=dict)

    def aggregates(self):
        self._pass()
        return list(self.groups.values())

    def compute_nodes(self):
        self._pass()
        return None if self.nodes is None else list(self.nodes)

    def set_metadata(self, aggregate, metadata):
        self._pass('POST')
        # As it is by now.
        group = self.groups[aggregate.name]
        merged = {**group.metadata, **metadata}
        self.groups[aggregate.name] = dataclasses.replace(
            group, metadata={k: v for k, v in merged.items() if v is not None}
        )

    def _pass(self, method='GET'):
        if self.wire.count(method, 'nova'):
            raise exception.ServiceUnreachable('Nova', None, 'is cut off.')


class World:
    """Nova and Placement.

    :param client: The adapter of an embedded Placement, which is empty.
    :param conf: A configuration.
    """

    def __init__(self, client, conf):
        self.wire = Wire(client)
        self.placement = PlacementClient(self.wire)
        # For the test itself: these calls are never broken.
        self.direct = PlacementClient(client)
        self.nova = NovaReader(self.wire)
        self.conf = conf
        self.cloud = LiveCloud(conf, connect=None)
        self.cloud.nova, self.cloud.placement = self.nova, self.placement
        conf.set_override(
            'placement_req_default_forbidden_member_prefix',
            ['reservation:'],
            ia_conf.SCHEDULER,
        )
        self.pipeline = Pipeline(loading.load(conf))
        self._empty = self.keep()

    def keep(self):
        """Return a copy of the state of both."""
        nova = self.nova.nodes, self.nova.groups
        return placement_backup.keep(), copy.deepcopy(nova)

    def put_back(self, scene):
        """Have what was kept, and nothing else."""
        placement, nova = scene
        placement_backup.put_back(placement)
        self.nova.nodes, self.nova.groups = copy.deepcopy(nova)
        self.wire.fault = self.wire.meddle = self.wire.before = None
        self.wire.calls.clear()

    def reset(self):
        """Forget everything."""
        self.put_back(self._empty)

    def add_host(self, name, traits=(), aggregates=(), vcpus=4):
        """Add a compute node with its provider."""
        body = {'uuid': uuid(1, name), 'name': name}
        self.direct.send('POST', '/resource_providers', body)
        if vcpus:
            self.direct.send(
                'PUT',
                f'/resource_providers/{uuid(1, name)}/inventories',
                {
                    'resource_provider_generation': 0,
                    'inventories': {'VCPU': {'total': vcpus}},
                },
            )
        self.put(name, traits=traits, aggregates=aggregates)
        self.nova.nodes.append(ComputeNode(uuid(1, name), name, name))

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
        self.nova.groups[name] = Aggregate(
            uuid(2, name),
            name,
            {f'trait:{trait}': 'required' for trait in traits},
            frozenset(hosts),
        )

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
            self.placement,
            self.nova.aggregates,
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
