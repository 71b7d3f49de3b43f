# SPDX-License-Identifier: Apache-2.0
"""For one cloud and one question, every command gives one answer.

Each cloud is made up at random, and each command is run on it. What may differ
on purpose is named here: whether what is in use counts, and whether the
command asks Placement or the rules. In some clouds Nova and Placement disagree
on the members of aggregates.
"""

import copy
import itertools
import json
import random
import re

from page_cells import lines_of
import pytest

FEW, MANY = 3, 200
# What hosts share, for ten at a time.
STORAGE = 100
NAMES = ['h1', 'h2', 'h3', 'h4']
ZONES = ['az1', 'az2']
WIN, SEV = 'CUSTOM_WIN', 'HW_CPU_X86_AMD_SEV'
DISABLED = 'COMPUTE_STATUS_DISABLED'
PROJECT = 'p1'
# No aggregate names it.
OTHER_PROJECT = 'p9'
SSD, GPU = 'CUSTOM_SSD', 'CUSTOM_GPU'
# Host filters of Nova whose rules are known, and one whose rule is not.
HOST_FILTERS = [
    *('ComputeFilter', 'SameHostFilter', 'AggregateMultiTenancyIsolation'),
    'AggregateInstanceExtraSpecsFilter',
    'AggregateImagePropertiesIsolation',
]
# A file has no projects but those that a filter reads in its aggregates.
UNKNOWN_PROJECT = {'unknown project'}
EFI = {
    'name': 'efi',
    'id': '0c5bd7ee-0a4c-4f86-a7f7-6ae8fd8a6c34',
    'properties': {'hw_firmware_type': 'uefi', 'hw_machine_type': 'q35'},
}
FLAVORS = [
    {'name': 'm1', 'vcpus': 1, 'ram': 1},
    {'name': 'big', 'vcpus': 6, 'ram': 1},
    {'name': 'disk', 'vcpus': 1, 'ram': 1, 'disk': 10},
    {
        'name': 'keyed',
        'vcpus': 1,
        'ram': 1,
        'extra_specs': {f'trait:{WIN}': 'required'},
    },
    {
        'name': 'secret',
        'vcpus': 1,
        'ram': 1,
        'extra_specs': {'hw:mem_encryption': 'true'},
    },
    {
        'name': 'fast',
        'vcpus': 1,
        'ram': 1,
        'extra_specs': {'aggregate_instance_extra_specs:fast': 'true'},
    },
    {
        # The trait of what has the disks, which may be shared.
        'name': 'ssd',
        'vcpus': 1,
        'ram': 1,
        'disk': 10,
        'extra_specs': {f'trait:{SSD}': 'required'},
    },
    {
        'name': 'gpu',
        'vcpus': 1,
        'ram': 1,
        'extra_specs': {'pci_passthrough:alias': 'gpu:1'},
    },
    {
        'name': 'misspelt',
        'vcpus': 1,
        'ram': 1,
        'extra_specs': {'pci_passthrough:alias': 'gup:1'},
    },
]


