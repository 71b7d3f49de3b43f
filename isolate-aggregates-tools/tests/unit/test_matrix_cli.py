# SPDX-License-Identifier: Apache-2.0
"""The command ``matrix list`` on cloud files, in every format."""

import csv
import io
import json

from cases import cases
import pytest
import yaml

WINDOWS = ['matrix', 'list', '--snapshot', 'examples/windows-licensing.yaml']


def test_similar_hosts_share_a_column_of_a_table(run):
    result = run(*WINDOWS, '--flavor', 'm1.small', '--flavor', 'win.small')
    assert result.code == 0, result.err
    assert result.out.splitlines()[1:5] == [
        '| Flavor    | linux-1, linux-2 | linux-3 | win-1, win-2 |',
        '+-----------+------------------+---------+--------------+',
        '| m1.small  | yes              | no      | no           |',
        '| win.small | no               | no      | yes          |',
    ]


@cases(
    ('options', 'output'),
    {
        'not': ((), ['--long names the hosts of each column.']),
        'with --long': (
            ('--long',),
            [
                'gpu-1 and 2 more: gpu-1, gpu-2, gpu-3',
                'rack-a-1 and 5 more: rack-a-1, rack-a-2, rack-a-3, rack-b-1, '
                'rack-b-2, rack-b-3',
            ],
        ),
    },
)
def test_hosts_that_share_a_column_are_named_on_request(run, options, output):
    result = run(
        'matrix', 'list', '--snapshot', 'examples/campus.yaml', *options,
        '--flavor', 'm1.small', '--flavor', 'gpu.large',
    )  # fmt: skip
    head = result.out.splitlines()[1]
    assert '| gpu-1 and 2 more | rack-a-1 and 5 more | rack-a-4 |' in head
    _, below = result.out.split('\n\n')
    assert set(output) <= set(below.splitlines())


def test_csv_has_a_column_for_each_host(run):
    result = run(*WINDOWS, '-f', 'csv')
    [first, *_] = csv.DictReader(io.StringIO(result.out))
    assert first == {
        'Flavor': 'm1.small',
        'linux-1': 'yes',
        'linux-2': 'yes',
        'linux-3': 'no',
        'win-1': 'no',
        'win-2': 'no',
    }


@pytest.mark.parametrize(
    ('form', 'load'), [('json', json.loads), ('yaml', yaml.safe_load)]
)
def test_json_and_yaml_have_the_reasons(run, form, load):
    result = run(*WINDOWS, '--by', 'lock', '--flavor', 'm1.small', '-f', form)
    document = load(result.out)
    assert document['by'] == 'lock'
    [row] = document['rows']
    assert (row['flavor'], row['image']) == ('m1.small', None)
    [lock, rest] = document['columns']
    assert row['verdicts'] == ['no', 'some']
    [place] = lock['groups']
    assert document['groups'][place] == {'hosts': ['win-1', 'win-2']}
    [reason] = [r for r in row['reasons'] if place in r['groups']]
    assert reason.pop('reason').startswith('aggregate win-hosts: ')
    assert reason == {
        'filter': 'isolate_aggregates',
        'kind': 'missing-traits',
        'groups': [place],
    }
    assert lock == {
        'name': 'trait:CUSTOM_LICENSED_WINDOWS',
        'hosts': ['win-1', 'win-2'],
        'groups': [place],
    }
    assert (rest['name'], rest['hosts']) == (
        '(no lock)',
        ['linux-1', 'linux-2', 'linux-3'],
    )


def test_each_flavor_is_shown_with_each_image(run):
    images = ['--image', 'windows-2022', '--image', 'debian-12']
    result = run(*WINDOWS, *images, '--by', 'aggregate', '-f', 'value')
    assert result.out.splitlines()[:2] == [
        'm1.small windows-2022 yes some',
        'm1.small debian-12 no some',
    ]


def test_the_project_is_taken_into_account(run):
    arguments = ['--snapshot', 'examples/reservations.yaml', '-f', 'json']
    image = ['--flavor', 'm1.small', '--image', 'reserved-debian-12']
    reached = {}
    for project in ('demo', 'other'):
        result = run(
            'matrix', 'list', *arguments, *image, '--project', project
        )
        document = json.loads(result.out)
        [row] = document['rows']
        reached[project] = [
            host
            for column, verdict in zip(
                document['columns'], row['verdicts'], strict=True
            )
            for host in column['hosts']
            if verdict == 'yes'
        ]
    assert reached == {'demo': ['reserved-1'], 'other': []}


@cases(
    ('arguments', 'kind'),
    {
        'flavor': (['--flavor', 'gone'], 'flavor'),
        'image': (['--image', 'gone'], 'image'),
    },
)
def test_an_unknown_name_is_an_error(run, arguments, kind):
    result = run(*WINDOWS, *arguments)
    assert result.code == 1
    assert result.err == (
        f"There is no {kind} with the name or id 'gone' in "
        'examples/windows-licensing.yaml.\n'
    )


def test_tags_without_effect_are_warned_about(run, tmp_path):
    path = tmp_path / 'cloud.yaml'
    path.write_text(
        'version: 1\n'
        'aggregates: [{name: a, metadata: {trait:CUSTOM_X: required}}]\n'
        'flavors: [{name: f}]\nproviders: [{name: h}]\n'
    )
    result = run('matrix', 'list', '--snapshot', str(path))
    assert 'no configuration was read' in result.err
    assert '| f ' in result.out


def test_who_may_use_a_private_flavor_is_named(run, tmp_path):
    path = tmp_path / 'cloud.yaml'
    flavors = [
        {'name': 'all'},
        {'name': 'some', 'is_public': False, 'projects': ['b', 'a']},
        {'name': 'none', 'is_public': False},
    ]
    path.write_text(
        yaml.safe_dump(
            {'version': 1, 'flavors': flavors, 'providers': [{'name': 'h1'}]}
        )
    )
    shown = run('matrix', 'list', '--snapshot', str(path)).out
    assert 'Flavor some is private, for a, b.' in shown
    assert 'Flavor none is private, for no project.' in shown
    rows = json.loads(
        run('matrix', 'list', '--snapshot', str(path), '-f', 'json').out
    )
    assert {row['flavor']: row['projects'] for row in rows['rows']} == {
        'all': None,
        'none': [],
        'some': ['a', 'b'],
    }
