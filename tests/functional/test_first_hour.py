# SPDX-License-Identifier: Apache-2.0
"""What a stranger meets in the first hour, on a terminal of 80 columns."""

from collections.abc import Callable
from importlib import metadata
import re
from typing import Any

import pytest

from isolate_aggregates.cli import app

Run = Callable[..., Any]

COMMANDS = sorted(
    e.name.replace('_', ' ') for e in metadata.entry_points(group=app.COMMANDS)
)


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('COLUMNS', '80')


@pytest.fixture
def see(run: Run) -> Run:
    """Run a command; no line is wider than the terminal."""

    def seen(*arguments: str) -> Any:
        finished = run(*arguments)
        shown = finished.out + finished.err
        assert [line for line in shown.splitlines() if len(line) > 80] == []
        assert 'Traceback' not in shown
        return finished

    return seen


# Help


def test_the_help_has_the_commands_first_each_under_its_task(see: Run) -> None:
    finished = see('--help')
    assert finished.code == 0
    tasks = re.findall(r'^(\w[^:\n]*):\n((?:  .*\n)+)', finished.out, re.M)
    titles = [title for title, _ in tasks]
    assert titles[:3] == [
        'See what may go where',
        'Keep hosts apart',
        'Keep it working',
    ]
    assert titles[-2:] == ['options', 'options of the cloud']
    listed = {
        title: re.findall(r'^  (\S+(?: \S+)*)', lines, re.M)
        for title, lines in tasks[:-2]
    }
    assert sorted(name for names in listed.values() for name in names) == [
        *sorted([*COMMANDS, 'complete', 'help'])
    ]
    assert listed['Others'] == ['complete', 'help']
    assert 'lock' in listed['Keep hosts apart']


def test_without_a_command_the_help_is_shown_as_an_error(see: Run) -> None:
    finished = see()
    assert finished.code == 2
    assert finished.out == ''
    assert finished.err == see('help').out == see('--help').out


@pytest.mark.parametrize('command', COMMANDS)
def test_each_help_fits_the_terminal(see: Run, command: str) -> None:
    finished = see('help', *command.split())
    assert finished.code == 0
    assert finished.out.startswith('usage: ')
    assert f' {command} ' in finished.out.splitlines()[0]
