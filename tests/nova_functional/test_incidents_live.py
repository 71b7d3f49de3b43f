# SPDX-License-Identifier: Apache-2.0
"""Staged incidents on a real Nova: what ``explain`` prints mends each.

``test_incidents.py`` has these and others in cloud files. Here a server fails
to boot, the first suggestion is pasted into a terminal, and the same server
boots.
"""

import dataclasses

from base import IMAGE, ISOLATE, RESERVATIONS, host_of
import ddt
import fixtures
from page_cloud import PageTest
import pytest

POOL = 'trait:CUSTOM_GPU_POOL'
SSD = 'aggregate_instance_extra_specs:ssd'
RESERVED = 'reservation:4d17d41a-830d-47b2-91c7-4f9fc0ae611e'

FILTERS = (
    *('isolate_aggregates', 'reservation_prefix', 'isolate_tenants'),
    'aggregate_instance_extra_specs',
)
CONFIGURATION = f"""
[scheduler]
enable_isolated_aggregate_filtering = true
placement_req_required_member_prefix = reservation:
placement_req_default_forbidden_member_prefix = reservation:
[isolate_aggregates]
request_filters = {', '.join(FILTERS)}
"""


@dataclasses.dataclass(frozen=True)
class Incident:
    """What is wrong in a cloud in which ada has a trait that locks it.

    :param extra_specs: Of the flavor that the server is booted with.
    :param tags: The metadata of the aggregate of ada.
    :param hosts: The hosts of that aggregate.
    :param mended_by: A part of the command that mends it.
    """

    mended_by: str
    extra_specs: dict[str, str] = dataclasses.field(default_factory=dict)
    tags: dict[str, str] = dataclasses.field(
        default_factory=lambda: {POOL: 'required'}
    )
    hosts: tuple[str, ...] = ('ada',)
    properties: dict[str, str] = dataclasses.field(default_factory=dict)
    disabled: tuple[str, ...] = ()
    has_trait: bool = True


KEY = f'flavor set --property {POOL}=required'
INCIDENTS = {
    'the prefix of the key is misspelled': Incident(
        KEY, {'traits:CUSTOM_GPU_POOL': 'required'}, hosts=('ada', 'bob')
    ),
    'the trait of the key is misspelled': Incident(
        KEY, {'trait:CUSTOM_GPU_POL': 'required'}
    ),
    'the host lacks the trait': Incident(
        'isolate-aggregates sync', {POOL: 'required'}, has_trait=False
    ),
    'the only host is disabled': Incident(
        'compute service set --enable ada nova-compute',
        {POOL: 'required'},
        disabled=('ada',),
    ),
    'all hosts are disabled': Incident(
        'compute service set --enable bob nova-compute',
        disabled=('ada', 'bob'),
    ),
    'the reservation of the flavor has ended': Incident(
        f'flavor unset --property {RESERVED}', {RESERVED: 'x'}
    ),
    'all hosts are reserved': Incident(
        f'aggregate unset --property {RESERVED}',
        tags={RESERVED: 'x'},
        hosts=('ada', 'bob'),
    ),
    'no host has the resource class': Incident(
        'flavor unset --property resources:CUSTOM_FPGA',
        {'resources:CUSTOM_FPGA': '1'},
    ),
    'no host has the trait': Incident(
        'flavor unset --property trait:CUSTOM_NOWHERE',
        {'trait:CUSTOM_NOWHERE': 'required'},
    ),
    'a forbidden trait does not exist': Incident(
        'trait create CUSTOM_NOWHERE', {'trait:CUSTOM_NOWHERE': 'forbidden'}
    ),
    'no host has the metadata': Incident(
        f'flavor unset --property {SSD}', {SSD: 'true'}
    ),
    'the metadata is behind a lock': Incident(
        'isolate-aggregates key add --flavor=',
        {SSD: 'true'},
        {POOL: 'required', 'ssd': 'true'},
    ),
    'the value of metadata has another case': Incident(
        f'flavor set --property {SSD}=true', {SSD: 'True'}, {'ssd': 'true'}
    ),
    'the extra spec is no number': Incident(
        'flavor unset --property aggregate_instance_extra_specs:gpus',
        {'aggregate_instance_extra_specs:gpus': '>= many'},
        {'gpus': '4'},
    ),
    'the project is not among those of the hosts': Incident(
        'aggregate set --property filter_tenant_id=',
        tags={'filter_tenant_id': 'a' * 32},
        hosts=('ada', 'bob'),
    ),
    'the trait of an image is misspelled': Incident(
        f'image set --property {POOL}=required',
        properties={'trait:CUSTOM_GPU_POLL': 'required'},
    ),
    'the tag is misspelled': Incident(
        f'aggregate set --property {POOL}=required',
        {POOL: 'required'},
        {'trait:custom_gpu_pool': 'required'},
    ),
}


@pytest.mark.slow
@ddt.ddt
class IncidentTest(PageTest):
    """A cloud of two hosts in which one thing is wrong."""

    HOSTS = ('ada', 'bob')
    REQUEST_FILTERS = FILTERS
    OPTIONS = (ISOLATE, *RESERVATIONS)

    def setUp(self):
        super().setUp()
        self.config.write_text(CONFIGURATION)
        self.useFixture(fixtures.EnvironmentVariable('COLUMNS', '9999'))

    def stage(self, incident):
        """Let it happen; return the flavor and the image of the server."""
        self._create_trait('CUSTOM_GPU_POOL')
        if incident.has_trait:
            self.give_trait('ada', 'CUSTOM_GPU_POOL')
        self.aggregate('gpu-hosts', incident.hosts, incident.tags)
        for host in incident.disabled:
            services = self.admin_api.get_services(
                host=host, binary='nova-compute'
            )
            self.admin_api.put_service(
                services[0]['id'], {'status': 'disabled'}
            )
        flavor = self._create_flavor(
            name='asked',
            vcpu=1,
            memory_mb=64,
            disk=1,
            ephemeral=0,
            extra_spec=incident.extra_specs,
        )
        image = (
            self.image(incident.properties) if incident.properties else IMAGE
        )
        return flavor, image

    def suggestion(self, server):
        """Return the first command that explain prints."""
        typed = self.terminal.type(
            f'isolate-aggregates --config-file {self.config} explain '
            f'--server {server["id"]}'
        )
        text = typed.output.partition('Any one of these gives it a host:\n')[2]
        assert text, typed.output
        return text.partition('\n')[0].strip()

    @ddt.data(*INCIDENTS)
    def test_the_first_suggestion_mends_it(self, name):
        incident = INCIDENTS[name]
        flavor, image = self.stage(incident)
        failed = self.boot(flavor, image=image, status='ERROR')
        with self.new_terminal():
            command = self.suggestion(failed)
            assert incident.mended_by in command
            if command.startswith('isolate-aggregates '):
                program, _, rest = command.partition(' ')
                command = f'{program} --config-file {self.config} {rest} --yes'
            typed = self.terminal.type(command)
            assert typed.code in (0, 3), typed.output
        assert host_of(self.boot(flavor, image=image))