class World:
    """A random cloud, as the document of a cloud file.

    ``agrees`` is whether Nova and Placement have the same members.
    """

    def __init__(self, number):
        self.dice = dice = random.Random(number)
        self.agrees = dice.random() < 0.6
        zone_of = {name: dice.choice([None, *ZONES]) for name in NAMES}
        aggregates = {
            'win': self._aggregate({f'trait:{WIN}': 'required'}, self._some()),
            'own': self._aggregate(
                {'filter_tenant_id': PROJECT}, self._some()
            ),
            'fast': self._aggregate({'fast': 'true'}, self._some()),
            'efi': self._aggregate(
                {'hw_machine_type': dice.choice(['q35', 'pc'])}, self._some()
            ),
            'spared': self._aggregate({'evacuable': 'true'}, self._some()),
        }
        for zone in ZONES:
            hosts = [name for name in NAMES if zone_of[name] == zone]
            where = dice.choice(['metadata', 'field'])
            aggregates[zone] = self._aggregate(
                {'availability_zone': zone} if where == 'metadata' else {},
                hosts,
            )
            if where == 'field':
                aggregates[zone]['availability_zone'] = zone
        shares = dice.random() < 0.4
        self.document = {
            'version': 1,
            'settings': self._settings(),
            'mirror_host_aggregates': False,
            'aggregates': [
                {'name': name, **parts} for name, parts in aggregates.items()
            ],
            'placement_aggregates': [{'name': 'shared'}],
            'providers': [
                self._node(name, aggregates, shares) for name in NAMES
            ],
            'flavors': FLAVORS,
            'images': [EFI, {'name': 'plain', 'id': 'f' * 8}],
        }
        if shares:
            members = ['shared', *(z for z in ZONES if dice.random() < 0.5)]
            self.document['providers'].append(
                {
                    'name': 'disks',
                    'host': None,
                    'inventories': {'DISK_GB': STORAGE},
                    'traits': [
                        'MISC_SHARES_VIA_AGGREGATE',
                        *([SSD] if dice.random() < 0.5 else []),
                    ],
                    'aggregates': members,
                }
            )
        if dice.random() < 0.6:
            self.document['compute_services'] = [
                {
                    'host': name,
                    'state': dice.choice(['up', 'up', 'down']),
                    **dice.choice(
                        [
                            {'status': 'enabled'},
                            {'status': 'enabled'},
                            {'status': 'disabled'},
                            {
                                'status': 'disabled',
                                'disabled_reason': 'reserved',
                            },
                        ]
                    ),
                }
                for name in NAMES
            ]
        self.document['servers'] = [self._server(zone_of)]

    @property
    def idle(self):
        """The cloud with every host empty, up and enabled, in all zones."""
        idle = copy.deepcopy(emptied(self.document))
        idle.pop('compute_services', None)
        idle['settings'].pop('DEFAULT', None)
        for each in idle['providers']:
            each['traits'] = [t for t in each['traits'] if t != DISABLED]
        return idle

    @property
    def unlocked(self):
        """The same without any lock."""
        unlocked = self.idle
        del unlocked['settings']['scheduler']
        for each in unlocked['aggregates']:
            if each['name'] in ('win', 'own'):
                each['metadata'] = {}
        return unlocked

    def enabled_if_lost(self, home):
        """Return the cloud with the spare that stands in for a host, if any.

        instance-ha enables the first one that shares an aggregate with it and
        is in an aggregate for spares.
        """
        cloud = copy.deepcopy(self.document)
        shared = [
            each['hosts']
            for each in cloud['aggregates']
            if home in each['hosts']
        ]
        [for_spares] = [
            each['hosts']
            for each in cloud['aggregates']
            if each['name'] == 'spared'
        ]
        for service in cloud.get('compute_services', ()):
            host = service['host']
            if (
                'disabled_reason' in service
                and service['state'] == 'up'
                and host != home
                and host in for_spares
                and any(host in hosts for hosts in shared)
            ):
                service['status'] = 'enabled'
                for each in cloud['providers']:
                    if each['name'] == host:
                        each['traits'] = [
                            t for t in each['traits'] if t != DISABLED
                        ]
                return cloud
        return None

    @property
    def is_default_zone_empty(self):
        """Whether nova-api refuses whoever requests no zone."""
        zone = (
            self.document['settings']
            .get('DEFAULT', {})
            .get('default_schedule_zone')
        )
        services = {
            each['host']: each['status'] == 'enabled'
            for each in self.document.get('compute_services', ())
        }
        enabled = {
            each['name']
            for each in self.document['providers']
            if services.get(each['name'], DISABLED not in each['traits'])
        }
        return not all(
            enabled.intersection(each['hosts'])
            for each in self.document['aggregates']
            if each['name'] == zone
        )

    def _some(self):
        return sorted(n for n in NAMES if self.dice.random() < 0.5)

    def _aggregate(self, metadata, hosts):
        return {'metadata': metadata, 'hosts': hosts}

    def _settings(self):
        dice = self.dice
        settings = {
            'isolate_aggregates': {'nova_release': dice.randint(31, 34)},
            'scheduler': {
                'enable_isolated_aggregate_filtering': dice.random() < 0.8,
                'limit_tenants_to_placement_aggregate': dice.random() < 0.3,
                'placement_aggregate_required_for_tenants': dice.random()
                < 0.5,
            },
        }
        zone = dice.choice([None, None, *ZONES])
        if zone:
            settings['DEFAULT'] = {'default_schedule_zone': zone}
        nova = {}
        if dice.random() < 0.7:
            nova['enabled_filters'] = dice.sample(
                HOST_FILTERS, dice.randint(1, len(HOST_FILTERS))
            )
        alias = {'name': 'gpu', 'resource_class': GPU}
        settings['pci'] = {'alias': json.dumps(alias)}
        nova['pci_in_placement'] = dice.random() < 0.7
        settings['filter_scheduler'] = nova
        return settings

    def _node(self, name, aggregates, shares):
        dice = self.dice
        members = [
            each
            for each, parts in aggregates.items()
            if (name in parts['hosts'])
            != (not self.agrees and dice.random() < 0.2)
        ]
        traits = [
            trait
            for trait, chance in (
                (WIN, 0.5),
                (SEV, 0.5),
                (DISABLED, 0.1),
                (SSD, 0.3),
            )
            if dice.random() < chance
        ]
        inventories = {
            'VCPU': dice.choice([4, 8]),
            'MEMORY_MB': 4096,
            'MEM_ENCRYPTION_CONTEXT': dice.choice([1, 8]),
        }
        if dice.random() < 0.4:
            del inventories['MEM_ENCRYPTION_CONTEXT']
        if not shares:
            inventories['DISK_GB'] = 100
        node = {
            'name': name,
            'inventories': inventories,
            'traits': traits,
            'aggregates': members + ['shared'] * shares,
        }
        if dice.random() < 0.3:
            node['usages'] = {'VCPU': 4}
        if dice.random() < 0.4:
            node['children'] = [
                {
                    'name': f'{name}_gpu',
                    'inventories': {GPU: 2},
                    'traits': [],
                }
            ]
        return node

    def _server(self, zone_of):
        dice = self.dice
        server = {
            'id': 'b2a6d8f0-1111-4222-8333-444455556666',
            'name': 's1',
            'project': dice.choice([PROJECT, 'p2']),
            'host': dice.choice(NAMES),
            'flavor': dice.choice(['m1', 'keyed', 'fast', 'ssd', 'gpu']),
            'ports': [],
        }
        if dice.random() < 0.7:
            server['image'] = 'f' * 8
        if dice.random() < 0.3:
            server['availability_zone'] = dice.choice(ZONES)
        return server


