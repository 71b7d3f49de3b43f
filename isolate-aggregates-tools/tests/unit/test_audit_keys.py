# SPDX-License-Identifier: Apache-2.0
"""The audit of flavors, images, reservations and services."""

import dataclasses

from audit_clouds import (
    LICENSED,
    LOCK,
    PREFIXES,
    configuration,
    findings,
    first,
    kinds,
    lines,
    server,
    servers,
)
from cases import cases
import pytest

from isolate_aggregates.filters import RequestFilter
from isolate_aggregates.filters.pipeline import LoadedFilter
from isolate_aggregates_tools import filter_keys
from isolate_aggregates_tools.audit import AuditedCloud, Severity, audit
from isolate_aggregates_tools.audit.demands import traits_if_valid
from isolate_aggregates_tools.compute.servers import ComputeService
from isolate_aggregates_tools.diagnosis.near_names import closest
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_image,
    make_provider,
    make_snapshot,
    make_tree,
)

WIN = make_aggregate('win', LOCK, ['h1'], id=7)
H1 = make_compute_node('h1', traits=[LICENSED])
NODE = make_compute_node('h2')
KEYED = make_flavor('win.small', LOCK)
PLAIN = make_flavor('m1.small')
KEYED_IMAGE = make_image('windows', LOCK)
RESERVED = configuration(**{key: ['reservation:'] for key in PREFIXES})


NOT_KNOWN = [
    'openstack --os-placement-api-version 1.6 trait create CUSTOM_NEW',
    'openstack flavor unset --property trait1:CUSTOM_NEW 42',
]


def test_no_flavor_is_taken_for_an_earlier_one():
    """One that is no longer used may leave its identity to the next."""
    cloud = AuditedCloud.of(make_snapshot(), configuration())
    for number in range(50):
        trait = f'CUSTOM_{number}'
        flavor = make_flavor('one', {f'trait:{trait}': 'required'})
        assert traits_if_valid(cloud, flavor) == {trait}
        del flavor


# Extra specs.


@pytest.mark.parametrize(
    ('key', 'value', 'kind', 'commands'),
    [
        (
            f'trait:{LICENSED}',
            'Required',
            'extra-spec-without-effect',
            ['set --property trait:CUSTOM_LICENSED=required'],
        ),
        (
            f'Trait:{LICENSED}',
            'required',
            'extra-spec-without-effect',
            [
                'unset --property Trait:CUSTOM_LICENSED',
                'set --property trait:CUSTOM_LICENSED=required',
            ],
        ),
        (
            f'trait:{LICENSED}',
            'maybe',
            'extra-spec-without-effect',
            ['unset --property trait:CUSTOM_LICENSED'],
        ),
        (
            f'trait:{LICENSED}',
            'require',
            'extra-spec-without-effect',
            ['set --property trait:CUSTOM_LICENSED=required'],
        ),
        (
            'traits:A=B',
            'required',
            'group-without-resources',
            ['unset --property traits:A=B'],
        ),
        (
            f'trait_X:{LICENSED}',
            'maybe',
            'extra-spec-without-effect',
            ['unset --property trait_X:CUSTOM_LICENSED'],
        ),
        (
            f'traits:{LICENSED}',
            'required',
            'group-without-resources',
            [
                'set --property trait:CUSTOM_LICENSED=required',
                'unset --property traits:CUSTOM_LICENSED',
            ],
        ),
    ],
)
def test_an_extra_spec_without_effect_is_found(key, value, kind, commands):
    flavor = dataclasses.replace(make_flavor('f', {key: value}), id='42')
    [finding] = [f for f in findings([], [H1], [flavor]) if f.kind == kind]
    assert f'{key}={value}' in finding.problem
    assert first(finding) == ' && '.join(
        f'openstack flavor {command} 42' for command in commands
    )
    assert not finding.safe


@pytest.mark.parametrize(
    'extra_specs',
    [
        {f'trait:{LICENSED}': 'forbidden'},
        {f'trait_GPU:{LICENSED}': 'required', 'resources_GPU:VCPU': '1'},
        {'hw:cpu_policy': 'dedicated'},
    ],
)
def test_correct_and_foreign_extra_specs_are_accepted(extra_specs):
    nodes = [H1, make_compute_node('h2')]
    assert kinds([], nodes, [make_flavor('f', extra_specs)]) == []


@pytest.mark.parametrize(
    ('key', 'value', 'expected'),
    [
        (f'trait:{LICENSED}', 'required', []),
        (f'trait:{LICENSED}', 'Required', ['image-property-without-effect']),
        (f'trait:{LICENSED}', 'maybe', ['image-property-without-effect']),
        (f'traits:{LICENSED}', 'required', ['image-property-without-effect']),
        ('traits_of_character', 'required', []),
        ('traits:of_character', 'many', []),
    ],
)
def test_an_image_property_without_effect_is_found(key, value, expected):
    image = make_image('i', {key: value})
    problems = findings([], [H1], [PLAIN], [image])
    assert [f.kind for f in problems] == expected
    for finding in problems:
        assert f'{key}={value}' in finding.problem
        assert lines(finding)[-1] == (
            f'openstack image unset --property {key} {image.id}'
        )


