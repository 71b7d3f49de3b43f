# SPDX-License-Identifier: Apache-2.0
"""Every command names what is misspelt in its configuration files."""

from importlib import metadata
import pathlib

from cases import cases
import pytest

from isolate_aggregates_tools.cli import app

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLE = str(ROOT / 'examples' / 'windows-licensing.yaml')
WHOLE = sorted((ROOT / 'tests/nova/whole_files').glob('*.conf'))
COMMANDS = sorted(
    e.name.replace('_', ' ') for e in metadata.entry_points(group=app.COMMANDS)
)
LIST = 'lock', 'list', '--snapshot', EXAMPLE


@pytest.fixture
def write(tmp_path):
    """Write a configuration file and return its path."""

    def write_file(*lines):
        path = tmp_path / 'own.conf'
        path.write_text('\n'.join(lines), 'utf-8')
        return str(path)

    return write_file


@cases('command', {name: name for name in COMMANDS})
def test_every_command_names_a_misspelt_option(run, write, command):
    path = write('[scheduler]', 'enable_isolated_aggregates_filtering = true')
    # Without its arguments: the file is read first.
    result = run('--config-file', path, *command.split(), '--no-such')
    assert (
        f'{path}: the option enable_isolated_aggregates_filtering in '
        '[scheduler] has no effect (did you mean '
        'enable_isolated_aggregate_filtering?).\n'
    ) in result.err


@cases(
    ('lines', 'said'),
    {
        'section of ours': (
            ['[isolated_aggregates]', 'max_query_length = 4000'],
            'the section [isolated_aggregates] has no effect (did you mean '
            'isolate_aggregates?).',
        ),
        'option of ours': (
            ['[isolate_aggregates]', 'max_query_lenght = 4000'],
            'the option max_query_lenght in [isolate_aggregates] has no '
            'effect (did you mean max_query_length?).',
        ),
        'credential': (
            ['[isolate_aggregates]', 'auth_type = password', 'pasword = x'],
            'the option pasword in [isolate_aggregates] has no effect (did '
            'you mean password?).',
        ),
        'wrong section': (
            ['[scheduler]', 'enabled_filters = ComputeFilter'],
            'the option enabled_filters in [scheduler] has no effect there; '
            'move it to [filter_scheduler].',
        ),
    },
)
def test_a_name_that_nothing_reads_is_named(run, write, lines, said):
    path = write(*lines)
    result = run('--config-file', path, *LIST)
    assert result.code == 0
    assert {*result.err.splitlines()} == {f'{path}: {said}'}


def test_a_configuration_directory_is_checked_too(run, write):
    path = write('[isolate_aggregates]', 'max_query_lenght = 4000')
    result = run('--config-dir', str(pathlib.Path(path).parent), *LIST)
    assert f'{path}: the option max_query_lenght' in result.err


@pytest.mark.parametrize('path', WHOLE, ids=lambda path: path.stem)
def test_what_deployment_tools_write_passes_in_silence(run, path):
    assert run('--config-file', str(path), *LIST).err == ''


def test_credentials_pass_in_silence(run, write):
    path = write(
        *('[isolate_aggregates]', 'auth_type = password', 'password = x'),
        *('username = nova', 'auth_url = http://keystone.test'),
    )
    assert run('--config-file', path, *LIST).err == ''


def test_options_that_only_an_older_nova_read_pass_in_silence(run, write):
    """They are what the upgrade check tells, and change no command."""
    path = write('[scheduler]', 'driver = filter_scheduler')
    assert run('--config-file', path, *LIST).err == ''


def test_the_client_names_a_misspelt_option(openstack, write):
    path = write('[isolate_aggregates]', 'max_query_lenght = 4000')
    result = openstack(
        *('--os-isolation-config-file', path),
        *('isolation', *LIST),
    )
    assert f'{path}: the option max_query_lenght' in result.err