class Commands:
    """What the commands say about a cloud, as sets of hosts."""

    def __init__(self, run, path, document):
        self._run = run
        self._path = path
        path.write_text(json.dumps(document))

    def document(self, *command):
        finished = self._run(
            *command, '--snapshot', str(self._path), '-f', 'json'
        )
        assert 'Traceback' not in finished.err
        start = finished.out.find('{')
        return json.loads(finished.out[start:]) if start >= 0 else {}

    def explained(self, *asked):
        hosts = self.document('explain', *asked).get('hosts', ())
        return {host['name'] for host in hosts if not host['reasons']}

    def checked(self, host, *asked):
        """Whether a server may use a host."""
        finished = self._run(
            'check', '--host', host, *asked, '--snapshot', str(self._path)
        )
        # A refused request is an error.
        answer = finished.out or finished.err
        assert answer
        assert (finished.code == 0) == (answer == 'yes\n')
        assert finished.code in (0, 4)
        return not finished.code

    def on_page(self, project, flavor, image):
        """Return what the script of the page reads for a request."""
        page = self._path.with_suffix('.html')
        owner = ['--project', project] if project else []
        finished = self._run(
            *('report', 'save', '--output', str(page), *owner),
            *('--snapshot', str(self._path)),
        )
        assert not finished.code, finished.err
        [data] = re.findall(
            r'application/json[^>]*>(.*?)</script>', page.read_text(), re.S
        )
        cells = json.loads(data)
        [row] = [
            row
            for row in cells['rows']
            if (row['flavor'], row['image']) == (flavor, image)
        ]
        return {
            host
            for group, case in zip(
                cells['groups'], lines_of(cells)[row['cells']], strict=True
            )
            if not case
            for host in group['hosts']
        }

    def listed(self, *asked):
        hosts = self.document(*asked).get('hosts', ())
        return {host['name'] for host in hosts}

    def matrix(self, *asked):
        table = self.document('matrix', 'list', *asked)
        [row] = table['rows']
        return {
            host
            for column, verdict in zip(
                table['columns'], row['verdicts'], strict=True
            )
            if verdict == 'yes'
            for host in column['hosts']
        }

    def tested(self, folder, **asked):
        path = folder / 'expectations.yaml'
        expectation = {'name': 'all', **asked, 'never': {'host': '*'}}
        path.write_text(
            json.dumps({'version': 1, 'expectations': [expectation]})
        )
        [result] = self.document('test', str(path))['expectations']
        if 'there is no project p' in str(result['problems']):
            return UNKNOWN_PROJECT
        return {
            host
            for problem in result['problems']
            for host in problem['extra_hosts']
        }


