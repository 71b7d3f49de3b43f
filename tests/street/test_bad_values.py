# SPDX-License-Identifier: Apache-2.0
"""Every value of every option of every command is checked.

The tests read the options from the parsers: a new one is tested too, or fails
here until its kind of value is known.
"""

from importlib import metadata

from cases import cases
import pytest

from isolate_aggregates_tools import files
from isolate_aggregates_tools.cli import app, usage

COMMANDS = {
    e.name.replace('_', ' '): e
    for e in metadata.entry_points(group=app.COMMANDS)
}
CLOUD = """\
version: 1
aggregates:
- name: win-hosts
  hosts: [win-1]
  metadata: {trait:CUSTOM_WIN: required}
flavors:
- {name: m1.small, vcpus: 1, ram: 512, disk: 1}
providers:
- name: win-1
  aggregates: [win-hosts]
  traits: [CUSTOM_WIN]
  inventories: {VCPU: 8, MEMORY_MB: 4096, DISK_GB: 100}
servers: []
settings:
  scheduler: {enable_isolated_aggregate_filtering: true}
"""

# Valid arguments of the commands that need some.
VALID = {
    'candidate list': '--flavor m1.small',
    'capacity list': '--flavor m1.small',
    'check': '--flavor m1.small --host win-1',
    'decision list': 'nova-scheduler.log',
    'effect show': '--sync',
    'explain': '--flavor m1.small',
    'exporter': '--output metrics.prom',
    'key add': '--flavor m1.small --trait CUSTOM_WIN',
    'key remove': '--flavor m1.small --trait CUSTOM_WIN',
    'ledger': '--since 2026-10-01 --lock CUSTOM_WIN',
    'lock create': 'win-hosts --trait CUSTOM_WIN',
    'lock delete': 'win-hosts',
    'lock show': 'win-hosts',
    'provider set': 'win-1 --trait CUSTOM_WIN',
    'provider unset': 'win-1 --trait CUSTOM_WIN',
    'rehearse': '-- true',
    'relocation create': '--out-of-place',
    'reservation create': '--project p --vcpus 1 --ram 1',
    'reservation end': 'r',
    'reservation host set': 'win-1 --enable',
    'reservation set': 'r --amount 1',
    'reservation show': 'r',
    'snapshot save': '--output cloud.yaml',
    'test': 'expected.yaml',
}

# What an option needs beside it.
WITH = {
    ('explain', '--scheduler-log'): '--request req-1',
    ('relocation create', '--number'): '--room-for m1.small',
    ('relocation create', '--image'): '--room-for m1.small',
    ('relocation create', '--together'): '--rolling',
    ('test', '--output'): '--init',
}

# Options that take the place of an argument of VALID.
INSTEAD = {
    ('check', '--server'): '--flavor',
    ('effect show', '--to'): '--sync',
    ('explain', '--scheduler-log'): '--flavor',
    ('explain', '--server'): '--flavor',
    ('key add', '--domain'): '--flavor',
    ('key add', '--image'): '--flavor',
    ('key remove', '--domain'): '--flavor',
    ('key remove', '--image'): '--flavor',
    ('provider set', '--aggregate'): '--trait',
    ('provider unset', '--aggregate'): '--trait',
    ('test', '--output'): 'expected.yaml',
}

# Names of objects, which only the cloud knows.
NAMES = {
    *('<aggregate>', '<domain>', '<flavor>', '<host>', '<image>', '<key>'),
    *(
        '<lock>',
        '<project>',
        '<provider>',
        '<reservation>',
        '<server>',
        '<trait>',
    ),
}
FILES = {'<file>', '<directory>'}

# What cannot be said of a cloud file, by the option and perhaps its command.
NOT_ON_FILES = {
    '--domain': 'needs a live cloud',
    '--ledger': 'needs a live cloud',
    '--project': 'a cloud file has no projects',
    '--project-domain': 'a cloud file has no projects',
    '--server': 'needs a live cloud',
    '--try-project': 'a cloud file has no projects',
    ('exporter', '--scheduler'): 'nova-scheduler may write it later',
    ('exporter', '--sync-textfile'): 'sync may write it later',
    ('key add', '--aggregate'): 'needs --domain',
    ('key remove', '--aggregate'): 'needs --domain',
    ('lock delete', '--trait'): 'may be gone already',
    ('reservation history list', '--reservation'): 'may be gone already',
    ('sync', '--output'): 'needs a live cloud',
}

