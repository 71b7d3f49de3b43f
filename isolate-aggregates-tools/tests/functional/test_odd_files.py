# SPDX-License-Identifier: Apache-2.0
"""No command has a fault that a valid but odd cloud file shows."""

import json
import random
import uuid

import pytest
from thorough import THOROUGH

TAGS = (
    ('trait:CUSTOM_A', 'required'),
    ('trait:CUSTOM_A', 'required '),
    ('trait:CUSTOM_B', 'required'),
    ('trait:HW_CPU_X86_AVX', 'required'),
    ('reservation:x', 'p1'),
    ('filter_tenant_id', 'p1'),
    ('filter_tenant_id', ''),
    ('filter_tenant_id2', 'p2,p3'),
    ('filter_tenant_id:domain:d1', 'x'),
    ('availability_zone', 'az1'),
    ('blazar:owner', 'b'),
)
EXTRA_SPECS = (
    ('trait:CUSTOM_A', 'required'),
    ('trait:CUSTOM_A', 'forbidden'),
    ('trait:CUSTOM_B', 'required'),
    ('trait1:CUSTOM_B', 'required'),
    ('resources:VGPU', '1'),
    ('resources1:VGPU', '1'),
    ('resources:VCPU', 'x'),
    ('group_policy', 'none'),
    ('hw:cpu_policy', 'dedicated'),
    ('reservation', 'x'),
)
PROPERTIES = (
    ('trait:CUSTOM_A', 'required'),
    ('trait:CUSTOM_B', 'forbidden'),
    ('hw_firmware_type', 'uefi'),
    ('os_distro', 'x'),
)


def identity(number):
    return str(uuid.UUID(int=number))


