# SPDX-License-Identifier: Apache-2.0
"""``openstack isolation ...`` over cloud files, run by the real client."""

import csv
from importlib import metadata
import io
import json
import pathlib
import re
import subprocess
import sys

from cases import cases
from openstackclient import shell
import pytest
from sentences import sentence
import yaml

from isolate_aggregates_reservations.commands import client as of_reservations
from isolate_aggregates_tools.cli import app, versions
from isolate_aggregates_tools.cli.osc import deferred, plugin
from isolate_aggregates_tools.commands import client as of_tools

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLE = ROOT / 'examples/windows-licensing.yaml'
ON_EXAMPLE = ('--snapshot', str(EXAMPLE))
CANDIDATES = ('candidate', 'list')
LINUX = ('--flavor', 'm1.small', '--image', 'debian-12')


def entry_points(group):
    """Return our entry points of a group, in the order of their names."""
    return {
        one.name: one.value
        for one in sorted(metadata.entry_points(group=group))
    }


COMMANDS = sorted(entry_points('isolate_aggregates.cli'))

# The commands of both programs.
NAMES = [name.replace('_', ' ') for name in COMMANDS if name != 'exporter']


def client():
    """Return the client with the options and the commands of all plugins."""
    started = shell.OpenStackShell()
    started.command_manager.add_command_group('openstack.isolation.v1')
    return started


# The commands


def test_each_command_is_offered_to_the_client_and_nothing_else():
    offered = entry_points('openstack.isolation.v1')
    assert [*offered] == [
        f'isolation_{name.replace(" ", "_")}' for name in NAMES
    ]
    assert offered['isolation_candidate_list'] == (
        f'{of_tools.__name__}:ListCandidate'
    )
    assert offered == {
        f'isolation_{found.entry_point}': f'{found.__module__}:{name}'
        for module in (of_reservations, of_tools)
        for name, found in vars(module).items()
        if isinstance(found, type)
    }


def test_each_entry_point_has_its_own_class():
    found = [
        one.load()
        for one in metadata.entry_points(group='openstack.isolation.v1')
    ]
    assert {type(one) for one in found} == {type}
    assert len({*found}) == len(found)


def test_the_client_takes_the_commands_from_the_group_of_the_plugin():
    extensions = entry_points('openstack.cli.extension')
    assert extensions['isolation'] == plugin.__name__
    api, version = plugin.API_NAME, plugin.DEFAULT_API_VERSION
    assert f'openstack.{api}.v{version}' == 'openstack.isolation.v1'


@pytest.mark.parametrize('name', NAMES)
def test_a_command_has_the_same_arguments_in_both_programs(
    without_configuration, name
):
    helps = []
    for program, words in (
        (app.IsolateAggregatesApp(), name.split()),
        (client(), ['isolation', *name.split()]),
    ):
        found = program.command_manager.find_command(words)
        command, full_name, rest = found
        assert (full_name, rest) == (' '.join(words), [])
        parser = command(program, None).get_parser('it')
        helps.append(parser.format_help())
    ours, theirs = helps
    # The client shows the package of each command.
    told = '\nThis command is provided by the isolate-aggregates plugin.\n'
    assert theirs == ours + told


@pytest.mark.parametrize('name', NAMES)
def test_no_option_of_a_command_conflicts_with_the_client(
    without_configuration, name
):
    started = client()
    words = ['isolation', *name.split()]
    command, _, _ = started.command_manager.find_command(words)
    parser = command(started, None).get_parser('it')
    for action in parser._actions:
        for option in action.option_strings:
            if option in ('-h', '--help'):
                continue
            # The client parses all arguments first and leaves the rest.
            _, rest = started.parser.parse_known_args([*words, option])
            assert rest == [*words, option]