@pytest.mark.parametrize(
    ('visibility', 'corrected'), [('public', True), ('private', False)]
)
def test_only_an_operators_image_gets_the_key(visibility, corrected):
    image = make_image(
        'i', {f'trait:{LICENSED}': 'require'}, visibility=visibility
    )
    [finding] = findings([], [H1], [PLAIN], [image])
    correction = (
        f'openstack image set --property trait:{LICENSED}=required {image.id}'
    )
    assert (correction in lines(finding)) == corrected


def test_settings_that_nova_rejects_are_found():
    bad = {'hw:cpu_policy': 'perhaps'}
    image = make_image('i', {'hw_cpu_policy': 'perhaps'})
    assert kinds([], [H1], [make_flavor('f', bad)], [image]) == [
        'flavor-invalid',
        'image-invalid',
    ]


# Demands.


def test_a_flavor_that_requires_a_trait_no_host_has():
    flavor = dataclasses.replace(KEYED, id='42')
    [finding] = findings([], [make_compute_node('h1')], [flavor])
    assert (finding.kind, finding.subject) == (
        'no-host',
        'flavor win.small',
    )
    assert first(finding) == (
        f'openstack flavor unset --property trait:{LICENSED} 42'
    )


@pytest.mark.parametrize(
    ('all_traits', 'repairs'),
    [
        (None, [NOT_KNOWN]),
        ({LICENSED}, [NOT_KNOWN]),
        ({LICENSED, 'CUSTOM_NEW'}, []),
    ],
)
def test_a_flavor_that_forbids_a_trait_that_does_not_exist(
    all_traits, repairs
):
    flavor = make_flavor(
        'f',
        {
            'resources1:VCPU': '1',
            'trait1:CUSTOM_NEW': 'forbidden',
            f'trait:{LICENSED}': 'forbidden',
        },
    )
    flavor = dataclasses.replace(flavor, id='42')
    host = make_compute_node('h1', traits=[LICENSED])
    hosts = [host, make_compute_node('h2')]
    problems = findings([], hosts, [flavor], traits=all_traits)
    assert [lines(f) for f in problems if f.kind == 'no-host'] == repairs


def test_the_extra_spec_that_requires_the_trait_is_removed():
    flavor = make_flavor(
        'f',
        {
            'resources1:VCPU': '1',
            f'trait1:{LICENSED}': 'forbidden',
            f'trait:{LICENSED}': 'required',
        },
    )
    flavor = dataclasses.replace(flavor, id='42')
    host = make_compute_node('h1')
    problems = findings([], [host], [flavor], traits=frozenset({LICENSED}))
    assert [first(f) for f in problems if f.kind == 'no-host'] == [
        f'openstack flavor unset --property trait:{LICENSED} 42'
    ]


def test_a_setting_that_implies_a_trait_no_host_has_is_found():
    flavor = make_flavor('f', {'os:secure_boot': 'required'})
    [finding] = findings([], [H1], [flavor])
    assert finding.kind == 'no-host'
    [hint] = lines(finding)
    # A lock would give no host this trait, and close those in it.
    assert hint.startswith('nova-compute reports this trait on hosts ')


@pytest.mark.parametrize(
    ('fields', 'extra_specs', 'problem', 'repair'),
    [
        (
            {'vcpus': 17},
            {},
            'requests 17 of VCPU, and the most that a host has for a server '
            'is 16',
            'Nova cannot change the size of a flavor: create one with vcpus '
            'of at most 16, or add a larger host',
        ),
        (
            {},
            {'resources:VGPU': '3'},
            'requests 3 of VGPU, and the most that a host has for a server is '
            '2',
            'openstack flavor set --property resources:VGPU=2 42',
        ),
        (
            {},
            {'trait:CUSTOM_A': 'required', 'trait:CUSTOM_B': 'required'},
            'requires traits CUSTOM_A, CUSTOM_B with what else it requests, '
            'and no host has them together',
            None,
        ),
    ],
)
def test_what_no_host_could_ever_take_is_named(
    fields, extra_specs, problem, repair
):
    nodes = [
        make_compute_node(
            'h1', inventories={'VCPU': 16, 'VGPU': 2}, traits=['CUSTOM_A']
        ),
        make_compute_node('h2', inventories={'VCPU': 8}, traits=['CUSTOM_B']),
    ]
    flavor = make_flavor(
        'f', extra_specs, **{'vcpus': 1, 'ram': 0, 'disk': 0, **fields}
    )
    [finding] = findings([], nodes, [dataclasses.replace(flavor, id='42')])
    assert (finding.kind, finding.problem) == ('no-host', problem)
    assert first(finding) == repair or lines(finding) == [repair]


