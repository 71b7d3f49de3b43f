# SPDX-License-Identifier: Apache-2.0
"""Nova refuses the moves that the tools say it refuses, and no others."""

import dataclasses
from importlib import metadata
import itertools
import json
from unittest import mock

from base import IMAGE
from day_two import CommandTest
from nova import context as nova_context
from nova import objects
from nova.compute import vm_states
from nova.db.main import api as main_db
from nova.network import model
import pytest

from isolate_aggregates import exception
from isolate_aggregates_tools.compute.client import NovaClient
from isolate_aggregates_tools.compute.servers import Port
from isolate_aggregates_tools.mirrored.nova_api import moves
from isolate_aggregates_tools.mirrored.nova_api.moves import MoveKind

# Its tests can be run on an older one, see test_older_releases.py.
RELEASE = int(metadata.version('nova').partition('.')[0])
BODIES = {
    MoveKind.EVACUATE: {'evacuate': {}},
    MoveKind.LIVE: {
        'os-migrateLive': {'host': None, 'block_migration': 'auto'}
    },
    MoveKind.COLD: {'migrate': None},
    MoveKind.SHELVE: {'shelve': None},
}
STATES = (
    *(vm_states.ACTIVE, vm_states.STOPPED, vm_states.PAUSED),
    *(vm_states.SUSPENDED, vm_states.RESCUED, vm_states.RESIZED),
    *(vm_states.ERROR, vm_states.SHELVED, vm_states.BUILDING),
)


@dataclasses.dataclass(frozen=True)
class Facts:
    """What a server is like."""

    specs: dict = dataclasses.field(default_factory=dict)
    properties: dict = dataclasses.field(default_factory=dict)
    vnic_type: str = model.VNIC_TYPE_NORMAL
    shares: bool = False


FACTS = (
    Facts(),
    Facts(shares=True),
    Facts(vnic_type=model.VNIC_TYPE_ACCELERATOR_DIRECT),
    Facts(vnic_type=model.VNIC_TYPE_ACCELERATOR_DIRECT_PHYSICAL),
    Facts(vnic_type=model.VNIC_TYPE_DIRECT),
    Facts(specs={'accel:device_profile': 'gpu'}),
    Facts(specs={'hw:tpm_version': '2.0'}),
    Facts(properties={'hw_tpm_version': '2.0'}),
    *(
        Facts(specs={'hw:tpm_version': '2.0', 'hw:tpm_secret_security': kept})
        for kept in ('user', 'host', 'deployment')
    ),
    Facts(
        specs={'hw:mem_encryption': 'true'},
        properties={'hw_firmware_type': 'uefi', 'hw_machine_type': 'q35'},
    ),
    Facts(specs={'hw:mem_encryption': 'false'}),
)


class MoveGateTest(CommandTest):
    """One server, which is made to be what matters for its moves."""

    HOSTS = ('host1',)

    def setUp(self):
        super().setUp()
        made = self._build_server(image_uuid=IMAGE, networks='none')
        made = self.admin_api.post_server({'server': made})
        self.id = self._wait_for_state_change(made, 'ACTIVE')['id']
        self.context = nova_context.get_admin_context()
        mapping = objects.InstanceMapping.get_by_instance_uuid(
            self.context, self.id
        )
        nova_context.set_target_cell(self.context, mapping.cell_mapping)
        for name in (
            'conductor.api.ComputeTaskAPI.rebuild_instance',
            'conductor.api.ComputeTaskAPI.live_migrate_instance',
            'conductor.api.ComputeTaskAPI.resize_instance',
            'compute.rpcapi.ComputeAPI.shelve_instance',
            'compute.rpcapi.ComputeAPI.shelve_offload_instance',
            'accelerator.cyborg._CyborgClient.get_arq_uuids_for_instance',
        ):
            self.stub_out(f'nova.{name}', lambda *args, **kwargs: ())

    def make(self, facts, state=vm_states.ACTIVE):
        """Make the server what it shall be."""
        instance = objects.Instance.get_by_uuid(
            self.context, self.id, expected_attrs=['flavor', 'system_metadata']
        )
        instance.flavor.extra_specs = dict(facts.specs)
        instance.save()
        for key in list(instance.system_metadata):
            if key.startswith('image_hw_'):
                del instance.system_metadata[key]
        for key, value in facts.properties.items():
            instance.system_metadata[f'image_{key}'] = value
        instance.save()
        for share in objects.ShareMappingList.get_by_instance_uuid(
            self.context, self.id
        ):
            share.delete()
        if facts.shares:
            share = objects.ShareMapping(self.context)
            share.uuid = self.id
            share.instance_uuid = self.id
            share.share_id = self.id
            share.status = 'active'
            share.tag = 'share'
            share.export_location = 'nfs:/share'
            share.share_proto = 'NFS'
            share.create()
        vif = model.VIF(
            id=self.id,
            address='fa:16:3e:00:00:01',
            network=model.Network(id=self.id, subnets=[]),
            vnic_type=facts.vnic_type,
        )
        objects.InstanceInfoCache(
            context=self.context,
            instance_uuid=self.id,
            network_info=model.NetworkInfo([vif]),
        ).save()
        self.settle(state)

    def settle(self, state):
        """Give the server a state, and nothing to do."""
        main_db.instance_update(
            self.context, self.id, {'vm_state': state, 'task_state': None}
        )

    def accepts(self, action, state, is_up):
        """Return whether Nova accepts an action."""
        self.settle(state)
        with mock.patch(
            'nova.servicegroup.API.service_is_up', return_value=is_up
        ):
            response = self.admin_api.api_post(
                f'/servers/{self.id}/action',
                BODIES[action],
                check_response_status=[200, 202, 400, 403, 409, 503],
            )
        return response.status < 300

    def has_shares(self, nova, facts):
        """Return what is known of the shares of the server."""
        try:
            return nova.has_shares(self.id)
        except exception.ServiceDenied:
            # Older releases show them to readers of the project only.
            assert RELEASE < 33
            return facts.shares

    def refusals(self, action, facts, is_up):
        """Return why the tools say that Nova refuses an action."""
        nova = NovaClient(self.connection())
        server = dataclasses.replace(
            nova.server(self.id),
            has_shares=self.has_shares(nova, facts),
            ports=(
                Port('p', 'n', accelerator='accelerator' in facts.vnic_type),
            ),
        )
        return [
            *moves.refusals(action, server, facts.properties, [RELEASE], is_up)
        ]

    def compare(self, facts, state=vm_states.ACTIVE):
        """Compare all actions."""
        self.make(facts, state)
        for action, is_up in itertools.product(MoveKind, (True, False)):
            if action in (MoveKind.SHELVE, MoveKind.LIVE) and not is_up:
                # The conductor refuses the latter.
                continue
            accepted = self.accepts(action, state, is_up)
            self.settle(state)
            refusals = self.refusals(action, facts, is_up)
            assert accepted == (not refusals), (
                json.dumps(dataclasses.asdict(facts)),
                state,
                action,
                is_up,
                refusals,
            )

    @pytest.mark.slow
    def test_what_a_server_has(self):
        for facts in FACTS:
            self.compare(facts)

    @pytest.mark.slow
    def test_what_state_a_server_is_in(self):
        for state in STATES:
            self.compare(Facts(), state)
