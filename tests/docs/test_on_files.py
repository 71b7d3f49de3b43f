# SPDX-License-Identifier: Apache-2.0
"""Commands that ask a file do what the documentation shows."""

import logging
import shlex

import pages
import pytest
import runners


@pytest.mark.parametrize(
    'page',
    [
        page
        for page in pages.PAGES
        if any(s.runner == runners.ON_FILES for s in runners.shown(page))
    ],
    ids=pages.name,
)
def test_what_a_page_shows_is_what_happens(
    page, run, openstack, tmp_path, monkeypatch
):
    (tmp_path / 'examples').symlink_to(pages.ROOT / 'examples')
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    handlers = list(root.handlers)
    for command in runners.played(page, tmp_path):
        program, *arguments = command.words
        ours = program == 'isolate-aggregates'
        finished = (run if ours else openstack)(*arguments)
        # Each run adds its own handler.
        root.handlers[:] = handlers
        real = finished.err + finished.out
        assert pages.agrees(command.output, real), (
            f'{shlex.join(command.words)}\n{real}'
        )


@pytest.mark.parametrize(
    ('shown', 'agreeing'),
    [
        pytest.param('a b\n', True, id='all of it'),
        pytest.param('a\n  b\n', True, id='folded'),
        pytest.param('...\nb\n', True, id='the beginning left out'),
        pytest.param('a\n', False, id='the end left out in silence'),
        pytest.param('', False, id='nothing'),
        pytest.param('a c\n', False, id='something else'),
    ],
)
def test_shown_output_must_be_the_real_one(shown, agreeing):
    assert pages.agrees(shown, 'a b\n') is agreeing


def test_some_commands_are_shown_and_run():
    shown = [
        command
        for page in pages.PAGES
        for command in runners.shown(page)
        if command.runner == runners.ON_FILES and command.command.output
    ]
    assert len(shown) >= 40
