# SPDX-License-Identifier: Apache-2.0
"""Which commands use what earlier ones have read of resource providers."""

from cases import cases
from live_example import ISOLATE
import pytest

WINDOWS = ('--flavor', 'm1.small', '--image', 'windows-2022')


@pytest.fixture
def calls(live, http):
    """Count the calls of a command to Placement for single providers."""

    def counted(program, *arguments):
        http.reset()
        program(*arguments)
        return sum(
            '/resource_providers/' in request.url
            for request in http.request_history
        )

    return counted


READING = {
    'audit': ('audit',),
    'capacity list': ('capacity', 'list', *WINDOWS),
    'matrix list': ('matrix', 'list'),
    'lock show': ('lock', 'show', 'win-hosts'),
    'survival list': ('survival', 'list'),
}


@pytest.mark.usefixtures('in_environment')
@cases('arguments', READING)
def test_commands_that_change_nothing_remember(run, calls, config, arguments):
    options = ('--config-file', config(ISOLATE))
    assert calls(run, *options, *arguments) > 0
    assert calls(run, *options, *arguments) == 0


@pytest.mark.usefixtures('in_environment')
@cases(
    'arguments',
    {
        'explain': ('explain', *WINDOWS),
        'check': ('check', '--host', 'win-1', *WINDOWS),
        'sync': ('sync', '--dry-run'),
    },
)
def test_what_a_few_lists_tell_is_not_read(run, calls, config, arguments):
    assert calls(run, '--config-file', config(ISOLATE), *arguments) == 0


@pytest.mark.usefixtures('in_environment')
@cases(
    'arguments',
    {
        'audit --fix': ('audit', '--fix', '--dry-run'),
        'snapshot save': ('snapshot', 'save', '--no-servers', '--output'),
        'relocation create': (
            *('relocation', 'create', '--host', 'win-1', '--dry-run'),
        ),
    },
)
def test_what_decides_about_changes_is_read_anew(
    run, calls, config, arguments, tmp_path
):
    options = ('--config-file', config(ISOLATE))
    if arguments[-1] == '--output':
        arguments = (*arguments, str(tmp_path / 'cloud.yaml'))
    run(*options, 'audit')
    first = calls(run, *options, *arguments)
    assert first > 0
    assert calls(run, *options, *arguments) == first


@pytest.mark.usefixtures('in_environment')
def test_the_environment_can_forbid_it(run, calls, config, monkeypatch):
    options = ('--config-file', config(ISOLATE))
    assert calls(run, *options, 'audit') > 0
    monkeypatch.setenv('OS_ISOLATE_AGGREGATES__REMEMBER_PROVIDERS', 'false')
    assert calls(run, *options, 'audit') > 0
