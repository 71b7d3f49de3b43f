# SPDX-License-Identifier: Apache-2.0
"""``isolate-aggregates explain`` over cloud files."""

import csv
import io
import json
import pathlib
import re
import textwrap

from cases import cases
from explained import rows
import pytest
import yaml

EXAMPLES = pathlib.Path(__file__).parents[3] / 'examples'


def on_example(name, *arguments):
    """Return the arguments that explain a request for an example cloud."""
    path = str(EXAMPLES / f'{name}.yaml')
    return ('explain', '--hosts', '--snapshot', path, *arguments)


WINDOWS = on_example(
    'windows-licensing', '--flavor', 'm1.small', '--image', 'debian-12'
)
GPU = on_example('gpu-hosts', '--flavor', 'gpu.large')
ENDED = on_example('reservations', '--flavor', 'ended.small')
LOCKED = (
    'locked by trait CUSTOM_LICENSED_WINDOWS, which neither flavor m1.small '
    'nor image debian-12 requires'
)


# The formats


def test_a_table_has_the_summary_above_it(run):
    result = run(*WINDOWS)
    assert (result.code, result.err) == (0, '')
    before, _, table = result.out.partition('\n\n+')
    assert before == textwrap.dedent(f"""\
        2 of 5 hosts may be used.

        Hosts excluded by each constraint (in brackets: by it alone):
          2 (2)  isolate_aggregates: aggregate win-hosts: {LOCKED}
          1 (1)  compute_status: hosts with a disabled compute service take \
no servers""")
    assert [line.split('|')[1] for line in table.splitlines()[1:2]] == [
        ' Host    '
    ]
    assert rows(result) == {
        'linux-1': 'candidate',
        'linux-2': 'candidate',
        'linux-3': 'compute service disabled',
        'win-1': f'in aggregate win-hosts, {LOCKED}',
        'win-2': f'in aggregate win-hosts, {LOCKED}',
    }


def test_a_table_has_a_line_for_each_reason(run):
    assert run(*GPU).out == textwrap.dedent("""\
        2 of 4 hosts may be used.

        Hosts excluded by each constraint (in brackets: by it alone):
          2 (0)  requires trait CUSTOM_MASSIVE_GPU
          2 (0)  requests VGPU 1

        +---------+-----------+---------------------------------+
        | Host    | Verdict   | Reasons                         |
        +---------+-----------+---------------------------------+
        | gpu-1   | candidate |                                 |
        | gpu-2   | candidate |                                 |
        | plain-1 | excluded  | has no trait CUSTOM_MASSIVE_GPU |
        |         |           | VGPU: has none                  |
        | plain-2 | excluded  | has no trait CUSTOM_MASSIVE_GPU |
        |         |           | VGPU: has none                  |
        +---------+-----------+---------------------------------+
    """)


@pytest.mark.parametrize(
    ('formatter', 'parse'),
    [('json', json.loads), ('yaml', yaml.safe_load)],
)
def test_json_and_yaml_are_one_document_with_all_of_it(run, formatter, parse):
    result = run(*GPU, '-f', formatter)
    assert (result.code, result.err) == (0, '')
    document = parse(result.out)
    assert list(document) == ['schema', 'summary', 'hosts']
    summary = document['summary']
    assert summary.pop('constraints')[1:4:2] == [
        {
            'constraint': 'requires trait CUSTOM_MASSIVE_GPU',
            'kind': 'required-trait',
            'excludes': 2,
            'only_it_excludes': 0,
        },
        {
            'constraint': 'requests MEMORY_MB 32768',
            'kind': 'resource-amount',
            'excludes': 0,
            'only_it_excludes': 0,
        },
    ]
    assert summary == {
        'hosts': 4,
        'candidates': 2,
        'rejected': None,
        'not_known': [
            'which host filters run after Placement: [filter_scheduler] '
            'enabled_filters is not set here'
        ],
        'placement_differs': None,
        'limited': None,
        'nova_mixes_hosts': [],
        'left_to_host_filters': [],
        'together': [],
        'drop_any_of': [],
        'repairs': [],
    }
    assert document['hosts'][1:3] == [
        {
            'name': 'gpu-2',
            'node': 'gpu-2',
            'uuid': 'e262c2cf-e8c7-5cdc-b70a-77f6d811d329',
            'verdict': 'candidate',
            'reasons': [],
        },
        {
            'name': 'plain-1',
            'node': 'plain-1',
            'uuid': '14d8f3f0-3810-5858-9b0b-f68a678363cc',
            'verdict': 'excluded',
            'reasons': ['has no trait CUSTOM_MASSIVE_GPU', 'VGPU: has none'],
        },
    ]