@pytest.mark.parametrize(
    ('module', 'others'),
    [
        ('plugin', []),
        (
            'deferred',
            [
                'isolate_aggregates',
                'isolate_aggregates.lazy',
                'isolate_aggregates_tools.cli.command_help',
            ],
        ),
    ],
)
def test_the_plugin_imports_little_on_every_start(module, others):
    program = (
        'import sys, cliff.command; before = set(sys.modules); '
        f'from isolate_aggregates_tools.cli.osc import {module}; '
        'new = set(sys.modules) - before; '
        "print(*sorted(m for m in new if m.startswith('isolate_aggregates')))"
        "; print(*sorted({m.partition('.')[0] for m in new} - "
        'set(sys.stdlib_module_names) - '
        "{'isolate_aggregates', 'isolate_aggregates_tools'}))"
    )
    result = subprocess.run(
        [sys.executable, '-c', program],
        capture_output=True,
        text=True,
        check=True,
    )
    ours, foreign = result.stdout.splitlines()
    assert ours.split() == sorted(
        [
            'isolate_aggregates_tools',
            'isolate_aggregates_tools.cli',
            'isolate_aggregates_tools.cli.osc',
            f'isolate_aggregates_tools.cli.osc.{module}',
            *others,
        ]
    )
    assert foreign == ''