def test_a_flavor_with_an_unknown_pci_alias_is_found():
    flavor = make_flavor('gpu', {'pci_passthrough:alias': 'a10:1'})
    nodes = [make_compute_node('h1')]
    aliases = ['{"name": "a100", "vendor_id": "10de", "product_id": "20b5"}']
    conf = configuration(alias=aliases)
    [finding] = findings([], nodes, [flavor], conf=conf)
    assert finding.kind == 'flavor-invalid'
    assert 'names a10, and [pci] alias of nova-api has only a100' in (
        finding.problem
    )
    # They may be configured elsewhere.
    assert kinds([], nodes, [flavor]) == []


def test_a_host_that_is_full_disabled_or_down_could_take_a_flavor():
    node = make_compute_node(
        'h1',
        inventories={'VCPU': 1},
        usages={'VCPU': 1},
        traits=['COMPUTE_STATUS_DISABLED'],
    )
    flavor = make_flavor('f', vcpus=1, ram=0, disk=0)
    services = [ComputeService('h1', is_up=False, is_enabled=False)]
    assert 'no-host' not in kinds([], [node], [flavor], services=services)


def test_a_full_host_could_take_groups_that_share_a_resource():
    """The sum of the groups counts against the capacity, not what is free."""
    node = make_compute_node(
        'h1', inventories={'VCPU': 4, 'VGPU': 2}, usages={'VGPU': 2}
    )
    two = {'resources1:VGPU': '1', 'resources2:VGPU': '1'}
    flavor = make_flavor(
        'f', {**two, 'group_policy': 'none'}, vcpus=1, ram=0, disk=0
    )
    assert 'no-host' not in kinds([], [node], [flavor])
    third = {**flavor.extra_specs, 'resources3:VGPU': '1'}
    more = dataclasses.replace(flavor, extra_specs=third)
    assert 'no-host' in kinds([], [node], [more])


def test_a_flavor_with_suffixes_only_has_no_host_beside_locks():
    none = ('VCPU', 'MEMORY_MB', 'DISK_GB')
    specs = {f'resources:{name}': '0' for name in none}
    flavor = make_flavor('numbered', {**specs, 'resources1:VCPU': '1'})
    nodes = [H1, NODE]
    assert kinds([], nodes, [flavor]) == []
    [finding] = [
        each
        for each in findings([WIN], nodes, [flavor, KEYED])
        if each.kind == 'no-host'
    ]
    assert finding.problem == (
        'requests all resources in request groups with a suffix, so that '
        'Placement rejects its query as soon as that requires or forbids an '
        'aggregate'
    )
    assert lines(finding) == ['request at least one resource without a suffix']
    mixed = make_flavor('mixed', flavor.extra_specs | {'resources:VCPU': '1'})
    assert kinds([WIN], nodes, [mixed, KEYED]) == []


TWO = ['CUSTOM_GPU', 'CUSTOM_A100']
GPU, A100 = ({f'trait:{trait}': 'required'} for trait in TWO)


@pytest.mark.parametrize(
    ('required', 'image', 'found'),
    [
        pytest.param(GPU, {}, True, id='one of two keys'),
        pytest.param(GPU | A100, {}, False, id='both keys'),
        pytest.param(GPU, A100, False, id='the other in an image'),
        pytest.param({}, {}, False, id='no key: that is what locks are for'),
    ],
)
def test_a_flavor_with_some_keys_of_locked_hosts_has_no_host(
    required, image, found
):
    gpu = make_aggregate('gpu', GPU, ['h1'])
    newest = make_aggregate('gpu-a100', GPU | A100, ['h1'])
    node = make_compute_node('h1', traits=TWO)
    whole = make_flavor('whole', GPU | A100)
    flavor = dataclasses.replace(make_flavor('f', required), id='42')
    problems = [
        each
        for each in findings(
            [gpu, newest],
            [node],
            [whole, flavor],
            [make_image('i', image)],
            conf=configuration(trait_sources=['flavor', 'image']),
        )
        if each.kind == 'no-host'
    ]
    assert bool(problems) == found
    for each in problems:
        assert each.subject == 'flavor f'
        assert each.problem == (
            'requires trait CUSTOM_GPU, and all hosts that have what it '
            'requests are locked; it lacks CUSTOM_A100'
        )
        assert first(each) == (
            'isolate-aggregates key add --flavor=42 --trait CUSTOM_A100'
        )