def test_csv_and_value_have_only_one_line_per_host(run):
    both = 'has no trait CUSTOM_MASSIVE_GPU; VGPU: has none'
    assert list(csv.reader(io.StringIO(run(*GPU, '-f', 'csv').out))) == [
        ['Host', 'Verdict', 'Reasons'],
        ['gpu-1', 'candidate', ''],
        ['gpu-2', 'candidate', ''],
        ['plain-1', 'excluded', both],
        ['plain-2', 'excluded', both],
    ]
    assert run(*GPU, '-f', 'value').out.splitlines() == [
        'gpu-1 candidate ',
        'gpu-2 candidate ',
        f'plain-1 excluded {both}',
        f'plain-2 excluded {both}',
    ]


# What is shown


@pytest.mark.parametrize(
    ('option', 'hosts'),
    [
        ('--excluded', ['plain-1', 'plain-2']),
        ('--candidates', ['gpu-1', 'gpu-2']),
    ],
)
def test_all_hosts_are_counted_if_only_some_are_shown(run, option, hosts):
    result = run(*GPU, option)
    assert list(rows(result)) == hosts
    assert result.out.startswith('2 of 4 hosts may be used.\n')
    document = json.loads(run(*GPU, option, '-f', 'json').out)
    assert [host['name'] for host in document['hosts']] == hosts
    assert document['summary']['hosts'] == 4


def test_if_nothing_fits_the_constraint_to_drop_is_named(run):
    refused = (
        'reservation_prefix: no aggregate has the metadata key '
        'reservation:0badcafe, which the request names'
    )
    result = run(*ENDED)
    assert result.code == 4
    assert result.out.startswith(
        textwrap.dedent(f"""\
            0 of 4 hosts may be used.

            Hosts excluded by each constraint (in brackets: by it alone):
              4 (4)  {refused}

            No host fits. Dropping any one of these would help:
              {refused}

            Any one of these gives it a host:
              openstack flavor unset --property reservation:0badcafe """)
    )
    document = json.loads(run(*ENDED, '-f', 'json').out)
    assert document['summary']['drop_any_of'] == [[refused]]


SMALL = """
    providers:
    - name: one
      inventories: {VCPU: 2, MEMORY_MB: 1024, DISK_GB: 100}
    - name: two
      inventories: {VCPU: 8, MEMORY_MB: 1024, DISK_GB: 10}
    flavors:
    - {name: big, vcpus: 4, ram: 2048, disk: 40}
"""


LARGER = ' at most 1024, or add a larger host\n\n'


def test_each_combination_of_constraints_to_drop_is_shown(run, write_cloud):
    path = str(write_cloud(SMALL))
    result = run('explain', '--snapshot', path, '--flavor', 'big')
    assert result.out.startswith(
        textwrap.dedent("""\
            0 of 2 hosts may be used.

            Hosts excluded by each constraint (in brackets: by it alone):
              1 (0)  requests DISK_GB 40
              2 (0)  requests MEMORY_MB 2048
              1 (0)  requests VCPU 4

            No host fits. To get one, drop all of:
              requests DISK_GB 40
              requests MEMORY_MB 2048
            or all of:
              requests MEMORY_MB 2048
              requests VCPU 4

            What no command here can try:
              Nova cannot change the size of a flavor: create one with ram of
            +""").replace('with ram of\n', f'with ram of{LARGER}')
    )


TREE = """
    providers:
    - name: host
      inventories: {MEMORY_MB: 8}
      children:
      - name: numa0
        inventories: {VCPU: 16}
        usages: {VCPU: 13}
        traits: [HW_NUMA_ROOT]
      - {name: numa1, inventories: {VCPU: 16}}
    flavors:
    - name: pinned
      ram: 1
      extra_specs: {resources_NUMA:VCPU: 8, trait_NUMA:HW_NUMA_ROOT: required}
"""