@cases(
    'arguments',
    {
        'another command': ['module', 'list', '-f', 'value'],
        'help, which names our commands': ['--help'],
    },
)
def test_starting_the_client_imports_none_of_our_commands(arguments):
    program = (
        'import atexit, sys; from openstackclient import shell; '
        "heavy = {'placement', 'novaclient', 'isolate_aggregates.conf', "
        "'isolate_aggregates_tools.cli.base'}; "
        "atexit.register(lambda: print('imported:', "
        '*sorted(heavy & set(sys.modules)))); '
        f'shell.main({arguments!r})'
    )
    result = subprocess.run(
        [sys.executable, '-c', program],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.splitlines()[-1] == 'imported:'


def test_the_help_of_the_client_has_each_command(openstack):
    result = openstack('--help')
    listed = re.findall('^  isolation (.*?)  ', result.out, re.MULTILINE)
    assert sorted(listed) == sorted(NAMES)


# Output


@pytest.mark.parametrize('form', ['table', 'json', 'yaml', 'csv', 'value'])
@cases(
    'command',
    {
        'candidates': ('candidate', 'list', *LINUX),
        'explain': ('explain', *LINUX),
        'filters': ('filter', 'list'),
        'locks': ('lock', 'list'),
        'matrix': ('matrix', 'list'),
    },
)
def test_lists_are_the_same_in_both_programs(openstack, run, command, form):
    arguments = (*command, *ON_EXAMPLE, '-f', form)
    result = openstack('isolation', *arguments)
    assert (result.code, result.err) == (0, '')
    assert result.out
    assert result == run(*arguments)


@pytest.mark.parametrize('form', ['table', 'json', 'yaml', 'shell', 'value'])
def test_show_is_the_same_in_both_programs(openstack, run, form):
    arguments = ('lock', 'show', 'win-hosts', *ON_EXAMPLE, '-f', form)
    result = openstack('isolation', *arguments)
    assert (result.code, result.err) == (0, '')
    assert 'win-hosts' in result.out
    assert result == run(*arguments)


def test_csv_has_a_column_for_each_free_resource(openstack):
    arguments = ('isolation', 'candidate', 'list', *ON_EXAMPLE, *LINUX)
    rows = csv.DictReader(io.StringIO(openstack(*arguments, '-f', 'csv').out))
    assert list(rows) == [
        {
            'Host': name,
            'Candidates': '1',
            'DISK_GB': '1000',
            'MEMORY_MB': memory,
            'VCPU': vcpus,
        }
        for name, memory, vcpus in (
            ('linux-1', '65536', '16'),
            ('linux-2', '65024', '64'),
        )
    ]


def test_text_output_is_the_same_in_both_programs(openstack, run):
    arguments = (*ON_EXAMPLE, *LINUX)
    result = openstack('isolation', 'candidate', 'list', '--query', *arguments)
    assert result.out.startswith('limit=1000&member_of=')
    assert result == run('candidate', 'list', '--query', *arguments)


# Configuration


def enabled(result):
    """Return the names of the filters that decide."""
    assert (result.code, result.err) == (0, '')
    rows = json.loads(result.out)
    return {
        row['name']
        for row in rows
        if row['enabled'] and 'outside Nova' not in row['note']
    }


ASK_FILTERS = ('isolation', 'filter', 'list', '-f', 'json')


def only(name):
    """Return a configuration in which only one filter is enabled."""
    return f'[isolate_aggregates]\nrequest_filters = {name}\n'


def test_configuration_files_are_named_by_options(openstack, tmp_path):
    (tmp_path / 'one.conf').write_text(only('isolate_tenants'))
    (tmp_path / 'two.conf').write_text(only('blazar_reservation'))
    directory = tmp_path / 'more'
    directory.mkdir()
    (directory / 'x.conf').write_text(only('isolate_tenants'))
    option = '--os-isolation-config-file'
    one = (option, str(tmp_path / 'one.conf'))
    two = (option, str(tmp_path / 'two.conf'))
    more = ('--os-isolation-config-dir', str(directory))
    assert enabled(openstack(*one, *ASK_FILTERS)) == {'isolate_tenants'}
    assert enabled(openstack(*one, *two, *ASK_FILTERS)) == {
        'blazar_reservation'
    }
    assert enabled(openstack(*more, *ASK_FILTERS)) == {'isolate_tenants'}


def test_the_usual_configuration_file_is_found(
    openstack, tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, 'argv', ['/usr/bin/openstack'])
    directory = tmp_path / '.isolate-aggregates'
    directory.mkdir()
    path = directory / 'isolate-aggregates.conf'
    path.write_text(only('isolate_tenants'))
    # The file of another program is not read.
    (directory / 'openstack.conf').write_text(only('blazar_reservation'))
    assert enabled(openstack(*ASK_FILTERS)) == {'isolate_tenants'}


def test_clouds_yaml_can_name_configuration_files(
    openstack, tmp_path, monkeypatch
):
    (tmp_path / 'one.conf').write_text(only('isolate_tenants'))
    (tmp_path / 'two.conf').write_text(only('blazar_reservation'))
    clouds = {
        'one': {'isolation_config_file': str(tmp_path / 'one.conf')},
        'two': {'isolation_config_file': [str(tmp_path / 'two.conf')]},
    }
    path = tmp_path / 'clouds.yaml'
    path.write_text(yaml.safe_dump({'clouds': clouds}))
    monkeypatch.setenv('OS_CLIENT_CONFIG_FILE', str(path))
    one = openstack('--os-cloud', 'one', *ASK_FILTERS)
    assert enabled(one) == {'isolate_tenants'}
    two = openstack('--os-cloud', 'two', *ASK_FILTERS)
    assert enabled(two) == {'blazar_reservation'}
    option = ('--os-isolation-config-file', str(tmp_path / 'two.conf'))
    one = openstack('--os-cloud', 'one', *option, *ASK_FILTERS)
    assert enabled(one) == {'blazar_reservation'}


# Help and completion


def test_the_help_of_the_group_names_its_commands(openstack):
    result = openstack('isolation', '--help')
    assert result.code == 0
    assert result.out.splitlines() == [
        'Command "isolation" matches:',
        *sorted(f'  isolation {name}' for name in NAMES),
    ]


def test_a_service_is_no_name_that_the_client_suggests():
    assert [*deferred.names(['exporter', 'lock_list']).values()] == [
        'isolation lock list'
    ]


def test_the_client_refuses_distributions_of_different_releases(
    openstack, monkeypatch
):
    monkeypatch.setattr(versions, 'mismatch', lambda: 'They do not fit.')
    result = openstack('isolation', 'filter', 'list')
    assert (result.code, result.out) == (1, '')
    assert result.err == 'They do not fit.\n'


def test_a_command_is_not_guessed(openstack):
    result = openstack('isolation', 'lock', 'cre')
    assert (result.code, result.out) == (2, '')
    assert result.err == (
        "openstack: there is no command 'isolation lock cre' (did you mean "
        'isolation lock create?). See openstack --help.\n'
    )


@cases(
    'words',
    {
        'help': ('help', 'isolation', 'candidate', 'list'),
        '--help': ('isolation', 'candidate', 'list', '--help'),
    },
)
def test_the_help_of_a_command_needs_no_valid_configuration(openstack, words):
    nowhere = ('--os-isolation-config-file', 'nowhere.conf')
    result = openstack(*nowhere, *words)
    assert result.code == 0
    assert result.out.startswith('usage: openstack isolation candidate list ')
    assert 'Show the hosts that a server may use' in result.out


def completions(result):
    """Return the words that may come next, by the words before."""
    assert (result.code, result.err) == (0, '')
    matches = re.findall(r"^  cmds_?(\w*)='(.*)'$", result.out, re.MULTILINE)
    return {before: set(words.split()) for before, words in matches}


def test_both_programs_complete_each_command_and_its_options(openstack, run):
    theirs = completions(openstack('complete'))
    script = run('--config-file', 'nowhere.conf', 'complete', 'bash').out
    arrays = re.findall(
        r'^_shtab_(\w+)_option_strings=\((.*)\)$', script, re.M
    )
    ours = {name: {*words.split()} for name, words in arrays}
    assert theirs['isolation'] == {name.split()[0] for name in NAMES}
    for name in NAMES:
        words = name.replace(' ', '_')
        # The help does not show it.
        options = theirs[f'isolation_{words}'] - {'--variable'}
        assert ours[f'isolate_aggregates_{words}'] == options


COMPLETE = """
_get_comp_words_by_ref() {
    words=("${COMP_WORDS[@]}")
    cur="${words[COMP_CWORD]}"
}
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
function="$(complete -p "$1")"; function="${function#* -F }"
"${function%% *}" "$1" "${!#}"
echo "${COMPREPLY[@]}"
"""


@cases(
    ('words', 'proposed'),
    {
        'a word': (('key', ''), 'add remove'),
        'half a word': (('sn',), 'snapshot'),
        'half an option': (
            ('explain', '--proj'),
            '--project --project-domain',
        ),
    },
)
@pytest.mark.parametrize('program', ['isolate-aggregates', 'openstack'])
def test_bash_completion_proposes_the_next_words(
    openstack, run, tmp_path, program, words, proposed
):
    ours = program == 'isolate-aggregates'
    arguments = (
        run('complete', 'bash')
        if ours
        else openstack('complete', '--name', program)
    )
    path = tmp_path / 'completion'
    path.write_text(arguments.out)
    typed = (program, *(() if ours else ('isolation',)), *words)
    result = subprocess.run(
        ['bash', '-c', COMPLETE, 'bash', str(path), *typed],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (result.stdout, result.stderr) == (f'{proposed}\n', '')


@cases(
    ('words', 'proposed'),
    {
        'a file': (('lock', 'list', '--snapshot', 'cl'), 'cloud.yaml'),
        'of the program': (('--config-file', 'cl'), 'cloud.yaml'),
        'a directory': (('--config-dir', 'no'), 'nova.d'),
        'an argument': (('test', 'cl'), 'cloud.yaml'),
    },
)
def test_bash_completion_proposes_files(run, tmp_path, words, proposed):
    script = tmp_path / 'completion'
    script.write_text(run('complete', 'bash').out)
    (tmp_path / 'cloud.yaml').touch()
    (tmp_path / 'notes').touch()
    (tmp_path / 'nova.d').mkdir()
    result = subprocess.run(
        [
            *('bash', '-c', COMPLETE, 'bash', str(script)),
            *('isolate-aggregates', *words),
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert result.stdout.split() == [proposed]


@pytest.mark.parametrize('shell', ['fish', 'zsh'])
def test_other_shells_have_a_script_too(run, shell):
    result = run('complete', shell)
    assert result.code == 0
    assert 'reservation' in result.out
    assert 'try-project' in result.out


def test_completion_needs_no_extra():
    program = (
        'import sys; '
        "sys.modules['prometheus_client'] = sys.modules['placement'] = None; "
        'from openstackclient import shell; '
        "sys.exit(shell.main(['complete', '--shell', 'none']))"
    )
    result = subprocess.run(
        [sys.executable, '-c', program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0
    assert '  cmds_isolation=' in result.stdout


# Errors


@cases(
    ('arguments', 'said'),
    {
        'no such flavor': (
            ('candidate', 'list', '--query', *ON_EXAMPLE, '--flavor', 'huge'),
            f"There is no flavor with the name or id 'huge' in {EXAMPLE}.",
        ),
        'no such host': (
            (*CANDIDATES, *ON_EXAMPLE, *LINUX, '--host', 'nowhere'),
            'There is no compute host named nowhere.',
        ),
        'no such file': (
            (*CANDIDATES, '--snapshot', 'nowhere.yaml', *LINUX),
            'nowhere.yaml cannot be read: No such file or directory.',
        ),
    },
)
def test_errors_are_one_sentence(openstack, arguments, said):
    assert sentence(openstack('isolation', *arguments)) == said


@cases(
    ('text', 'said'),
    {
        'an invalid value': (
            '[scheduler]\nmax_placement_results = 0\n',
            'Configuration option [scheduler] max_placement_results cannot '
            'be used: Should be greater than or equal to 1.',
        ),
        'no configuration file': (
            'nonsense\n',
            "The configuration {path} cannot be read: line 1: No ':' or '=' "
            'found in assignment.',
        ),
    },
)
def test_an_invalid_configuration_is_reported(openstack, tmp_path, text, said):
    path = tmp_path / 'bad.conf'
    path.write_text(text)
    option = ('--os-isolation-config-file', str(path))
    result = openstack(
        *option,
        'isolation',
        'candidate',
        'list',
        '--query',
        *ON_EXAMPLE,
        *LINUX,
    )
    assert sentence(result) == said.format(path=path)


def test_a_failed_audit_does_not_exit_with_the_status_for_findings(openstack):
    option = ('--os-isolation-config-file', 'nowhere.conf')
    result = openstack(*option, 'isolation', 'audit', *ON_EXAMPLE)
    assert result.code == 1
    assert 'nowhere.conf cannot be read' in result.err
    result = openstack('--os-cloud', 'nowhere', 'isolation', 'audit')
    assert result.code == 1
    assert 'nowhere' in result.err


def test_a_traceback_is_shown_only_on_request(openstack):
    arguments = (
        'isolation',
        'candidate',
        'list',
        '--query',
        *ON_EXAMPLE,
        '--flavor',
        'huge',
    )
    assert 'Traceback' not in openstack(*arguments).err
    assert 'Traceback' in openstack('--debug', *arguments).err


def test_invalid_arguments_exit_with_2_and_one_sentence(openstack):
    result = openstack(
        'isolation', 'candidate', 'list', '--query', '--flavr', 'm1.small'
    )
    assert (result.code, result.err) == (
        2,
        'openstack isolation candidate list: there is no option --flavr (did '
        'you mean --flavor?). See openstack isolation candidate list '
        '--help.\n',
    )


def test_without_credentials_the_client_names_what_is_missing(openstack):
    result = openstack('isolation', 'candidate', 'list', '--query', *LINUX)
    assert (result.code, result.out) == (1, '')
    assert result.err == (
        'Missing value auth-url required for auth plugin password\n'
    )


# Repairs


def test_the_commands_of_repairs_are_those_of_the_client(openstack, run):
    campus = str(ROOT / 'examples/campus.yaml')
    arguments = ('audit', '--snapshot', campus, '-f', 'json')
    ours = run(*arguments).out
    theirs = ours
    for command in ('sync', 'lock create AGGREGATE', 'provider unset'):
        assert f'isolate-aggregates {command}' in ours
        theirs = theirs.replace(
            f'isolate-aggregates {command}', f'openstack isolation {command}'
        )
    assert openstack('isolation', *arguments).out == theirs
