# SPDX-License-Identifier: Apache-2.0
"""A host is a candidate if, and only if, a server boots there.

Each request goes to a real nova-api once for each host, as the only host. All
host filters that run are known to the commands, so no answer is excused.

``RANDOM_BOOTS`` is the number of random requests, and ``RANDOM_SEED`` selects
them.
"""

import dataclasses
import os
import random

from base import ISOLATE, host_of
from nova.tests.functional.api import client
import pytest
from test_from_the_api import FromTheApiTest

BOOTS = int(os.environ.get('RANDOM_BOOTS', '250'))
FEW = 6
SEED = int(os.environ.get('RANDOM_SEED', '28'))

LICENSED = 'trait:CUSTOM_LICENSED'
SSD = 'aggregate_instance_extra_specs:ssd'
# Those that look only at aggregates, and one for services that are disabled.
HOST_FILTERS = [
    'ComputeFilter',
    'AggregateInstanceExtraSpecsFilter',
    'AggregateImagePropertiesIsolation',
    'AggregateMultiTenancyIsolation',
    'AggregateTypeAffinityFilter',
    'IsolatedAggregatesFilter',
]


@dataclasses.dataclass(frozen=True)
class Boot:
    """A server to boot.

    :param sizes: Arguments of the flavor.
    :param needs: What the image has beside properties.
    """

    specs: dict = dataclasses.field(default_factory=dict)
    properties: dict = dataclasses.field(default_factory=dict)
    zone: str | None = None
    sizes: dict = dataclasses.field(default_factory=dict)
    needs: dict = dataclasses.field(default_factory=dict)
    from_volume: bool = False


# With the hosts on which the server boots.
DIRECTED = (
    (Boot(), '2 3'),
    (Boot({LICENSED: 'required'}), '1'),
    (Boot({LICENSED: 'forbidden'}), '2 3'),
    (Boot({}, {LICENSED: 'required'}), '1'),
    (Boot({LICENSED: 'required'}, zone='az1'), '1'),
    (Boot({LICENSED: 'required'}, zone='az2'), ''),
    (Boot({SSD: 'true'}), '2'),
    (Boot({SSD: 'true'}, zone='az1'), ''),
    (Boot(zone='az1'), ''),
    (Boot(zone='az2'), '2 3'),
    (Boot(zone='az9'), ''),
    (Boot(zone='nova'), ''),
    (Boot({'trait:CUSTOM_NOWHERE': 'required'}), ''),
    (Boot({'resources:CUSTOM_NOTHING': '1'}), ''),
    (Boot({'resources:VCPU': '11'}), ''),
    (Boot({'resources:MEMORY_MB': '0'}), '2 3'),
    (Boot(sizes={'vcpu': 11}), ''),
    (Boot(sizes={'disk': 5000}), ''),
    (Boot(sizes={'disk': 5000}, from_volume=True), '2 3'),
    (Boot({}, {'os_distro': 'debian'}), '2 3'),
    (Boot({}, {'os_distro': 'windows'}), '2'),
    (Boot({'hw:cpu_thread_policy': 'isolate'}), ''),
    (Boot({'hw:locked_memory': 'true'}), ''),
    (Boot({}, {'hw_mem_page_size': '2048'}), ''),
    (Boot({}, {'hw_disk_bus': 'odd'}), ''),
    (Boot({'hw:pmu': 'true'}, {'hw_pmu': 'true'}), '2 3'),
    (Boot({'hw:pmu': 'true'}, {'hw_pmu': 'false'}), ''),
    (Boot(needs={'min_ram': 65}), ''),
)
SPECS = {
    LICENSED: ['required', 'required', 'forbidden'],
    SSD: ['true', 'false', '<or> true <or> false'],
    'trait:CUSTOM_NOWHERE': ['forbidden', 'required'],
    'resources:VCPU': ['1', '2', '11'],
    'resources:CUSTOM_NOTHING': ['0', '1'],
    'hw:cpu_thread_policy': ['prefer', 'odd'],
    'hw:cpu_policy': ['shared', 'odd'],
    'hw:locked_memory': ['true', 'false'],
    'hw:pmu': ['true', 'false'],
    'hw:serial_port_count': ['1', 'x'],
    'hw:cpu_max_sockets': ['1', 'x'],
    'hw:mem_encryption': ['false', 'true'],
    'hw:virtio_packed_ring': ['true', 'false'],
}
PROPERTIES = {
    LICENSED: ['required', 'forbidden'],
    'os_distro': ['windows', 'debian'],
    'hw_pmu': ['true', 'false'],
    'hw_locked_memory': ['false', 'true'],
    'hw_disk_bus': ['virtio', 'odd'],
    'hw_cpu_sockets': ['1', '2', 'x'],
    'hw_serial_port_count': ['1', '2'],
    'hw_mem_page_size': ['any', '4'],
    'hw_cpu_policy': ['shared', 'odd'],
}