def test_sync_is_no_repair_for_a_trait_beside_its_opposite():
    """It adds none where another program keeps the opposite."""
    required = {'trait:CUSTOM_TRUSTED_TRUE': 'required'}
    trusted = make_aggregate('trusted', required, ['h1'])
    node = make_compute_node('h1', traits=['CUSTOM_TRUSTED_FALSE'])
    keyed = make_flavor('keyed', required)
    for found in findings([trusted], [node], [keyed]):
        assert 'isolate-aggregates sync' not in lines(found)


def test_an_image_whose_traits_no_host_has_together():
    nodes = [
        make_compute_node('h1', traits=['CUSTOM_GPU']),
        make_compute_node('h2', traits=['CUSTOM_A100']),
    ]
    image = make_image('windows', GPU | A100)
    [finding] = findings([], nodes, [PLAIN], [image])
    assert (finding.kind, finding.subject) == (
        'no-host',
        f'image windows ({image.id})',
    )
    assert finding.problem == (
        'requires traits CUSTOM_A100, CUSTOM_GPU, and no host has them '
        'together with what any flavor requests'
    )
    assert lines(finding) == [
        f'openstack image unset --property trait:{trait} {image.id}'
        for trait in sorted(TWO)
    ]
    both = make_compute_node('h3', traits=TWO)
    assert kinds([], [*nodes, both], [PLAIN], [image]) == []


def test_an_image_that_requires_a_trait_no_host_has():
    image = make_image('windows', LOCK)
    [finding] = findings([], [make_compute_node('h1')], [PLAIN], [image])
    assert finding.kind == 'no-host'
    assert finding.subject == f'image windows ({image.id})'
    assert first(finding) == (
        f'openstack image unset --property trait:{LICENSED} {image.id}'
    )


def test_sync_is_the_repair_for_a_trait_that_it_adds():
    problems = findings([WIN], [make_compute_node('h1')], [KEYED])
    assert {f.kind: first(f) for f in problems} == dict.fromkeys(
        ['trait-missing', 'no-host'], 'isolate-aggregates sync'
    )


@pytest.mark.parametrize(
    ('name', 'kind', 'command'),
    [
        (
            'CUSTOM_RESERVATION_1',
            'reservation-flavor-left',
            'openstack flavor delete 42',
        ),
        (
            'CUSTOM_FPGA',
            'no-host',
            'openstack flavor unset --property resources:CUSTOM_FPGA 42',
        ),
    ],
)
def test_a_flavor_that_asks_for_resources_no_host_has(name, kind, command):
    flavor = make_flavor('f', {f'resources:{name}': '1'})
    flavor = dataclasses.replace(flavor, id='42')
    [finding] = findings([], [H1], [flavor])
    assert (finding.kind, first(finding)) == (kind, command)
    has = make_provider('fpga', inventories={name: 1})
    assert kinds([], [make_tree(H1, has)], [flavor]) == []


def test_a_resource_amount_of_zero_is_ignored():
    flavor = make_flavor('f', {'resources:CUSTOM_FPGA': '0'})
    assert kinds([], [H1], [flavor]) == []


# Keys.


@cases(
    ('flavors', 'images', 'sources', 'expected'),
    {
        'flavor': ([KEYED], [], ['flavor', 'image'], []),
        'image': ([PLAIN], [KEYED_IMAGE], ['flavor', 'image'], []),
        'image that does not count': (
            [PLAIN],
            [KEYED_IMAGE],
            ['flavor'],
            ['nothing-opens'],
        ),
        'no key': ([PLAIN], [], ['flavor', 'image'], ['nothing-opens']),
    },
)
def test_a_lock_needs_a_flavor_or_image_with_the_key(
    flavors, images, sources, expected
):
    conf = configuration(trait_sources=sources)
    assert kinds([WIN], [H1], flavors, images, conf=conf) == expected


def test_two_locks_need_a_flavor_with_both_keys():
    other = make_aggregate('gpu', {'trait:CUSTOM_GPU': 'required'}, ['h1'])
    other = dataclasses.replace(other, id=8, hosts=frozenset({'h1', 'h2'}))
    nodes = [
        make_compute_node('h1', traits=[LICENSED, 'CUSTOM_GPU']),
        make_compute_node('h2', traits=['CUSTOM_GPU']),
    ]
    flavors = [KEYED, make_flavor('gpu', {'trait:CUSTOM_GPU': 'required'})]
    [finding] = findings([WIN, other], nodes, flavors)
    assert (finding.kind, finding.severity) == (
        'nothing-opens',
        Severity.WARNING,
    )
    assert finding.subject == 'aggregates gpu, win'
    assert 'CUSTOM_GPU, CUSTOM_LICENSED' in finding.problem
    assert finding.consequence == 'no server can land on h1'
    assert lines(finding) == [
        f'isolate-aggregates key add --flavor={KEYED.id} --trait CUSTOM_GPU',
        f'isolate-aggregates key add --flavor={flavors[1].id} '
        f'--trait {LICENSED}',
        # It is the only host there, so least is lost.
        'openstack aggregate remove host 7 h1',
    ]
    both = make_image('both', LOCK)
    # The other flavor still has no host.
    assert kinds([WIN, other], nodes, flavors, [both]) == ['no-host']
    assert kinds([WIN, other], nodes, flavors[1:], [both]) == []


