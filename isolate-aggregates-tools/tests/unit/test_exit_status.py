# SPDX-License-Identifier: Apache-2.0
"""Each exit status has one meaning in all commands of both programs."""

from importlib import metadata
import json
import pathlib

from cases import cases
import pytest
import yaml

EXAMPLE = pathlib.Path(__file__).parents[3] / 'examples/reservations.yaml'

# What a refused request is asked with.
ASKING = (
    'explain --flavor',
    'candidate list --flavor',
    'capacity list --flavor',
    'candidate list --query --flavor',
    'relocation create --room-for',
)

# The flavors that are refused, by who refuses them.
REFUSED = {
    'a filter': {'reservation:0badcafe': 'true'},
    'nova-api': {'hw:cpu_policy': 'rigid'},
}

REJECTED = {'Placement': {'trait:CUSTOM_odd': 'required'}}

# The other required arguments of commands that read a cloud file.
ON_FILES = {
    'audit': '',
    'candidate list': '--flavor m1',
    'capacity list': '--flavor m1',
    'check': '--flavor m1 --host host1',
    'effect show': '--sync',
    'explain': '--flavor m1',
    'exporter': '--output metrics.prom',
    'filter list': '',
    'lock list': '',
    'matrix list': '',
    'rehearse': '-- true',
    'relocation create': '--out-of-place',
    'report save': '',
    'lock show': 'host1',
    'survival list': '',
    'sync': '',
}

OURS = sorted(
    each.name.replace('_', ' ')
    for each in metadata.entry_points(group='isolate_aggregates.cli')
)


@pytest.fixture
def refusing(tmp_path):
    """Return a cloud file with a flavor for each kind of refusal."""
    cloud = yaml.safe_load(EXAMPLE.read_text())
    cloud['flavors'] += [
        {
            'name': name,
            **{'vcpus': 1, 'ram': 64, 'disk': 1, 'extra_specs': specs},
        }
        for name, specs in {**REFUSED, **REJECTED}.items()
    ]
    cloud['servers'] = []
    path = tmp_path / 'cloud.yaml'
    path.write_text(yaml.safe_dump(cloud))
    return str(path)


@pytest.mark.parametrize('by', REFUSED)
@pytest.mark.parametrize('words', ASKING)
def test_a_refused_request_has_one_status(run, refusing, words, by):
    result = run(*words.split(), by, '--snapshot', refusing)
    assert (result.code, result.err.count('\n')) in ((4, 1), (4, 0))


@pytest.mark.parametrize('command', ['explain', 'capacity list'])
def test_a_query_that_placement_rejects_is_refused_too(run, refusing, command):
    result = run(
        *command.split(), '--flavor', 'Placement', '--snapshot', refusing
    )
    assert result.code == 4
    assert 'would reject the request' in result.out


def test_a_refused_request_has_the_same_status_in_the_client(
    openstack, refusing
):
    result = openstack(
        *('isolation', 'candidate', 'list', '--flavor', 'a filter'),
        *('--snapshot', refusing),
    )
    assert (result.code, result.err.count('\n')) == (4, 1)


@pytest.mark.parametrize('command', OURS)
def test_an_invalid_option_has_one_status(run, command):
    assert run(*command.split(), '--no-such-option').code == 2


def test_an_invalid_option_has_the_same_status_in_the_client(openstack):
    assert openstack('isolation', 'audit', '--no-such-option').code == 2


@pytest.mark.parametrize('command', ON_FILES)
def test_a_file_that_cannot_be_read_has_one_status(
    run, command, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    result = run(
        *(*command.split(), '--snapshot', 'none.yaml'),
        *ON_FILES[command].split(),
    )
    assert (result.code, result.out) == (1, '')
    assert result.err == (
        'none.yaml cannot be read: No such file or directory.\n'
    )


@pytest.mark.parametrize('how', ['table', 'json'])
@pytest.mark.parametrize('detailed', [(), ('--detailed-exitcode',)])
def test_a_change_that_was_not_read_has_a_status_of_its_own(
    run, tmp_path, detailed, how
):
    result = run(
        *('effect', 'show', '--snapshot', str(EXAMPLE), '-f', how, *detailed),
        *('--terraform-plan', str(unread(tmp_path))),
    )
    assert result.code == 8
    said(result.out, how)


@pytest.mark.parametrize('how', ['table', 'json'])
def test_a_test_of_a_change_that_was_not_read_is_not_passed(
    run, tmp_path, how
):
    expected = tmp_path / 'expected.yaml'
    snapshot = ('--snapshot', str(EXAMPLE))
    assert (
        run('test', '--init', '--output', str(expected), *snapshot).code == 0
    )
    result = run(
        *('test', str(expected), *snapshot, '-f', how),
        *('--terraform-plan', str(unread(tmp_path))),
    )
    assert result.code == 8
    said(result.out, how)


RACK = EXAMPLE.with_name('licensed-rack.yaml')
REFUSED_STEP = ('--set', 'rack-7', f'{"k" * 256}=v')


@pytest.mark.parametrize('how', ['table', 'json'])
@cases(
    ('refused', 'has_unread', 'status'),
    {
        'an expectation alone': ((), False, 4),
        'a step that Nova refuses, too': (REFUSED_STEP, False, 7),
        'a part that was not read, too': ((), True, 8),
        'all three': (REFUSED_STEP, True, 8),
    },
)
def test_a_test_ends_with_the_worst_of_its_statuses(
    run, tmp_path, refused, has_unread, status, how
):
    """None is met that says no server of the flavor uses any host."""
    expected = tmp_path / 'expected.yaml'
    unmet = {'name': 'all', 'flavor': 'app', 'never': {'host': '*'}}
    expected.write_text(json.dumps({'version': 1, 'expectations': [unmet]}))
    plan = ('--terraform-plan', str(unread(tmp_path))) if has_unread else ()
    result = run(
        *('test', str(expected), '--snapshot', str(RACK), '-f', how),
        *(*refused, *plan),
    )
    assert result.code == status
    assert ('"failed": 1' if how == 'json' else 'all') in result.out


UNREAD = 'openstack_compute_flavor_access_v2'


def unread(folder):
    """Return a file with a part that is read, and one that is not."""
    path = folder / 'plan.json'
    changes = [
        {
            'address': f'{kind}.x',
            'mode': 'managed',
            'type': kind,
            'change': {'actions': [action], 'before': {}, 'after': {}},
        }
        for kind, action in (
            ('openstack_compute_aggregate_v2', 'no-op'),
            (UNREAD, 'create'),
        )
    ]
    document = {'format_version': '1.2', 'resource_changes': changes}
    path.write_text(json.dumps(document))
    return path


def said(output, how):
    sentence = f'{UNREAD}.x is of a type that is not read.'
    if how == 'json':
        assert yaml.safe_load(output)['unread'] == [sentence]
    else:
        assert f'Not read: {sentence}\n' in output
