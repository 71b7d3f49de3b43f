# SPDX-License-Identifier: Apache-2.0
"""Commands that change a cloud ask before they do so."""

import argparse
import dataclasses
import io
import json
import re
import types

import agreement
from http_fakes import NOVA
from live_example import ISOLATE
import pytest

from isolate_aggregates_tools.cli import app, commands, consent

TRAIT = ('--trait', 'CUSTOM_LICENSED_WINDOWS')

answer = agreement.answer

# One host of win-hosts lacks the trait.
CHANGES = [
    (['lock', 'create', 'rack-1', *TRAIT],
     'tag aggregate rack-1 trait:CUSTOM_LICENSED_WINDOWS=required'),
    (['lock', 'delete', 'win-hosts'],
     'untag aggregate win-hosts trait:CUSTOM_LICENSED_WINDOWS'),
    (['key', 'add', '--flavor', 'm1.small', *TRAIT],
     'set trait:CUSTOM_LICENSED_WINDOWS=required on flavor m1.small'),
    (['sync'], 'linux-1: add trait CUSTOM_LICENSED_WINDOWS'),
    (['audit', '--fix'],
     'isolate-aggregates sync: aggregate win-hosts: requires trait '
     'CUSTOM_LICENSED_WINDOWS, which is missing in Placement on linux-1'),
]  # fmt: skip


@pytest.fixture(params=CHANGES, ids=lambda one: one[0][0])
def change(request, run, config, http, live, in_environment):
    """Run a command; return it, its preview and its output."""
    path = config(ISOLATE)
    [aggregate] = [a for a in live.nova.aggregates if a.name == 'win-hosts']
    live.nova.aggregates[:] = [
        dataclasses.replace(
            a, hosts=a.hosts | {'linux-1'} if a is aggregate else a.hosts
        )
        for a in live.nova.aggregates
    ]
    http.post(re.compile(f'{NOVA}/(os-aggregates|flavors)/'), json={
        'aggregate': {}, 'extra_specs': {},
    })  # fmt: skip
    arguments, told = request.param

    def run_it(*options):
        http.reset_mock()
        result = run('--config-file', path, *arguments, *options)
        written = [
            asked.url
            for asked in http.request_history
            if asked.method != 'GET' and 'auth/tokens' not in asked.url
        ]
        return result, written

    return run_it, told


def test_a_change_is_made_after_confirmation(change, answer):
    run_it, told = change
    answer('n\n')
    result, written = run_it()
    assert result.code == (4 if 'isolate-aggregates' in told else 3)
    assert written == []
    # The audit adds whom a repair lets in.
    assert f'  {told}\n' in re.sub(r' \(opens [^)]*\)', '', result.err)
    # The audit has more output than the declined changes.
    assert bool(result.out) is ('isolate-aggregates' in told)
    answer('y\n')
    result, written = run_it()
    assert 'Nothing was changed' not in result.err
    assert written


def test_a_repair_shows_all_that_it_changes(
    run, config, live, in_environment, answer
):
    """The first rollup has no finding."""
    [locked] = [a for a in live.nova.aggregates if a.name == 'win-hosts']
    live.nova.aggregates[:] = [
        dataclasses.replace(locked, hosts=locked.hosts | {'linux-1'}),
        # A lock on one aggregate has no rollup.
        *(
            dataclasses.replace(a, metadata=locked.metadata)
            for a in live.nova.aggregates
            if a is not locked
        ),
    ]
    fix = ('--config-file', config(ISOLATE), 'audit', '--fix')
    changes = [
        f'  linux-1: {change}\n'
        for change in (
            'add aggregate win-hosts',
            'add rollup trait:CUSTOM_LICENSED_WINDOWS',
            'add trait CUSTOM_LICENSED_WINDOWS',
        )
    ]
    answer('n\n')
    asked = run(*fix)
    output = run(*fix, '--dry-run')
    for change in changes:
        assert change in asked.err
        assert change not in asked.out
        assert change in output.out
    assert 'Changes that sync would make:' not in run(*fix[:-1]).out


def test_a_plan_that_grew_is_confirmed_again(
    run, config, http, live, in_environment, answer
):
    path = config(ISOLATE)
    http.post(re.compile(f'{NOVA}/os-aggregates/'), json={'aggregate': {}})
    shown = 'tag aggregate rack-1 trait:CUSTOM_LICENSED_WINDOWS=required'
    more = 'add trait CUSTOM_LICENSED_WINDOWS to host linux-1'

    def join():
        live.nova.aggregates[:] = [
            dataclasses.replace(a, hosts=a.hosts | {'linux-1'})
            if a.name == 'rack-1'
            else a
            for a in joined
        ]

    joined = [
        dataclasses.replace(a, hosts=a.hosts - {'linux-1'})
        for a in live.nova.aggregates
    ]
    live.nova.aggregates[:] = joined
    answer('y\nn\n', join)
    result = run('--config-file', path, 'lock', 'create', 'rack-1', *TRAIT)
    first, again = result.err.split('The cloud has changed meanwhile.')
    assert shown in first
    assert more not in first
    assert shown in again
    assert more in again
    assert again.endswith('Nothing was changed.\n')
    assert result.code == 3
    assert not [one for one in http.request_history if one.method == 'POST'
                and 'os-aggregates' in one.url]  # fmt: skip


@pytest.mark.parametrize('options', [[], ['--dry-run']])
def test_a_change_is_not_made_without_consent(change, options):
    run_it, told = change
    result, written = run_it(*options, '-f', 'json')
    assert result.code == (4 if 'isolate-aggregates' in told else 3)
    assert written == []
    assert json.loads(result.out)
    assert ('no terminal' in result.err) is (not options)


@pytest.mark.parametrize('command', ['sync', 'reservation create'])
def test_dry_run_and_yes_exclude_each_other(run, command):
    result = run(*command.split(), '--dry-run', '--yes')
    assert result.code == 2
    assert '--yes cannot be used with --dry-run' in result.err


def test_a_long_list_is_shortened_in_the_prompt():
    class Command(consent.Confirming):
        app = types.SimpleNamespace(
            stdin=agreement.Terminal('y\n'), stderr=agreement.Terminal()
        )

    args = argparse.Namespace(yes=False, dry_run=False)
    many = [f'change {number}' for number in range(30)]
    assert Command().agrees(args, many, lambda: many)
    message = Command.app.stderr.getvalue()
    assert '  change 19\n  and 10 more, which --dry-run shows\n' in message


@pytest.mark.parametrize(
    ('stdin', 'stderr'),
    [
        (agreement.Terminal('y\n'), io.StringIO()),
        (io.StringIO('y\n'), agreement.Terminal()),
        (None, agreement.Terminal()),
    ],
)
def test_without_a_terminal_no_prompt_is_shown(stdin, stderr):
    class Command(consent.Confirming):
        app = types.SimpleNamespace(stdin=stdin, stderr=stderr)

    args = argparse.Namespace(yes=False, dry_run=False)
    assert not Command().agrees(args, ['change'], list)
    assert 'there is no terminal to ask for confirmation' in stderr.getvalue()


def test_tests_know_each_command_that_prompts():
    manager = commands.CommandManager(app.COMMANDS)
    asking = {
        name
        for name, entry_point in manager.commands.items()
        if issubclass(entry_point.load(), consent.Confirming)
    }
    # These change nothing by default.
    asking -= {'sync', 'audit'}
    assert asking == {
        name
        for name in manager.commands
        if agreement.agreed(name.split())[-1:] == ('--yes',)
    }