def test_constraints_that_exclude_only_together_are_counted_together(
    run, write_cloud
):
    arguments = ('explain', '--hosts', '--snapshot', str(write_cloud(TREE)))
    result = run(*arguments, '--flavor', 'pinned')
    assert result.out.splitlines()[:4] == [
        '0 of 1 host may be used.',
        '',
        'Hosts excluded by each constraint (in brackets: by it alone):',
        '  1 (1)  together: group _NUMA: requires trait HW_NUMA_ROOT; '
        'group _NUMA: requests VCPU 8',
    ]
    assert rows(result) == {
        'host': 'group _NUMA: no single provider meets everything: numa0: '
        'VCPU: requested 8, free 3 (16 total x 1.0 - 13 used); numa1: has no '
        'trait HW_NUMA_ROOT'
    }
    document = json.loads(
        run(*arguments, '--flavor', 'pinned', '-f', 'json').out
    )
    assert document['summary']['together'] == [
        {
            'constraints': [
                'group _NUMA: requires trait HW_NUMA_ROOT',
                'group _NUMA: requests VCPU 8',
            ],
            'kinds': ['required-trait', 'resource-amount'],
            'excludes': 1,
            'only_they_exclude': 1,
        }
    ]


def test_each_node_of_a_host_is_named(run, write_cloud):
    path = write_cloud("""
        providers:
        - {name: node-2, host: metal, inventories: {CUSTOM_METAL: 1}}
        - {name: node-1, host: metal, inventories: {CUSTOM_METAL: 1}}
        - {name: node-3, host: other, inventories: {CUSTOM_METAL: 1}}
        flavors:
        - {name: metal, extra_specs: {resources:CUSTOM_METAL: 1}}
    """)
    result = run(
        *('explain', '--hosts', '--snapshot', str(path), '--flavor', 'metal')
    )
    assert list(rows(result)) == [
        'metal (node-1)',
        'metal (node-2)',
        'other',
    ]


def test_a_cloud_without_hosts_is_reported(run, write_cloud):
    path = write_cloud('flavors:\n- {name: small, vcpus: 1}')
    result = run('explain', '--snapshot', str(path), '--flavor', 'small')
    assert result.code == 0
    assert result.out.startswith('There are no compute hosts.\n')


@cases(
    ('arguments', 'host', 'said'),
    {
        'a requested host': (
            on_example('shared-storage', '--flavor', 'small', '--host', 'cn1'),
            'cn2',
            "not in the requested host's tree",
        ),
        'a reservation': (
            on_example('reservations', '--flavor', 'reserved.small'),
            'open-1',
            'not in aggregate lease-4d17d41a',
        ),
        'a reservation of another project': (
            on_example(
                'reservations',
                *('--flavor', 'm1.small', '--project', 'other'),
                *('--image', 'reserved-debian-12'),
            ),
            'reserved-1',
            'reservation:4d17d41a is named by the image or a hint',
        ),
        'a tree in an aggregate': (
            on_example('nested-aggregates', '--flavor', 'm1.small'),
            'cn1',
            'in aggregate aggA',
        ),
    },
)
def test_each_filter_explains_its_example(run, arguments, host, said):
    assert rows(run(*arguments))[host].startswith(said)


def test_the_table_has_only_the_host_that_is_requested(run):
    path = str(EXAMPLES / 'shared-storage.yaml')
    asked = ('explain', '--snapshot', path, '--flavor', 'small')
    whole, part = (
        re.findall(r'^\| (cn\S+)', run(*asked, *more).out, re.MULTILINE)
        for more in ((), ('--host', 'cn1'))
    )
    assert part == ['cn1'] != whole


# Mistakes


@cases(
    ('arguments', 'said'),
    {
        'no flavor': (
            (),
            '--flavor or --server or --request is required',
        ),
        'a flavor and a server': (
            ('--flavor', 'a', '--server', 'b'),
            '--server cannot be used with --flavor',
        ),
        'only some, and only the others': (
            ('--flavor', 'a', '--excluded', '--candidates'),
            '--candidates cannot be used with --excluded',
        ),
        'a hint without a value': (
            ('--flavor', 'a', '--hint', 'group'),
            "--hint: 'group' is not a valid scheduler hint; write "
            '<key>=<value>',
        ),
    },
)
def test_invalid_arguments_are_refused(run, arguments, said):
    result = run('explain', *arguments)
    assert (result.code, result.out) == (2, '')
    _, _, sentence = result.err.partition(' explain: ')
    assert sentence.partition('. See ')[0] == said


