# SPDX-License-Identifier: Apache-2.0
"""Every command in README and documentation is run by a test."""

import re

import pages
import pytest
import runners


@pytest.mark.parametrize('page', pages.PAGES, ids=pages.name)
def test_each_command_of_a_page_has_a_runner(page):
    forgotten = [
        shown.command.text
        for shown in runners.shown(page)
        if shown.runner is None
    ]
    assert forgotten == [], 'tests/docs/runners.py says who runs what'


@pytest.mark.parametrize('page', pages.PAGES, ids=pages.name)
def test_a_terminal_shows_commands_and_what_they_print(page):
    for block in pages.blocks(page):
        if block.language == 'console':
            assert block.text.startswith('$ '), block.text


def test_each_runner_exists():
    tables = (runners.AS_A_WHOLE, runners.ON_NOVA, runners.BY_OTHERS)
    running = {runner for table in tables for runner in table.values()}
    for runner in sorted({runners.ON_FILES, *running}):
        assert (pages.ROOT / runner).is_file(), runner


def test_each_runner_and_exception_has_a_command():
    for name, runner in runners.ON_NOVA.items():
        assert runners.commands_of(name, runner)
    texts = [
        shown.command.text
        for page in pages.PAGES
        for shown in runners.shown(page)
    ]
    assert len(texts) > 120
    for beginning in (*runners.BY_OTHERS, *runners.NOT_RUN):
        assert any(map(re.compile(beginning).match, texts)), beginning


@pytest.mark.parametrize(('beginning', 'why'), runners.NOT_RUN.items())
def test_each_command_that_is_not_run_has_a_reason(beginning, why):
    assert why
    pytest.skip(f'commands that begin with "{beginning.strip()}": {why}')
