# SPDX-License-Identifier: Apache-2.0
"""``capacity list`` and ``effect show --to`` on cloud files."""

import csv
import io
import json
import pathlib

import pytest

WINDOWS = 'examples/windows-licensing.yaml'
CAMPUS = 'examples/campus.yaml'


COMPARE = ('effect', 'show', '--snapshot')


def test_capacity_counts_in_total_and_by_host(run):
    arguments = [
        'capacity',
        'list',
        '--snapshot',
        WINDOWS,
        '--flavor',
        'm1.large',
    ]
    result = run(*arguments, '--image', 'debian-12', '-f', 'json')
    document = json.loads(result.out)
    assert document['total'] == 11
    assert {h['name']: h['servers'] for h in document['hosts']} == {
        'linux-1': 4,
        'linux-2': 7,
    }


def test_capacity_of_a_refused_request_says_why(run):
    arguments = ['--snapshot', 'examples/reservations.yaml']
    result = run('capacity', 'list', *arguments, '--flavor', 'ended.small')
    assert result.code == 4
    assert result.err.startswith('Request refused: ')


def test_no_server_fits_if_placement_rejects_the_query(run, tmp_path):
    cloud = tmp_path / 'cloud.yaml'
    cloud.write_text(
        'version: 1\n'
        'providers: [{name: cn1, inventories: {VCPU: 8}}]\n'
        'flavors:\n'
        '- {name: f, vcpus: 1, extra_specs: {trait:CUSTOM_NEW: forbidden}}\n',
        encoding='utf-8',
    )
    arguments = ['capacity', 'list', '--snapshot', str(cloud), '--flavor', 'f']
    result = run(*arguments)
    assert (result.code, result.err) == (4, '')
    assert result.out.strip().splitlines() == [
        'No more servers of this flavor fit. Use explain to see why.',
        '',
        'Placement would reject the request as invalid (400): there is no '
        'trait CUSTOM_NEW.',
        'Nova finds no host for a server whose query is rejected.',
    ]
    cloud.write_text(
        f'traits: [CUSTOM_NEW]\n{cloud.read_text()}', encoding='utf-8'
    )
    assert run(*arguments, '-f', 'value').out == 'cn1 8\n'


def test_diff_shows_what_changed(run, tmp_path):
    other = tmp_path / 'other.yaml'
    text = pathlib.Path(WINDOWS).read_text(encoding='utf-8')
    other.write_text(text.replace('vcpus: 4', 'vcpus: 5'), encoding='utf-8')
    result = run(*COMPARE, WINDOWS, '--to', str(other))
    assert '| flavor | m1.large | vcpus | 4      | 5     |' in result.out


@pytest.mark.parametrize(
    ('options', 'said'),
    [
        ((), 'The file describes the same cloud.\n'),
        (('-f', 'csv'), '"Kind","Name","What","Before","After"\n'),
    ],
)
def test_a_table_says_that_there_are_no_changes(run, options, said):
    result = run(*COMPARE, WINDOWS, '--to', WINDOWS, *options)
    assert (result.code, result.out) == (0, said)


def test_a_diff_has_the_effect_of_all_differences(run, tmp_path):
    other = tmp_path / 'other.yaml'
    text = pathlib.Path(WINDOWS).read_text(encoding='utf-8')
    other.write_text(text.replace('hosts: [win-1, win-2]', 'hosts: []'))
    result = run(*COMPARE, WINDOWS, '--to', str(other))
    assert '\nEffect: 3 flavors with more hosts' in result.out
    assert '  flavor m1.small: 2 hosts, room for 47 -> 4 hosts' in result.out
    document = json.loads(
        run(*COMPARE, WINDOWS, '--to', str(other), '-f', 'json').out
    )
    assert document['differences'][0]['name'] == 'win-hosts'
    assert _without_steps(document) == json.loads(
        run(
            *('effect', 'show', '--snapshot', WINDOWS, '-f', 'json'),
            *('--remove-host', 'win-hosts', 'win-1'),
            *('--remove-host', 'win-hosts', 'win-2'),
        ).out,
        object_hook=_without_steps,
    )