def test_a_cloud_file_may_have_no_servers(run):
    result = run(*on_example('gpu-hosts', '--server', '7c9a52a4'))
    assert (result.code, result.out) == (1, '')
    assert result.err == (
        f'{EXAMPLES / "gpu-hosts.yaml"} has no servers; save it again without '
        '--no-servers.\n'
    )


def test_a_query_that_placement_would_refuse_is_not_explained(
    run, write_cloud
):
    path = write_cloud("""
        providers:
        - {name: host, inventories: {VCPU: 2}}
        flavors:
        - name: two
          extra_specs: {resources1:VCPU: 1, resources2:VCPU: 1}
    """)
    result = run('explain', '--snapshot', str(path), '--flavor', 'two')
    assert (result.code, result.err) == (4, '')
    assert result.out.startswith(
        '0 of 1 host may be used.\n'
        '\n'
        'Placement would reject the request as invalid (400): 2 groups with a '
        'suffix require group_policy=none or group_policy=isolate.\n'
        'Nova finds no host for a server whose query is rejected.\n'
        '\n'
        'Any one of these gives it a host:\n'
        '  openstack flavor set --property group_policy=none '
    )
    assert rows(result) == {'host': 'Placement rejects the query'}


def test_tags_that_have_no_effect_are_warned_about(run, write_cloud):
    path = write_cloud("""
        aggregates:
        - {name: locked, metadata: {trait:CUSTOM_A: required}, hosts: [host]}
        providers:
        - {name: host, inventories: {VCPU: 1}}
        flavors:
        - {name: small, vcpus: 1}
    """)
    result = run('explain', '--snapshot', str(path), '--flavor', 'small')
    assert rows(result) == {'host': 'candidate'}
    assert 'no configuration was read, so the tag counts as ' in result.err


@pytest.mark.parametrize('form', ['table', 'value'])
def test_control_characters_in_names_are_escaped(run, write_cloud, form):
    path = write_cloud("""
        settings:
          scheduler: {enable_isolated_aggregate_filtering: true}
        aggregates:
        - name: win
          metadata: {trait:CUSTOM_A: required}
          hosts: [h]
        providers:
        - {name: h, inventories: {VCPU: 8, MEMORY_MB: 8192, DISK_GB: 99}}
        flavors:
        - {name: "small\\n| other | candidate |\\e[31m\\u202e", vcpus: 1}
        """)
    name = 'small\n| other | candidate |\x1b[31m\u202e'
    result = run(
        'explain', '--snapshot', str(path), '--flavor', name, '-f', form
    )
    assert r'small\n| other | candidate |\x1b[31m\u202e' in result.out
    assert all(line.isprintable() for line in result.out.splitlines())


# Many hosts


def many(hosts, locks):
    """Return the text of a cloud whose hosts are locked in turn.

    The last lock has one host, which is full, and one host has two locks.
    """
    names = [f'cn-{number:04}' for number in range(1, hosts + 1)]
    aggregates = {
        f'lock-{number:02}': names[number * 2 : number * 2 + 2]
        for number in range(1, locks + 1)
    }
    aggregates['lock-01'] = [*aggregates['lock-01'], names[4]]
    return json.dumps(
        {
            'version': 1,
            'settings': {
                'scheduler': {'enable_isolated_aggregate_filtering': True}
            },
            'aggregates': [
                {
                    'name': name,
                    'metadata': {
                        name.replace('lock-', 'trait:CUSTOM_'): 'required'
                    },
                    'hosts': members,
                }
                for name, members in aggregates.items()
            ],
            'providers': [
                {
                    'name': name,
                    'inventories': {'VCPU': 16},
                    'usages': {'VCPU': 14 + number % 2} if number > 17 else {},
                }
                for number, name in enumerate(names)
            ],
            'flavors': [{'name': 'big', 'vcpus': 4}],
        }
    )