def test_no_repair_is_proposed_if_no_single_change_opens_a_host():
    names = ('CUSTOM_A', 'CUSTOM_B')
    locked = [
        make_aggregate(name, {f'trait:{name}': 'required'}, ['h1'])
        for name in names
    ]
    node = make_compute_node('h1', traits=names)
    [finding] = findings(locked, [node], [PLAIN])
    assert finding.kind == 'nothing-opens'
    assert [line for line in lines(finding) if line] == [
        'isolate-aggregates key add --flavor FLAVOR --trait CUSTOM_A && '
        'isolate-aggregates key add --flavor FLAVOR --trait CUSTOM_B, for the '
        'flavor whose servers belong there; this lets them use h1, and no '
        'other hosts'
    ]


def test_the_least_used_trait_is_granted_or_removed():
    tags = {**LOCK, 'trait:CUSTOM_GPU': 'required'}
    both = make_aggregate('both', tags, ['h1'], id=9)
    node = make_compute_node('h1', traits=[LICENSED, 'CUSTOM_GPU'])
    [finding] = findings([both], [node], [KEYED, PLAIN])
    assert lines(finding) == [
        f'isolate-aggregates key add --flavor={KEYED.id} --trait CUSTOM_GPU',
        'openstack aggregate unset --property trait:CUSTOM_GPU 9',
    ]


@cases(
    ('name', 'extra_specs', 'repair'),
    {
        'a word of the name': ('win.big', {}, 'grant'),
        'the value': ('other', {f'trait:{LICENSED}': 'require'}, 'set'),
        'the trait': ('other', {f'trait:{LICENSED}S': 'required'}, 'set'),
        'nothing': ('other', {}, 'FLAVOR'),
    },
)
def test_the_key_is_given_before_the_lock_is_taken_away(
    name, extra_specs, repair
):
    flavor = dataclasses.replace(make_flavor(name, extra_specs), id='42')
    problems = findings([WIN], [H1], [PLAIN, flavor])
    [opens] = [f for f in problems if f.kind == 'nothing-opens']
    given, taken = lines(opens)
    right = f'trait:{LICENSED}=required'
    assert given.startswith(
        {
            'grant': 'isolate-aggregates key add --flavor=42 ',
            'set': f'openstack flavor set --property {right}',
            'FLAVOR': 'isolate-aggregates key add --flavor FLAVOR ',
        }[repair]
    )
    assert taken == f'openstack aggregate unset --property trait:{LICENSED} 7'


@pytest.mark.parametrize(
    ('trait', 'traits', 'meant'),
    [
        ('CUSTOM_GPU_POL', 'CUSTOM_GPU_POOL', True),
        ('custom_gpu_pool', 'CUSTOM_GPU_POOL', True),
        ('CUSTOM_GPU_POOL_2', 'CUSTOM_GPU_POOL_1', False),
        ('CUSTOM_GPU_POOL_B', 'CUSTOM_GPU_POOL_A', False),
        ('CUSTOM_WINDOWS', 'CUSTOM_GPU_POOL', False),
        ('CUSTOM_GPU_POOL', 'CUSTOM_GPU_POOL', False),
    ],
)
def test_only_a_misspelled_trait_is_corrected(trait, traits, meant):
    assert closest(trait, [traits]) == (traits if meant else None)


def test_the_key_is_given_to_the_flavor_of_the_servers_there():
    flavor = dataclasses.replace(make_flavor('other', {}), id='42')
    present = servers(server(host='h1', flavor=make_flavor('other', LOCK)))
    problems = findings([WIN], [H1], [PLAIN, flavor], servers=present)
    [opens] = [f for f in problems if f.kind == 'nothing-opens']
    assert first(opens) == (
        f'isolate-aggregates key add --flavor=42 --trait {LICENSED}'
    )


def test_missing_flavors_are_reported():
    snapshot = make_snapshot([WIN], [H1])
    [found] = audit(AuditedCloud.of(snapshot, configuration()))
    assert (found.kind, found.severity) == ('no-flavors', Severity.INFO)


# Keys of tenants.


