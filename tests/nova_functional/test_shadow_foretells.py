# SPDX-License-Identifier: Apache-2.0
"""Random requests in shadow end as foretold when the filters are enforced.

Each request is made in shadow and, in the same state of the cloud, enforced.
Nothing is claimed or consumed, so that the state stays the same.
"""

import os
import random
import time

from base import IMAGE, ISOLATE, LOCK, RESERVATIONS, ShorteningCloudTest
from nova import context as nova_context
from nova import objects
import oslo_messaging
from oslo_utils import uuidutils
import pytest
import uninstalling

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.nova import placed, records

REQUESTS = int(os.environ.get('SHADOW_REQUESTS', '400'))
SEED = int(os.environ.get('SHADOW_SEED', '57'))
# Requests between two changes of the locks.
ROUND = 80
OWNER, STRANGER = 'a' * 32, 'b' * 32
TRAITS = ('CUSTOM_LICENSED_WINDOWS', 'CUSTOM_SSD')
KEYS = (
    {f'trait:{TRAITS[0]}': 'required'},
    {f'trait:{TRAITS[1]}': 'required'},
    {'reservation:one': 'true'},
    {'reservation:two': 'true', 'blazar:owner': OWNER},
    {'filter_tenant_id': OWNER},
    {'aggregate_instance_extra_specs:ssd': 'true'},
    {'ssd': 'true'},
    {},
)
ALL_KEYS = {name for key in KEYS for name in key}


@pytest.mark.slow
class Foretold(ShorteningCloudTest):
    """Five hosts and as many aggregates with random locks."""

    REQUEST_FILTERS = (
        'isolate_aggregates',
        'reservation_prefix',
        'isolate_tenants',
        'aggregate_instance_extra_specs',
    )
    HOSTS = ('host1', 'host2', 'host3', 'host4', 'host5')
    OPTIONS = (
        ISOLATE,
        *RESERVATIONS,
        (ia_conf.GROUP, 'mode', 'shadow'),
        (ia_conf.GROUP, 'reservation_key_sources', ['image', 'hint']),
        ('notifications', 'notification_format', 'unversioned'),
    )

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        for trait in TRAITS:
            self._create_trait(trait)
        self.numbers = {
            self.aggregate(f'a{number}', self.random.sample(self.HOSTS, 2)): {}
            for number in range(5)
        }
        self.give_trait('host1', TRAITS[0])
        self.give_trait('host2', TRAITS[1])
        context = nova_context.get_admin_context()
        self.flavors = [
            objects.Flavor.get_by_flavor_id(context, self.flavor(specs))
            for specs in (None, *KEYS[:6])
        ]
        self.stub_out(
            'nova.scheduler.utils.claim_resources', lambda *a, **k: True
        )
        for owner in (
            'nova.scheduler.manager.SchedulerManager._consume_selected_host',
            'isolate_aggregates.nova.placed._CONSUME',
        ):
            self.stub_out(owner, staticmethod(lambda *a, **k: None))
        self.stub_out(
            'isolate_aggregates.nova.placed._CLAIM', lambda *a, **k: True
        )
        assert placed._CLAIM()

    def lock(self):
        """Change what locks each aggregate."""
        for number, before in self.numbers.items():
            after = dict(self.random.choice(KEYS))
            gone = dict.fromkeys(before.keys() - after.keys())
            self.tag(number, gone | after)
            self.numbers[number] = after

    def request(self):
        """Return the fields of a random request."""
        chosen = self.random.choice
        hints = chosen([{}, {}, {'reservation:one': ['true']}])
        return {
            'flavor': chosen(self.flavors),
            'project_id': chosen([OWNER, STRANGER]),
            'scheduler_hints': hints,
            'image': chosen([{}, {}, {LOCK: 'required'}]),
            'force_hosts': chosen([None] * 6 + [[chosen(self.HOSTS)]]),
        }

    def ask(self, fields):
        """Return the server and its host; None if there is none."""
        context = nova_context.get_admin_context()
        fields = dict(fields)
        server = uuidutils.generate_uuid()
        spec = objects.RequestSpec.from_components(
            context,
            server,
            image={'id': IMAGE, 'properties': fields.pop('image')},
            flavor=fields.pop('flavor'),
            numa_topology=None,
            pci_requests=None,
            filter_properties={},
            instance_group=None,
            availability_zone=None,
        )
        for field, value in fields.items():
            if value is not None:
                setattr(spec, field, value)
        spec.user_id = 'user'
        spec = objects.RequestSpec.obj_from_primitive(spec.obj_to_primitive())
        try:
            [[selection, *_]] = (
                self.scheduler_service.manager.select_destinations(
                    context,
                    spec_obj=spec,
                    instance_uuids=[server],
                    return_objects=True,
                )
            )
        except oslo_messaging.ExpectedException:
            return server, None
        finally:
            self.notifier.reset()
        return server, selection.service_host

    def switch(self, mode):
        uninstalling.uninstall()
        self.flags(mode=mode, group=ia_conf.GROUP)
        self.restart_scheduler()

    def in_shadow(self, requests):
        """Return host and effect of each request."""
        self.switch('shadow')
        recorder = records._recorder
        compare, effects = recorder.shadow.compare, {}

        def compared(trace):
            found = compare(trace)
            effects[trace.servers[0]] = found['effect']
            return found

        recorder.shadow.compare = compared
        made = [self.ask(fields) for fields in requests]
        until = time.monotonic() + 120
        while len(effects) < len(made) and time.monotonic() < until:
            time.sleep(0.05)
        return [(host, effects[server]) for server, host in made]

    def test_every_difference_was_foretold(self):
        seen = dict.fromkeys(('none', 'refused', 'other_host', 'no_host'), 0)
        for _ in range(0, REQUESTS, ROUND):
            self.lock()
            requests = [self.request() for _ in range(ROUND)]
            told = self.in_shadow(requests)
            self.switch('enforce')
            for fields, (host, effect) in zip(requests, told, strict=True):
                _, enforced = self.ask(fields)
                if effect == 'none':
                    is_right = enforced == host
                elif effect == 'other_host':
                    is_right = enforced not in {None, host}
                else:
                    is_right = enforced is None
                assert is_right, (
                    fields, self.numbers, host, effect, enforced,
                )  # fmt: skip
                seen[effect] += 1
        assert min(seen.values()) > 5, seen