def emptied(document):
    """Return a cloud with nothing in use."""
    providers = [
        {key: value for key, value in each.items() if key != 'usages'}
        for each in document['providers']
    ]
    return {**document, 'providers': providers}


def check(number, run, tmp_path):
    """Ask all commands about one cloud."""
    world = World(number)
    now = Commands(run, tmp_path / 'now.yaml', world.document)
    empty = Commands(run, tmp_path / 'empty.yaml', emptied(world.document))
    flavor = world.dice.choice(FLAVORS)['name']
    image = ['--image', 'efi'] if flavor == 'secret' else []
    project = world.dice.choice([None, PROJECT, OTHER_PROJECT])
    owner = ['--project', project] if project else []
    zone = world.dice.choice([None, *ZONES])
    asked = ['--flavor', flavor, *image, *owner]

    # With what is in use.
    zoned = [*asked, *(['--availability-zone', zone] if zone else [])]
    offered = now.explained(*zoned)
    assert now.listed('candidate', 'list', *zoned) == offered
    packed = now.document('capacity', 'list', *zoned)
    counted = {host['name'] for host in packed.get('hosts', ())}
    if counted != offered:
        # What hosts share is counted on one of them; there is nothing left.
        assert counted
        assert counted < offered
        assert flavor in ('disk', 'ssd')
        assert packed['total'] == STORAGE // 10

    host = world.dice.choice(NAMES)
    assert now.checked(host, *zoned) == (host in offered)

    # If every host was empty.
    possible = empty.explained(*asked)
    assert now.matrix(*asked) == possible
    assert now.on_page(project, flavor, image[-1] if image else None) == (
        possible
    )
    tested = now.tested(
        tmp_path,
        flavor=flavor,
        **({'image': 'efi'} if image else {}),
        **({'project': project} if project else {}),
    )
    assert tested in (possible, UNKNOWN_PROJECT)
    if not zone:
        assert offered <= possible

    check_audit(world, now, tmp_path, run, flavor)
    check_slots(now, flavor, run, tmp_path)
    check_effect(world, now, tmp_path, run, flavor)
    check_server(world, now, empty, tmp_path, run)


def check_audit(world, now, tmp_path, run, flavor):
    """Who has no host has none anywhere, and whoever has none is told.

    That locks keep somebody out is what they are for.
    """
    findings = now.document('audit')['findings']
    kinds = {each['kind'] for each in findings if flavor in each['flavors']}
    image = ['--image', 'efi'] if flavor == 'secret' else []
    unlocked = Commands(run, tmp_path / 'unlocked.yaml', world.unlocked)
    if not unlocked.matrix('--flavor', flavor, *image):
        assert kinds
    if 'no-host' in kinds:
        idle = Commands(run, tmp_path / 'idle.yaml', world.idle)
        # nova-api accepts that flavor with this image only.
        images = [image] if image else [[], ['--image', 'efi']]
        owners = [[], ['--project', PROJECT]]
        for image, owner in itertools.product(images, owners):
            assert not idle.matrix('--flavor', flavor, *image, *owner)
    found = {each['kind'] for each in findings}
    assert ('schedule-zone-empty' in found) == world.is_default_zone_empty


