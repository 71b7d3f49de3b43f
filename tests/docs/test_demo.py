# SPDX-License-Identifier: Apache-2.0
"""``make demo`` shows the main job, and what can be typed next."""

import os
import pathlib
import shlex
import subprocess
import sys

import pages

BIN = pathlib.Path(sys.executable).parent


def test_the_commands_that_the_demo_suggests_work(run, tmp_path, monkeypatch):
    demo = subprocess.run(
        ['sh', pages.ROOT / 'examples' / 'demo.sh'],
        env={**os.environ, 'BIN': str(BIN)},
        capture_output=True,
        text=True,
        check=True,
    )
    _, _, next_ = demo.stdout.partition('What to type next, in this folder:')
    activate, *commands = map(
        shlex.split, next_.replace('\\\n', '').strip().splitlines()
    )
    assert activate == ['.', f'{BIN}/activate']
    (tmp_path / 'examples').symlink_to(pages.ROOT / 'examples')
    monkeypatch.chdir(tmp_path)
    for program, *arguments in commands:
        assert program == 'isolate-aggregates'
        result = run(*arguments)
        assert result.code == 0, result.err
    assert len(commands) == 3
    assert (tmp_path / 'report.html').exists()