def test_hosts_and_constraints_are_grouped_by_filter_and_cause(run, tmp_path):
    path = tmp_path / 'many.yaml'
    path.write_text(many(hosts=20, locks=8))
    result = run('explain', '--snapshot', str(path), '--flavor', 'big')
    lock = (
        'locked by trait CUSTOM_[01-08], which flavor big does not require '
        '(respectively)'
    )
    short = 'VCPU: requested 4, free 1 to 2 (16 total x 1.0 - 14 to 15 used)'
    assert result.out.splitlines()[:5] == [
        '2 of 20 hosts may be used.',
        '',
        'Hosts excluded by each constraint (in brackets: by it alone):',
        f'  16 (16)  isolate_aggregates: aggregate lock-[01-08]: {lock}',
        '  2 (2)  requests VCPU 4',
    ]
    assert [
        [cell.strip() for cell in line.strip('|').split('|')]
        for line in result.out.splitlines()
        if line.startswith('|')
    ] == [
        ['Host', 'Verdict', 'Reasons'],
        ['cn-[0001-0002]', 'candidate', ''],
        [
            'cn-[0003-0018]',
            'excluded',
            f'depending on the host: in aggregate lock-[01-08], {lock}',
        ],
        ['(16 hosts)', '', ''],
        ['cn-[0019-0020]', 'excluded', short],
    ]


def test_no_host_is_said_to_be_where_only_another_one_is(run, tmp_path):
    """Reasons of few hosts are told of each; only amounts are merged."""
    cloud = json.loads(many(hosts=20, locks=8))
    free, left = cloud['providers'][:2], cloud['aggregates'][:2]
    names = [provider['name'] for provider in cloud['providers'][2:6]]
    for aggregate, some in zip(left, (names[:3], names[2:]), strict=True):
        aggregate['hosts'] = some
    cloud['aggregates'] = left
    cloud['providers'] = [*free, *cloud['providers'][2:6]]
    path = tmp_path / 'few.yaml'
    path.write_text(json.dumps(cloud))
    result = run('explain', '--snapshot', str(path), '--flavor', 'big')
    first, second = (
        f'in aggregate lock-{n}, locked by trait CUSTOM_{n}, which flavor big '
        'does not require'
        for n in ('01', '02')
    )
    assert [
        [cell.strip() for cell in line.strip('|').split('|')]
        for line in result.out.splitlines()
        if line.startswith('|')
    ][1:] == [
        ['cn-[0001-0002]', 'candidate', ''],
        ['cn-[0003-0004]', 'excluded', first],
        ['cn-0005', 'excluded', first],
        ['', '', second],
        ['cn-0006', 'excluded', second],
    ]


def test_constraints_to_drop_are_grouped_by_filter_and_cause(run, tmp_path):
    path = tmp_path / 'many.yaml'
    path.write_text(many(hosts=20, locks=8))
    cloud = json.loads(path.read_text())
    # The two that nothing locks are gone.
    del cloud['providers'][:2]
    path.write_text(json.dumps(cloud))
    result = run('explain', '--snapshot', str(path), '--flavor', 'big')
    start = result.out.index('No host fits.')
    assert result.out[start:].splitlines()[:4] == [
        'No host fits. Dropping any one of these would help:',
        '  isolate_aggregates: aggregate lock-[01-08]: locked by trait '
        'CUSTOM_[01-08], which flavor big does not require (respectively)',
        '  requests VCPU 4',
        '',
    ]


def test_each_host_and_constraint_can_be_listed_separately(run, tmp_path):
    path = tmp_path / 'many.yaml'
    path.write_text(many(hosts=20, locks=8))
    arguments = ('explain', '--snapshot', str(path), '--flavor', 'big')
    result = run(*arguments, '--hosts')
    assert len(rows(result)) == 20
    assert result.out.count(' isolate_aggregates: aggregate lock-0') == 8
    # A line or an entry is a host anyway.
    assert len(run(*arguments, '-f', 'value').out.splitlines()) == 20
    assert len(json.loads(run(*arguments, '-f', 'json').out)['hosts']) == 20