# What can have any value, by its metavar or else the option.
ANY = {
    '<name>': 'a label, or looked up by "lock show"',
    '<text>': 'a label',
    '--request': 'an id that a log may have',
    '--prefix': 'of the variables of a shell',
    'cmd': 'the name of a command, which has a test of its own',
    'command': 'a command of another program',
}

# No time, number, setting, zone, trait, column, address or name.
BAD = 'no:such:value/of:this'


def actions(command):
    """Yield the options and arguments of a command that take a value."""
    program = app.IsolateAggregatesApp([])
    made = COMMANDS[command].load()(program, None)
    for action in made.get_parser(command)._actions:
        if action.nargs != 0 and action.help != '==SUPPRESS==':
            yield action


def option_of(action):
    """Return the longest name of an option; that of an argument."""
    return max(action.option_strings, key=len, default=action.dest)


def is_typed(action):
    """Return whether a value is checked when it is parsed."""
    return (
        action.type not in (None, usage.not_empty, files.named)
        or action.choices is not None
        or '<key>=<value>' in (action.metavar or '')
    )


def is_column(action):
    return action.metavar in ('COLUMN', 'SORT_COLUMN')


def is_refused(result, status):
    """Return whether a command ended with one sentence about the value."""
    # The log of the program has a handler for each run of this process.
    sentences = {*result.err.splitlines()}
    return (
        (result.code, result.out, len(sentences)) == (status, '', 1)
    ) and BAD in result.err


def words(command, action, *snapshot):
    """Return the arguments of a command with one bad value."""
    option = option_of(action)
    values = [BAD] * (action.nargs if isinstance(action.nargs, int) else 1)
    valid = VALID.get(command, '').split()
    end = valid.index('--') if '--' in valid else len(valid)
    beside, last = valid[:end], valid[end:]
    if not action.option_strings:
        # The arguments come first.
        return [*command.split(), *snapshot, *values, *beside[1:], *last]
    if replaced := INSTEAD.get((command, option)):
        at = beside.index(replaced)
        number = 2 if command not in ('effect show', 'test') else 1
        del beside[at : at + number]
    beside += WITH.get((command, option), '').split()
    # The last value of an option counts.
    given = option, *values
    return [*command.split(), *snapshot, *beside, *given, *last]


@cases('command', {name: name for name in sorted(COMMANDS)})
def test_a_value_that_cannot_be_one_has_status_2(run, command):
    """It is named before anything is read."""
    wrong = []
    for action in filter(is_typed, actions(command)):
        result = run(*words(command, action))
        if not is_refused(result, 2):
            wrong.append((option_of(action), result))
    assert wrong == []


@cases('command', {name: name for name in sorted(COMMANDS)})
def test_a_column_that_does_not_exist_has_status_2(run, tmp_path, command):
    """It is named before anything is written, or changed."""
    snapshot = snapshot_of(command, tmp_path)
    wrong = []
    for action in filter(is_column, actions(command)):
        result = run(*words(command, action, *snapshot))
        if not is_refused(result, 2):
            wrong.append((option_of(action), result))
    assert wrong == []


def snapshot_of(command, folder):
    """Return the option for a cloud file, if the command has it."""
    if '--snapshot' not in {*map(option_of, actions(command))}:
        return ()
    (folder / 'cloud.yaml').write_text(CLOUD)
    return '--snapshot', str(folder / 'cloud.yaml')


@cases('command', {name: name for name in sorted(COMMANDS)})
def test_what_does_not_exist_has_status_1(run, tmp_path, monkeypatch, command):
    """Neither an object nor a file."""
    monkeypatch.chdir(tmp_path)
    snapshot = snapshot_of(command, tmp_path)
    if not snapshot:
        pytest.skip('needs a live cloud')
    if command == 'test':
        run('test', '--init', '--output', 'expected.yaml', *snapshot)
    wrong = []
    for action in actions(command):
        option = option_of(action)
        if (
            not {*metavars(action)} & {*NAMES, *FILES}
            or is_typed(action)
            or {option, (command, option)} & NOT_ON_FILES.keys()
        ):
            continue
        given = () if option == '--snapshot' else snapshot
        result = run(*words(command, action, *given))
        if not is_refused(result, 1):
            wrong.append((option, result))
    assert wrong == []


@cases('command', {name: name for name in sorted(COMMANDS)})
def test_every_value_is_of_a_known_kind(command):
    unknown = [
        option_of(action)
        for action in actions(command)
        if not is_typed(action)
        and not is_column(action)
        and not {*metavars(action)} <= {*NAMES, *FILES, *ANY}
        and option_of(action) not in ANY
    ]
    assert unknown == []


def metavars(action):
    metavar = action.metavar
    return metavar if isinstance(metavar, tuple) else (metavar,)