def some_of(choices, chance):
    names = chance.sample(sorted(choices), chance.choice([0, 0, 1, 1, 2]))
    return {name: chance.choice(choices[name]) for name in names}


def random_boot(chance):
    """Return a random server, about half of which boot somewhere."""
    return Boot(
        some_of(SPECS, chance),
        some_of(PROPERTIES, chance),
        chance.choice([None, None, None, 'az1', 'az2', 'az2', 'nova', 'az9']),
        {'vcpu': chance.choice([1, 1, 1, 2, 11])},
        {'min_ram': chance.choice([0, 0, 0, 0, 64, 65])},
        chance.random() < 0.1,
    )


class VerdictTest(FromTheApiTest):
    """A cloud with locks, zones and metadata."""

    HOSTS = ('host1', 'host2', 'host3')
    OPTIONS = (
        ISOLATE,
        ('filter_scheduler', 'enabled_filters', HOST_FILTERS),
    )

    def setUp(self):
        super().setUp()
        self._create_trait('CUSTOM_NOWHERE')
        self.placement.put(
            '/resource_classes/CUSTOM_NOTHING', {}, version='1.7'
        )
        self.give_trait('host1', 'CUSTOM_LICENSED')
        self.aggregate(
            'licensed', ['host1'], {LICENSED: 'required'}, zone='az1'
        )
        self.aggregate('open', ['host2', 'host3'], zone='az2')
        self.aggregate('fast', ['host2'], {'ssd': 'true'})
        self.aggregate('debian', ['host3'], {'os_distro': 'debian,ubuntu'})
        names = ', '.join(HOST_FILTERS)
        self.config.write_text(
            f'{self.config.read_text()}'
            f'[filter_scheduler]\nenabled_filters = {names}\n'
        )
        self.number = 0

    def candidates(self, *arguments):
        """Return the candidates; none if nova-api refuses the request."""
        result = self.run_command('explain', *arguments, '-f', 'json')
        if result.err.startswith(('nova-api refuses ', 'hw:')):
            assert result.code == 4
            return set()
        # Filters refuse some of them.
        assert result.code in (0, 4), arguments
        assert result.err == '', arguments
        summary = result.document['summary']
        assert [s for s in summary['not_known'] if 'availability zone' not in s
                and 'ComputeFilter' not in s] == []  # fmt: skip
        return {
            host['name']
            for host in result.document['hosts']
            if host['verdict'] == 'candidate'
        }

    def booted(self, flavor, image, **body):
        """Boot a server and delete it; return its host, if it got one."""
        try:
            server, _ = self.sent(flavor, image, **body)
        except client.OpenStackApiException as exc:
            if exc.response.status_code != 400:
                raise
            return None
        host = host_of(server)
        self._delete_server(server)
        return host

    def agree(self, boot):
        """Compare the verdict on each host; return where a server boots."""
        self.number += 1
        flavor = self.small_flavor(
            name=f'flavor-{self.number}',
            id=f'flavor-{self.number}',
            extra_spec=boot.specs,
            **boot.sizes,
        )
        image = self.image(boot.properties)
        self.glance.images[image].update(boot.needs)
        arguments = ['--flavor', flavor, '--image', image]
        body = {}
        if boot.from_volume:
            arguments.append('--boot-from-volume')
            body['block_device_mapping_v2'] = [
                {
                    'source_type': 'image',
                    'destination_type': 'volume',
                    'boot_index': 0,
                    'uuid': image,
                    'volume_size': 1,
                }
            ]
        in_zone = {'availability_zone': boot.zone} if boot.zone else {}
        zone = ['--availability-zone', boot.zone] if boot.zone else []
        hosts = {
            host
            for host in self.HOSTS
            if self.booted(flavor, image, host=host, **in_zone, **body)
        }
        assert self.candidates(*arguments, *zone) == hosts, boot
        # Nova runs no host filters on a forced host, and ignores its zone.
        host = self.HOSTS[self.number % len(self.HOSTS)]
        forced = f'{boot.zone or ""}:{host}'
        real = self.booted(flavor, image, availability_zone=forced, **body)
        arguments += ['--availability-zone', forced]
        assert self.candidates(*arguments) == {real} - {None}, (boot, forced)
        return hosts

    @pytest.mark.slow
    def test_directed_boots(self):
        for boot, numbers in DIRECTED:
            expected = {f'host{number}' for number in numbers.split()}
            assert self.agree(boot) == expected, boot

    def boot_at_random(self, number):
        chance = random.Random(SEED)
        hosts = [len(self.agree(random_boot(chance))) for _ in range(number)]
        # Neither answer is the usual one.
        assert 0 in hosts
        assert max(hosts) > 1

    @pytest.mark.slow
    def test_a_few_random_boots(self):
        self.boot_at_random(FEW)

    @pytest.mark.slow
    def test_random_boots(self):
        self.boot_at_random(BOOTS)