def test_only_the_most_common_combinations_of_reasons_have_a_row(
    run, tmp_path
):
    amounts = {'VCPU': 4, 'MEMORY_MB': 4096, 'DISK_GB': 40}
    bits = range(2 ** (len(amounts) + 2))
    # Each combination of five reasons, and the last one twice.
    names = {f'cn-{bit:02}': bit for bit in bits} | {'again': bits[-1]}
    cloud = {
        'version': 1,
        'settings': {
            'scheduler': {'enable_isolated_aggregate_filtering': True}
        },
        'aggregates': [
            {
                'name': 'locked',
                'metadata': {'trait:CUSTOM_A': 'required'},
                'hosts': [name for name, bit in names.items() if bit & 16],
            }
        ],
        'providers': [
            {
                'name': name,
                'inventories': amounts,
                'usages': {
                    resource_class: amount
                    for place, (resource_class, amount) in enumerate(
                        amounts.items()
                    )
                    if bit >> place & 1
                },
                'traits': [] if bit & 8 else ['CUSTOM_B'],
            }
            for name, bit in names.items()
        ],
        'flavors': [
            {
                'name': 'small',
                'vcpus': 1,
                'ram': 1024,
                'disk': 10,
                'extra_specs': {'trait:CUSTOM_B': 'required'},
            }
        ],
    }
    path = tmp_path / 'cloud.yaml'
    path.write_text(json.dumps(cloud))
    arguments = ('explain', '--snapshot', str(path), '--flavor', 'small')
    result = run(*arguments)
    shown = list(rows(result))
    assert len(shown) == 20
    assert shown[:2] == ['cn-00', 'again, cn-31']
    assert result.out.splitlines()[-1] == (
        '12 more hosts for 12 other combinations of reasons; --hosts shows '
        'each host.'
    )
    assert len(rows(run(*arguments, '--hosts'))) == 33


TWO = """\
version: 1
settings:
  isolate_aggregates:
    request_filters: [aggregate_instance_extra_specs]
aggregates:
- {name: ssd, metadata: {ssd: 'true'}, hosts: [cn1]}
- {name: gpus, metadata: {gpus: '4'}, hosts: []}
providers:
- {name: cn1, inventories: {VCPU: 8}}
- {name: cn2, inventories: {VCPU: 8}}
flavors:
- {name: f, vcpus: 1, extra_specs: {ssd: 'true', gpus: '>= 2'}}
"""


def test_a_host_lists_only_metadata_that_it_lacks(run, tmp_path):
    path = tmp_path / 'cloud.yaml'
    path.write_text(TWO)
    output = run('explain', '--snapshot', str(path), '--flavor', 'f').out
    gpus = 'not in aggregate gpus: flavor f requires gpus >= 2'
    ssd = 'not in aggregate ssd: flavor f requires ssd=true'
    rows = [
        [cell.strip() for cell in line.strip('|').split('|')]
        for line in output.splitlines()
        if line.startswith('| ')
    ]
    assert sorted(rows[1:]) == sorted(
        [['cn1', 'excluded', gpus], ['cn2', 'excluded', ssd], ['', '', gpus]]
    )


def test_a_locked_host_that_no_query_of_a_pinned_flavor_fits(run, write_cloud):
    path = write_cloud("""\
settings: {scheduler: {enable_isolated_aggregate_filtering: true}}
aggregates:
- {name: win, metadata: {'trait:CUSTOM_WIN': required}, hosts: [h1]}
providers:
- {name: h1, inventories: {MEMORY_MB: 512, VCPU: 8}}
flavors:
- {name: f, vcpus: 1, ram: 1024, extra_specs: {hw:cpu_policy: dedicated}}
""")
    result = run(
        'explain', '--hosts', '--snapshot', str(path), '--flavor', 'f'
    )
    assert (result.code, result.err) == (0, '')
    reasons = rows(result)['h1']
    assert reasons.count('locked by trait CUSTOM_WIN') == 1