@pytest.mark.parametrize(
    ('visibility', 'sources', 'expected'),
    [
        ('private', ['flavor', 'image'], ['tenant-image-opens']),
        ('shared', ['flavor', 'image'], ['tenant-image-opens']),
        ('community', ['flavor', 'image'], ['tenant-image-opens']),
        ('public', ['flavor', 'image'], []),
        ('private', ['flavor'], []),
        (None, ['flavor', 'image'], []),
    ],
)
def test_a_tenants_image_that_opens_a_lock_is_found(
    visibility, sources, expected
):
    image = make_image('mine', LOCK, owner='p1', visibility=visibility)
    conf = configuration(trait_sources=sources)
    problems = findings([WIN], [H1], [KEYED], [image], conf=conf)
    assert [f.kind for f in problems] == expected
    for finding in problems:
        assert 'project p1' in finding.problem
        assert first(finding) == (
            f'openstack image unset --property trait:{LICENSED} {image.id}'
        )


LEASE = make_aggregate(
    'lease', {'reservation:1': 'yes', 'blazar:owner': 'p1'}, ['h1']
)


@pytest.mark.parametrize(
    ('key', 'owner', 'expected'),
    [
        ('reservation:1', 'p1', []),
        ('reservation:1', 'p2', ['reservation-key-foreign']),
        ('reservation:2', 'p1', ['reservation-key-left']),
        ('other:2', 'p1', []),
    ],
)
def test_an_image_that_names_a_reservation(key, owner, expected):
    image = make_image('i', {key: 'x'}, owner=owner, visibility='private')
    problems = findings([LEASE], [H1], [PLAIN], [image], conf=RESERVED)
    assert [f.kind for f in problems] == expected
    assert kinds([LEASE], [H1], [PLAIN], [image]) == []


@pytest.mark.parametrize(
    ('key', 'expected'),
    [('reservation:1', []), ('reservation:2', ['reservation-key-left'])],
)
def test_a_flavor_that_names_a_reservation(key, expected):
    flavor = make_flavor('reserved', {key: 'x'})
    assert kinds([LEASE], [H1], [flavor], conf=RESERVED) == expected


def test_a_key_with_leading_dashes_is_not_an_option():
    conf = configuration(**{PREFIXES[0]: ['-r:']})
    flavor = dataclasses.replace(make_flavor('f', {'-r:1': 'x'}), id='-42')
    [finding] = findings([], [H1], [flavor], conf=conf)
    assert first(finding) == 'openstack flavor unset --property=-r:1 -- -42'


# What reservations leave behind.


def test_a_class_of_an_ended_reservation_is_found():
    classes = {'CUSTOM_RESERVATION_1', 'CUSTOM_RESERVATION_2', 'CUSTOM_FPGA'}
    held = make_provider('blazar_h1', inventories={'CUSTOM_RESERVATION_1': 1})
    [finding] = findings(
        [],
        [make_tree(H1, held)],
        [PLAIN],
        resource_classes=frozenset(classes),
    )
    assert finding.kind == 'reservation-class-left'
    assert finding.subject == 'resource class CUSTOM_RESERVATION_2'
    assert first(finding) == (
        'openstack --os-placement-api-version 1.2 resource class delete '
        'CUSTOM_RESERVATION_2'
    )


def test_the_class_of_hosts_for_reservations_stays_with_the_pool():
    """It is of a pool without hosts, whose next host needs it again."""
    pool = make_aggregate(
        'freepool', {'trait:CUSTOM_RESERVATION_HOST': 'required'}
    )
    classes = frozenset({'CUSTOM_RESERVATION_HOSTS'})
    told = [
        findings(aggregates, [H1], [PLAIN], resource_classes=classes)
        for aggregates in ([pool], [])
    ]
    kept, left = (
        [f for f in some if f.kind == 'reservation-class-left']
        for some in told
    )
    assert kept == []
    [finding] = left
    assert finding.consequence == (
        'it does nothing, unless its reservation is being created right now'
    )


def test_a_host_with_slots_outside_the_pool_is_found():
    """The lock of the pool is all that keeps ordinary servers out."""
    reservation = '4d17d41a-1b7f-4b5e-9c2e-0a4b8d1e6f31'
    name = reservation.upper().replace('-', '_')
    host = 'CUSTOM_RESERVATION_HOST'
    slots = make_provider(
        'blazar_h1',
        inventories={f'CUSTOM_RESERVATION_{name}': 2},
        traits=[host],
    )
    tree = make_tree(make_compute_node('h1'), slots)
    lock = {f'trait:{host}': 'required'}
    pool = make_aggregate('freepool', lock, ['h1'])
    found = findings([pool], [tree], [PLAIN])
    assert 'reservation-host' not in [f.kind for f in found]
    emptied = dataclasses.replace(pool, hosts=frozenset())
    [finding] = [
        f
        for f in findings([emptied], [tree], [PLAIN])
        if f.kind == 'reservation-host'
    ]
    assert finding.subject == 'host h1'
    assert finding.problem == (
        f'has slots of reservation {reservation}, and is in no aggregate that '
        f'requires trait {host}, so that ordinary servers may use what is '
        'reserved'
    )
    # Enabled for reservations, but without one.
    marker = dataclasses.replace(
        slots,
        inventories=make_provider(
            'p', inventories={'CUSTOM_RESERVATION_HOSTS': 1}
        ).inventories,
    )
    tree = make_tree(make_compute_node('h1'), marker)
    found = findings([emptied], [tree], [PLAIN])
    assert 'reservation-host' not in [f.kind for f in found]