class Odd:
    """Draws the parts of an odd cloud."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self.hosts = [f'h{n}' for n in range(self._random.randrange(1, 6))]

    def some(self, values, most=None):
        values = list(values)
        number = min(len(values), len(values) if most is None else most)
        return self._random.sample(values, self._random.randrange(number + 1))

    def with_some(self, *fixed, **choices):
        """Return a mapping with some of the keys, each with a value."""
        return dict(fixed) | {
            key: self._random.choice(choices[key])
            for key in choices
            if self._random.random() < 0.5
        }

    def cloud(self):
        flavors = [self._flavor(n) for n in range(self._random.randrange(4))]
        images = [self._image(n) for n in range(self._random.randrange(3))]
        number = self._random.randrange(6)
        servers = [self._server(n, flavors, images) for n in range(number)]
        if self._random.random() < 0.2:
            for server in servers:
                server['scheduler_hints'] = None
        aggregates = [
            self.with_some(
                ('name', f'agg{number}'),
                ('hosts', self.some(self.hosts)),
                uuid=(identity(100 + number),),
                id=(number + 1,),
                metadata=(dict(self.some(TAGS, 3)),),
                availability_zone=('az1', None),
            )
            for number in range(self._random.randrange(5))
        ]
        return self.with_some(
            ('version', 1),
            (
                'settings',
                {
                    'scheduler': {
                        'enable_isolated_aggregate_filtering': True,
                        'limit_tenants_to_placement_aggregate': True,
                    }
                },
            ),
            ('aggregates', aggregates),
            ('providers', [*self._providers(aggregates)]),
            ('flavors', flavors),
            ('images', images),
            mirror_host_aggregates=(True, False),
            servers=(servers,),
            server_groups=(
                [
                    {
                        'id': identity(3000),
                        'policy': self._random.choice(
                            ['affinity', 'anti-affinity', 'odd']
                        ),
                        'members': self.some(each['id'] for each in servers),
                    }
                ],
            ),
            compute_services=(
                [
                    self.with_some(
                        ('host', host),
                        state=('up', 'down'),
                        status=('enabled', 'disabled'),
                    )
                    for host in self.hosts
                ],
            ),
            domains=([{'id': 'd1', 'projects': None}],),
        )

    def _providers(self, aggregates):
        for number, host in enumerate(self.hosts):
            inventories = self._random.choice(
                [
                    {'VCPU': 8, 'MEMORY_MB': 16384, 'DISK_GB': 100},
                    {
                        'VCPU': {'total': 4, 'allocation_ratio': 2.0},
                        'MEMORY_MB': 4096,
                    },
                    {'CUSTOM_X': 3},
                    {},
                ]
            )
            yield self.with_some(
                ('name', host),
                ('inventories', inventories),
                uuid=(identity(500 + number),),
                usages=(dict.fromkeys(inventories, 9),),
                traits=(
                    self.some(
                        ['CUSTOM_A', 'CUSTOM_B', 'COMPUTE_STATUS_DISABLED']
                    ),
                ),
                children=(
                    [
                        {
                            'name': f'{host}-child',
                            'inventories': {'VGPU': 2},
                            'traits': ['CUSTOM_B'],
                        }
                    ],
                    [],
                ),
            )
        if self._random.random() < 0.3:
            yield {
                'name': 'sharing',
                'traits': ['MISC_SHARES_VIA_AGGREGATE'],
                'inventories': {'DISK_GB': 1000},
                'aggregates': self.some(each['name'] for each in aggregates),
            }

    def _flavor(self, number):
        return self.with_some(
            ('name', f'f{number}'),
            **dict.fromkeys(('vcpus', 'ram', 'disk', 'swap'), (0, 1, 512)),
            extra_specs=(dict(self.some(EXTRA_SPECS, 3)),),
        )

    def _image(self, number):
        return self.with_some(
            ('name', f'i{number}'),
            ('id', identity(900 + number)),
            properties=(dict(self.some(PROPERTIES, 2)),),
            visibility=(None, 'public', 'private'),
            owner=(None, 'p1'),
        )

    def _server(self, number, flavors, images):
        port = ('id', identity(5000 + number))
        group = {'id': identity(6000 + number), 'resources': {'CUSTOM_X': 1}}
        return self.with_some(
            ('id', identity(2000 + number)),
            ('project', self._random.choice(['p1', 'p2', ''])),
            (
                'flavor',
                self._random.choice(
                    [
                        *(flavor['name'] for flavor in flavors),
                        {'name': 'gone', 'extra_specs': dict(EXTRA_SPECS[:1])},
                        None,
                    ]
                ),
            ),
            host=(*self.hosts, None, 'gone'),
            status=('ACTIVE', 'SHUTOFF', 'ERROR', 'SHELVED_OFFLOADED', ''),
            name=('', 'a\nb', 's'),
            image=(None, *(image['id'] for image in images), identity(1)),
            image_properties=(None, {}, dict(PROPERTIES[:1])),
            scheduler_hints=(
                {},
                {'group': [identity(3000)]},
                {'reservation': ['x']},
                {'different_host': [identity(2000)]},
                {'same_host': []},
                {'query': ['["=", "$x", 1]']},
            ),
            availability_zone=(None, 'az1'),
            ports=(
                [],
                [dict([port])],
                [dict([port, ('groups', [group]), ('segments', [])])],
                [dict([port, ('device_profile', 'x')])],
            ),
        )


@pytest.fixture
def odd_files(tmp_path):
    """Write two odd clouds."""

    def write(seed):
        paths = [tmp_path / 'before.json', tmp_path / 'after.json']
        for more, path in enumerate(paths):
            path.write_text(json.dumps(Odd(2 * seed + more).cloud()))
        return [*map(str, paths)]

    return write


COMMANDS = (
    *(
        'lock list',
        'matrix list',
        'matrix list -f json',
        'audit',
        'lock show h0',
    ),
    *(
        'audit --servers',
        'survival list',
        'survival list --failures 2 -f json',
    ),
    *(
        'explain --flavor f0',
        'capacity list --flavor f0',
        'candidate list --query --flavor f0',
    ),
    f'explain --server {identity(2000)}',
    *('sync --dry-run', 'sync --dry-run -f json'),
    *(
        'effect show --add-host agg0 h0',
        'effect show --unset agg0 trait:CUSTOM_A',
    ),
    *(
        'relocation create --host h0 --dry-run',
        'relocation create --out-of-place --dry-run',
    ),
    'relocation create --room-for f0 --dry-run -f json',
)


@pytest.mark.parametrize('seed', range(200 if THOROUGH else 8))
def test_no_command_has_a_fault(run, odd_files, tmp_path, seed):
    before, after = odd_files(seed)
    for command in (
        f'effect show --snapshot {before} --to {after}',
        *(
            f'{command} --snapshot {before}'
            for command in (
                *COMMANDS,
                f'exporter --servers --output {tmp_path}/metrics',
                f'report save --output {tmp_path}/page.html',
            )
        ),
    ):
        result = run('--debug', *command.split())
        assert result.code in (0, 1, 3, 4), f'{seed}: {command}: {result.err}'
        if 'Traceback' in result.err:
            # The file may well lack what the command asks for.
            *_, last = filter(None, result.err.splitlines())
            assert last.startswith('isolate_aggregates'), f'{seed}: {command}'
