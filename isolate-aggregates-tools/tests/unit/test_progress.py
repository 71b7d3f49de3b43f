# SPDX-License-Identifier: Apache-2.0
"""A person sees how far a command is, where tqdm is installed."""

import contextlib
import io
import sys

import pytest

from isolate_aggregates_tools.cli import progress


class Terminal(io.StringIO):
    """A fake terminal."""

    def isatty(self):
        """Say that a person does."""
        return True


def shown(track, stream):
    """Return the output while two operations are tracked."""
    with contextlib.redirect_stderr(stream):
        assert list(track(iter('ab'), 'hosts', 2)) == ['a', 'b']
    return stream.getvalue()


@pytest.mark.parametrize(
    ('track', 'output'),
    [
        (progress.reading, 'Reading hosts:'),
        (progress.changing, 'Changing hosts:'),
    ],
)
def test_a_terminal_shows_progress(track, output):
    assert output in shown(track, Terminal())


def test_without_tqdm_a_terminal_shows_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, 'tqdm', None)
    assert shown(progress.reading, Terminal()) == ''


def test_a_pipe_gets_nothing_and_tqdm_is_not_loaded(monkeypatch):
    monkeypatch.delitem(sys.modules, 'tqdm', raising=False)
    assert shown(progress.reading, io.StringIO()) == ''
    assert 'tqdm' not in sys.modules