def test_nothing_of_a_flavor_with_the_name_of_a_record_is_to_be_deleted():
    """A file does not tell whether the reservation lives."""
    resource_class = 'CUSTOM_RESERVATION_2'
    flavor = dataclasses.replace(
        make_flavor('reservation:2', {f'resources:{resource_class}': '1'}),
        id='2',
    )
    found = findings(
        [], [H1], [flavor], resource_classes=frozenset({resource_class})
    )
    assert 'delete' not in str(found)


def test_a_blazar_provider_without_a_compute_node_is_found():
    stray = make_provider('blazar_h2')
    [finding] = findings([], [H1, stray], [PLAIN])
    assert finding.kind == 'reservation-provider-left'
    assert first(finding).endswith(f'resource provider delete {stray.uuid}')
    assert kinds([], [make_tree(H1, stray)], [PLAIN]) == []


def test_a_blazar_provider_in_use_is_not_offered_for_deletion():
    used = make_provider(
        'blazar_h2',
        inventories={'CUSTOM_RESERVATION_1': 1},
        usages={'CUSTOM_RESERVATION_1': 1},
    )
    [finding] = findings([], [H1, used], [PLAIN])
    assert (finding.kind, first(finding)) == (
        'reservation-provider-left',
        None,
    )


# Configuration and services.


def test_an_invalid_flavor_does_not_hide_other_findings():
    odd = make_flavor('odd', {'hw:cpu_policy': 'perhaps'})
    assert kinds([WIN], [H1], [odd, KEYED], placement='1.31') == [
        'placement-too-old',
        'flavor-invalid',
    ]


@pytest.mark.parametrize(
    'options',
    [
        {'enable_isolated_aggregate_filtering': False},
        {'request_filters': ['isolate_tenants']},
    ],
)
def test_tags_that_no_filter_reads_are_found(options):
    conf = configuration(**options)
    [finding] = findings([WIN], [H1], [KEYED], conf=conf)
    assert (finding.kind, finding.severity) == (
        'isolation-off',
        Severity.ERROR,
    )
    assert next(iter(options)) in finding.problem
    assert kinds([], [H1], conf=conf) == []


def test_a_prefix_in_only_one_list_is_found():
    conf = configuration(**{PREFIXES[1]: ['reservation:']})
    assert kinds([LEASE], [H1], [PLAIN], conf=conf) == ['prefix-in-one-list']


@pytest.mark.parametrize(
    ('newest', 'severity'),
    [
        ('2.52', [Severity.WARNING]),
        ('2.53', [Severity.INFO]),
        ('2.69', []),
        ('2.100', []),
    ],
)
def test_an_old_nova(newest, severity):
    problems = findings([], [H1], nova=newest)
    assert [f.severity for f in problems] == severity
    assert {f.kind for f in problems} <= {'nova-too-old'}


@pytest.mark.parametrize(
    ('newest', 'filters', 'needed'),
    [
        ('1.35', ['isolate_aggregates'], None),
        # Nova itself asks that disabled compute services are left out.
        ('1.34', ['isolate_aggregates'], '1.35 (Train)'),
        ('1.34', [], '1.35 (Train)'),
    ],
)
def test_an_old_placement(newest, filters, needed):
    conf = configuration(request_filters=filters)
    problems = findings(
        [WIN], [H1], [PLAIN, KEYED], conf=conf, placement=newest
    )
    old = [f.problem for f in problems if f.kind == 'placement-too-old']
    assert len(old) == (needed is not None)
    assert all(needed in problem for problem in old)


# Keys that only look right.


def test_a_reservation_key_in_another_case_cannot_be_named():
    aggregate = make_aggregate('lease', {'Reservation:1': ''}, id=7)
    [finding] = findings([aggregate], [NODE], conf=RESERVED)
    assert (finding.kind, finding.severity) == (
        'tag-that-nothing-opens',
        Severity.ERROR,
    )
    assert first(finding) == (
        'openstack aggregate set --property '
        'reservation:CUSTOM_CLOSED_DURING_REPAIR=required 7 && '
        'openstack aggregate unset --property Reservation:1 7 && '
        'openstack aggregate set --property reservation:1= 7 && '
        'openstack aggregate unset --property '
        'reservation:CUSTOM_CLOSED_DURING_REPAIR 7'
    )


def test_a_project_key_in_another_case_has_no_effect():
    aggregate = make_aggregate('ours', {'Filter_tenant_id2': 'p1'}, id=7)
    conf = configuration(request_filters=['isolate_tenants'])
    [finding] = findings([aggregate], [NODE], conf=conf)
    assert finding.kind == 'tag-without-effect'
    assert first(finding) == (
        'openstack aggregate unset --property Filter_tenant_id2 7 && '
        'openstack aggregate set --property filter_tenant_id2=p1 7'
    )