def test_three_full_hosts_are_named_that_could_be_emptied(run, write_cloud):
    hosts = [
        {'name': name, 'inventories': {'VCPU': 1}, 'usages': {'VCPU': 1}}
        for name in ('h1', 'h2', 'h3', 'h4')
    ]
    # Some of their servers may have the key to the fifth.
    free = {'name': 'h5', 'inventories': {'VCPU': 1}, 'traits': ['CUSTOM_WIN']}
    win = {'trait:CUSTOM_WIN': 'required'}
    path = write_cloud(
        yaml.dump(
            {
                'settings': {
                    'scheduler': {'enable_isolated_aggregate_filtering': True}
                },
                'aggregates': [
                    {'name': 'win', 'metadata': win, 'hosts': ['h5']}
                ],
                'providers': [*hosts, free],
                'flavors': [{'name': 'f', 'vcpus': 1}],
            }
        )
    )
    result = run('explain', '--snapshot', str(path), '--flavor', 'f')
    for name, count in (('h1', 1), ('h2', 1), ('h3', 1), ('h4', 0)):
        assert result.out.count(f'{name} is full') == count


RESERVATION = '4d17d41a-1b7f-4b5e-9c2e-0a4b8d1e6f31'
SLOTS = f'CUSTOM_RESERVATION_{RESERVATION.upper().replace("-", "_")}'


def reserved(used):
    """Return a cloud with three slots, and hosts with room besides."""
    hosts = [
        {
            'name': name,
            'inventories': {'VCPU': 8},
            'usages': {'VCPU': 1},
            'children': [
                {
                    'name': f'blazar_{name}',
                    'inventories': {SLOTS: slots},
                    'usages': {SLOTS: slots if name == 'h1' else used},
                    'traits': ['CUSTOM_RESERVATION'],
                }
            ],
        }
        for name, slots in (('h1', 2), ('h2', 1))
    ]
    specs = {f'resources:{SLOTS}': '1', 'trait:CUSTOM_RESERVATION': 'required'}
    return {
        'providers': [*hosts, {'name': 'h3', 'inventories': {'VCPU': 8}}],
        'flavors': [
            {
                'name': f'reservation:{RESERVATION}',
                'id': RESERVATION,
                'extra_specs': specs,
                'vcpus': 1,
            },
            {'name': 'f', 'vcpus': 1},
        ],
    }


def test_a_full_reservation_gets_more_slots_and_nobody_is_to_leave(
    run, write_cloud
):
    """Only servers of the reservation use its slots, and all are used."""
    path = write_cloud(yaml.dump(reserved(used=1)))
    asked = '--flavor', f'reservation:{RESERVATION}'
    result = run('explain', '--snapshot', str(path), *asked)
    assert result.out.startswith('0 of 3 hosts may be used.')
    assert 'server migrate' not in result.out
    assert (
        f'isolate-aggregates reservation set --amount 4 {RESERVATION}'
        in result.out
    )
    free = write_cloud(yaml.dump(reserved(used=0)))
    result = run('explain', '--snapshot', str(free), *asked)
    assert result.out.startswith('1 of 3 hosts may be used.')


@cases(
    ('more', 'servers', 'is_said'),
    {
        'no other host has room': ([], None, False),
        'one has, and the servers are not known': (['h2'], None, True),
        'the servers may use it': (['h2'], ['f'], True),
        'they may not': (['h2'], ['key'], False),
    },
)
def test_servers_are_to_leave_a_full_host_only_if_they_can(
    run, write_cloud, more, servers, is_said
):
    free = [{'name': name, 'inventories': {'VCPU': 4}} for name in more]
    full = {
        'name': 'h1',
        'inventories': {'VCPU': 4},
        'usages': {'VCPU': 4},
        'traits': ['CUSTOM_KEY'],
    }
    required = {'trait:CUSTOM_KEY': 'required'}
    cloud = {
        'providers': [full, *free],
        'flavors': [
            {'name': 'f', 'vcpus': 4},
            {'name': 'key', 'vcpus': 4, 'extra_specs': required},
        ],
    }
    if servers is not None:
        cloud['servers'] = [
            {
                'id': f'vm{n}',
                'host': 'h1',
                'flavor': name,
                'project': 'p',
                'name': 'vm',
                'status': 'ACTIVE',
            }
            for n, name in enumerate(servers)
        ]
    path = write_cloud(yaml.dump(cloud))
    result = run('explain', '--snapshot', str(path), '--flavor', 'key')
    assert result.out.startswith('0 of ')
    assert ('server migrate' in result.out) == is_said
    assert ('server shelve' in result.out) == (not is_said)
    assert 'h1 is full' in result.out
