# SPDX-License-Identifier: Apache-2.0
"""Commands on cloud files have the documented output."""

import logging
import shlex
import subprocess
import sys

from cases import cases
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
def test_shown_output_is_real_output(
    page, run, openstack, tmp_path, monkeypatch
):
    (tmp_path / 'examples').symlink_to(pages.ROOT / 'examples')
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    handlers = list(root.handlers)
    for command in runners.played(page, tmp_path):
        program, *arguments = command.words
        saved = tmp_path / arguments.pop() if '>' in arguments else None
        ours = program == 'isolate-aggregates'
        result = (run if ours else openstack)(
            *(word for word in arguments if word != '>')
        )
        # Each run adds its own handler.
        root.handlers[:] = handlers
        if saved:
            saved.write_text(result.out)
            continue
        real = result.err + result.out
        assert pages.agrees(command.output, real), (
            f'{shlex.join(command.words)}\n{real}'
        )


@cases(
    ('shown', 'agreeing'),
    {
        'all of it': ('a b\n', True),
        'folded': ('a\n  b\n', True),
        'the beginning left out': ('...\nb\n', True),
        'the end left out in silence': ('a\n', False),
        'nothing': ('', False),
        'something else': ('a c\n', False),
    },
)
def test_differing_output_is_detected(shown, agreeing):
    assert pages.agrees(shown, 'a b\n') is agreeing


def test_some_commands_are_shown_and_run():
    shown = [
        command
        for page in pages.PAGES
        for command in runners.shown(page)
        if command.runner == runners.ON_FILES and command.command.output
    ]
    assert len(shown) >= 40


def test_the_program_on_the_page_about_effects_runs(tmp_path):
    [program] = [
        block.text
        for block in pages.blocks(pages.path('admin/effect.rst'))
        if block.caption == 'effect.py'
    ]
    before = (pages.ROOT / 'examples' / 'licensed-rack.yaml').read_text()
    hosts = '  hosts: [r7-1, r7-2]\n'
    lock = '  metadata: {trait:CUSTOM_LICENSED: required}\n'
    (tmp_path / 'before.yaml').write_text(before)
    (tmp_path / 'after.yaml').write_text(before.replace(hosts, hosts + lock))
    told = subprocess.run(
        [sys.executable, '-c', program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    first, *others = sorted(told.splitlines())
    assert first.startswith('oracle aggregate rack-7: locked')
    assert len(others) == 2