class Switched(RequestFilter):
    """A filter of another package that is switched off."""

    METADATA = ('rack:*',)

    def __call__(self, request, aggregates):
        return ()


@pytest.mark.parametrize(('read_by', 'kinds'), [((), 1), (('rack:*',), 0)])
def test_tags_of_any_disabled_filter_are_found(read_by, kinds):
    snapshot = make_snapshot([make_aggregate('mine', {'rack:7': 'x'}, id=8)])
    audited_cloud = AuditedCloud.of(
        snapshot, configuration(request_filters=[])
    )
    other = Foreign()
    other.METADATA = read_by
    audited_cloud = dataclasses.replace(
        audited_cloud,
        filters=(
            LoadedFilter('racks', Switched(), ('mine', 'racks')),
            LoadedFilter('other', other),
        ),
        enabled=frozenset({'other'}),
    )
    found = [f for f in audit(audited_cloud) if f.kind == 'isolation-off']
    assert len(found) == kinds
    assert all(
        (f.subject, f.problem)
        == ('aggregate mine', 'locked, but [mine] racks is false')
        for f in found
    )


class Foreign(RequestFilter):
    """A filter of another package, registered for the audit."""

    METADATA = ('trait:*',)

    def __call__(self, request, aggregates):
        return ()


filter_keys.sources.register(Foreign, lambda _: ('flavor', 'image'))
filter_keys.of_projects.register(Foreign, lambda _: ('project:',))
filter_keys.of_reservations.register(
    Foreign,
    lambda _: filter_keys.ReservationKeys(
        ('lease:',), ('lease:', 'kept:'), 'who'
    ),
)


def test_registered_filters_with_any_name_are_audited():
    tags = {'Kept:1': '', 'Project:a': 'p1'}
    snapshot = make_snapshot(
        [WIN, make_aggregate('mine', tags, id=8)],
        [H1],
        flavors=[make_flavor('leased', {**LOCK, 'lease:9': 'x'})],
        images=[make_image('i', {**LOCK, 'lease:9': 'x'}, owner='p2')],
    )
    audited_cloud = AuditedCloud.of(
        snapshot, configuration(request_filters=[])
    )
    assert [f.kind for f in audit(audited_cloud)] == ['isolation-off']
    audited_cloud = dataclasses.replace(
        audited_cloud,
        filters=(LoadedFilter('foreign', Foreign()),),
        enabled=frozenset({'foreign'}),
    )
    assert {f.kind for f in audit(audited_cloud)} == {
        'tag-that-nothing-opens',
        'tag-without-effect',
        'prefix-in-one-list',
        'reservation-key-left',
    }


@pytest.mark.parametrize('key', ['reservation:1', 'filter_tenant_id2', 'zone'])
def test_correct_and_foreign_keys_are_accepted(key):
    conf = configuration(
        request_filters=['reservation_prefix', 'isolate_tenants'],
        **{option: ['reservation:'] for option in PREFIXES},
    )
    assert kinds([make_aggregate('a', {key: 'x'})], [NODE], conf=conf) == []


@pytest.mark.parametrize('specs', [{}, {'cpu_allocation_ratio': '4'}])
def test_allocation_ratios_of_aggregates_have_no_effect(specs):
    aggregate = make_aggregate(
        'a', {'cpu_allocation_ratio': '4'}, ['h1'], id=1
    )
    found = [
        each
        for each in findings([aggregate], [H1], [make_flavor('f', specs)])
        if each.kind == 'tag-without-effect'
    ]
    # A flavor may require it as any other metadata.
    assert [first(each) for each in found] == (
        []
        if specs
        else ['openstack aggregate unset --property cpu_allocation_ratio 1']
    )


@pytest.mark.parametrize('amount', ['-1', 'one', '1.5', ''])
def test_an_amount_that_nova_drops_is_found(amount):
    """nova-api accepts it, and nova-scheduler requests nothing of it."""
    key = 'resources:CUSTOM_GPU'
    gpu = make_flavor('gpu', {key: amount})
    [finding] = findings([], [make_compute_node('h1')], [gpu])
    assert (finding.kind, finding.problem) == (
        'extra-spec-without-effect',
        f'has {key}={amount}, and an amount must be an integer from 0 on',
    )
    assert finding.consequence == 'Nova ignores it'


@pytest.mark.parametrize('amount', ['0', '+0', '0_0'])
def test_an_amount_of_zero_is_no_finding(amount):
    gpu = make_flavor('gpu', {'resources:CUSTOM_GPU': amount})
    assert findings([], [make_compute_node('h1')], [gpu]) == []
