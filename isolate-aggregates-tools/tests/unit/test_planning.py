# SPDX-License-Identifier: Apache-2.0
"""What changes a live cloud is planned on a cloud file, and makes nothing."""

import json
import pathlib

from cases import cases
import pytest

EXAMPLE = pathlib.Path(__file__).parents[3] / 'examples/windows-licensing.yaml'
KEY = ('--trait', 'CUSTOM_LICENSED_WINDOWS')


@cases(
    ('arguments', 'changes'),
    {
        'lock': (
            ('lock', 'create', 'win-hosts', '--trait', 'CUSTOM_NEW'),
            [
                'create trait CUSTOM_NEW',
                'create trait CUSTOM_ISOLATE_SYNC_CUSTOM_NEW',
                'tag aggregate win-hosts trait:CUSTOM_NEW=required',
                'add trait CUSTOM_NEW to host win-1',
                'add trait CUSTOM_NEW to host win-2',
            ],
        ),
        'unlock': (
            ('lock', 'delete', 'win-hosts'),
            ['untag aggregate win-hosts trait:CUSTOM_LICENSED_WINDOWS'],
        ),
        'grant': (
            ('key', 'add', '--flavor', 'm1.small', *KEY),
            ['set trait:CUSTOM_LICENSED_WINDOWS=required on flavor m1.small'],
        ),
        'revoke': (
            ('key', 'remove', '--flavor', 'win.small', *KEY),
            ['unset trait:CUSTOM_LICENSED_WINDOWS on flavor win.small'],
        ),
    },
)
def test_changes_are_planned_on_a_file(run, tmp_path, arguments, changes):
    path = tmp_path / 'cloud.yaml'
    path.write_bytes(EXAMPLE.read_bytes())
    result = run(*arguments, '--snapshot', str(path), '-f', 'json')
    assert (result.code, result.err) == (3, '')
    document = json.loads(result.out)
    assert [each['change'] for each in document['changes']] == changes
    assert {each['result'] for each in document['changes']} == {
        'would be done'
    }
    assert document['effect']
    assert path.read_bytes() == EXAMPLE.read_bytes()


@pytest.mark.parametrize(
    'option', [('--yes',), ('--domain', 'd')], ids=lambda option: option[0]
)
def test_what_needs_a_live_cloud_is_refused_for_a_file(run, option):
    result = run(
        'lock', 'delete', 'win-hosts', *option, '--snapshot', str(EXAMPLE)
    )
    assert (result.code, result.out) == (2, '')
    assert f'{option[0]} needs a live cloud' in result.err


def test_a_wrong_name_is_looked_up_in_the_file(run):
    result = run('lock', 'delete', 'win-host', '--snapshot', str(EXAMPLE))
    assert result.code == 1
    assert f"'win-host' in {EXAMPLE} (did you mean win-hosts?)" in result.err


def test_a_misspelled_trait_is_named_with_the_right_one(run):
    result = run(
        *('key', 'add', '--snapshot', str(EXAMPLE), '--flavor', 'm1.small'),
        *('--trait', 'CUSTOM_LICENSED_WINDOW'),
    )
    assert (result.code, result.err) == (
        1,
        'Placement knows no trait CUSTOM_LICENSED_WINDOW (did you mean '
        'CUSTOM_LICENSED_WINDOWS?); lock an aggregate with it first.\n',
    )