def check_slots(now, flavor, run, tmp_path):
    """The slots of a zone are the capacity for requests of the zone."""
    if flavor == 'secret':
        return
    file = tmp_path / 'metrics.prom'
    run('exporter', '--snapshot', str(now._path), '--output', str(file))
    for zone in ZONES:
        capacity = now.document(
            'capacity', 'list', '--flavor', flavor, '--availability-zone', zone
        )
        total = sum(host['servers'] for host in capacity.get('hosts', ()))
        found = re.search(
            rf'zone_free_slots\{{availability_zone="{zone}",'
            rf'flavor_id="[^"]*",flavor_name="{flavor}"\}} (\S+)',
            file.read_text(),
        )
        if found:
            assert float(found[1]) == total
            continue
        # What is refused, or not known, is not counted.
        assert 'slots_up 0.0' in file.read_text()
        assert flavor in ('gpu', 'misspelt')
        assert capacity.get('not_known', True)


def check_effect(world, now, tmp_path, run, flavor):
    """The effect of an unlocking is the difference of two matrices."""
    changed = json.loads(json.dumps(world.document))
    [win] = [a for a in changed['aggregates'] if a['name'] == 'win']
    del win['metadata'][f'trait:{WIN}']
    after = Commands(run, tmp_path / 'after.yaml', changed)
    asked = '--flavor', flavor
    was, will_be = now.matrix(*asked), after.matrix(*asked)
    effect = now.document('effect', 'show', '--unset', 'win', f'trait:{WIN}')
    gained, lost = set(), set()
    for each in effect['flavors']:
        if each['flavor'] == flavor and each['image'] is None:
            gained, lost = set(each['gained']), set(each['lost'])
    assert (gained, lost) == (will_be - was, was - will_be)


def check_server(world, now, empty, tmp_path, run):
    """A server is asked about with one request."""
    [server] = world.document['servers']
    home = server['host']
    elsewhere = now.explained('--server', 's1') - {home}
    refuges = elsewhere
    if spared := world.enabled_if_lost(home):
        then = Commands(run, tmp_path / 'spared.yaml', spared)
        refuges = then.explained('--server', 's1') - {home}
    cases = now.document('survival', 'list')['cases']
    # Only failures that servers do not survive are listed.
    stranded = any(case['hosts'] == [home] for case in cases)
    assert stranded == (not refuges)

    # Whether devices can move is only known to Nova.
    planned = now.document(
        *('relocation', 'create', '--host', home, '--no-effect'),
        *('--include', 'devices'),
    )
    # From a host that is down a server is evacuated, not migrated.
    services = world.document.get('compute_services', ())
    down = {each['host'] for each in services if each['state'] == 'down'}
    if elsewhere and home not in down:
        [move] = planned['plan']['moves']
        assert move['target'] in elsewhere
    else:
        assert [each['id'] for each in planned['left']] == [server['id']]

    explained = empty.document('explain', '--server', 's1')
    reasons = [
        reason
        for host in explained['hosts']
        if host['name'] == home
        for reason in host['reasons']
    ]
    findings = empty.document('audit', '--servers')['findings']
    kinds = {
        each['kind']
        for each in findings
        if each['kind'] in ('server-misplaced', 'server-not-evaluated')
    }
    if world.agrees and kinds:
        assert reasons


@pytest.mark.parametrize('number', range(FEW))
def test_a_few_clouds(number, run, tmp_path):
    check(number, run, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize('number', range(FEW, MANY))
def test_many_clouds(number, run, tmp_path):
    check(number, run, tmp_path)