def _without_steps(document):
    for key in ('differences', 'steps', 'gaps', 'refused', 'unknown'):
        document.pop(key, None)
    return document


def test_a_diff_in_json_and_yaml_has_plain_values(run, tmp_path):
    other = tmp_path / 'other.yaml'
    text = pathlib.Path(CAMPUS).read_text(encoding='utf-8')
    text = text.replace('vcpus: 4, ram: 8192', 'vcpus: 5, ram: 8192')
    other.write_text(text.replace('    - reservation_prefix\n', ''), 'utf-8')
    arguments = (*COMPARE, CAMPUS, '--to', str(other))
    found = {
        (row['name'], row['what']): (row['before'], row['after'])
        for row in json.loads(run(*arguments, '-f', 'json').out)['differences']
    }
    assert found['m1.large', 'vcpus'] == (4, 5)
    names = ['isolate_aggregates', 'reservation_prefix', 'isolate_tenants']
    setting = found['settings', 'isolate_aggregates.request_filters']
    assert setting == (names, [names[0], names[2]])
    rows = csv.DictReader(io.StringIO(run(*arguments, '-f', 'csv').out))
    [cell] = [
        row['After']
        for row in rows
        if row['What'] == 'isolate_aggregates.request_filters'
    ]
    assert json.loads(cell) == setting[1]


def test_a_table_has_only_the_names_that_changed(run, tmp_path):
    other = tmp_path / 'other.yaml'
    text = pathlib.Path(CAMPUS).read_text(encoding='utf-8')
    other.write_text(
        text.replace('win-4', 'win-5').replace('[CUSTOM_GPU]', '[]'), 'utf-8'
    )
    result = run(*COMPARE, CAMPUS, '--to', str(other))
    rows = [
        [cell.strip() for cell in line.split('|')[1:-1]]
        for line in result.out.splitlines()
        if line.startswith('|')
    ]
    assert [
        'aggregate', 'windows', 'hosts', 'win-4 and 3 in both',
        'win-5 and 3 in both',
    ] in rows  # fmt: skip
    assert ['resource provider', 'gpu-1', 'traits', 'CUSTOM_GPU', ''] in rows


def test_a_diff_has_names_beside_the_uuids_of_aggregates(run):
    arguments = (*COMPARE, CAMPUS, '--to', 'examples/gpu-hosts.yaml')
    [(before, after)] = [
        (row['before'], row['after'])
        for row in json.loads(run(*arguments, '-f', 'json').out)['differences']
        if (row['name'], row['what']) == ('gpu-2', 'aggregates')
    ]
    assert {one['name'] for one in before} == {'gpus', 'rack-b'}
    assert after == [
        {
            'name': 'isolated-gpus',
            'uuid': '96765bfa-dbc6-5a10-9723-c15514dce8a4',
        }
    ]


@pytest.mark.parametrize('places', [(0, 1), (1, 0)])
def test_diff_of_a_missing_file_is_an_error(run, places):
    files = [WINDOWS, 'nonexistent.yaml']
    before, after = (files[n] for n in places)
    result = run(*COMPARE, before, '--to', after)
    assert result.code == 1
    assert result.err == (
        'nonexistent.yaml cannot be read: No such file or directory.\n'
    )


@pytest.mark.parametrize('how', ['table', 'json'])
def test_what_two_files_do_not_tell_is_not_known(run, tmp_path, how):
    """A zone of hosts may have changed, and no file has their servers."""
    paths = [tmp_path / 'before.yaml', tmp_path / 'after.yaml']
    for path, zone in zip(paths, ('a', 'b'), strict=True):
        cloud = {
            'version': 1,
            'aggregates': [
                {'name': 'one', 'availability_zone': zone, 'hosts': ['h1']}
            ],
            'providers': [{'name': 'h1', 'inventories': {'VCPU': 8}}],
        }
        path.write_text(json.dumps(cloud))
    before, after = map(str, paths)
    result = run(*COMPARE, before, '--to', after, '-f', how)
    told = 'whether there are servers on the hosts of aggregate one'
    if how == 'json':
        [unknown] = json.loads(result.out)['unknown']
        assert unknown.startswith(told)
    else:
        assert f'Not known: {told}' in result.out
