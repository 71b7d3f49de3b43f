# SPDX-License-Identifier: Apache-2.0
"""What the page of the public API shows of the helpers for tests."""

import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / 'doc' / 'source' / 'reference' / 'api.rst'


def run_pytest(folder):
    """Run the tests in a folder as their author would."""
    return subprocess.run(
        [sys.executable, '-m', 'pytest', '-p', 'no:cacheprovider', '-c',
         folder / 'pyproject.toml', '--rootdir', folder],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def blocks(language):
    """Return the blocks of a language on the page, by caption or number."""
    matches = re.findall(
        rf'^\.\. code-block:: {language}\n(?:   :caption: (\S+)\n)?\n'
        r'((?:(?:   .*)?\n)+)',
        PAGE.read_text('utf-8'),
        re.MULTILINE,
    )
    return {
        caption or str(number): textwrap.dedent(text).strip() + '\n'
        for number, (caption, text) in enumerate(matches)
    }


def test_the_tests_on_the_page_pass(tmp_path):
    files = blocks('python')
    tests = [name for name in files if name.startswith('test_')]
    assert len(tests) == 3
    for name in tests:
        (tmp_path / name).write_text(files[name])
    (tmp_path / 'pyproject.toml').touch()
    result = run_pytest(tmp_path)
    assert result.returncode == 0, result.stdout
    assert '3 passed' in result.stdout


def test_the_program_on_the_page_prints_the_shown_output(tmp_path):
    (tmp_path / 'ask.py').write_text(blocks('python')['ask.py'])
    result = subprocess.run(
        [sys.executable, tmp_path / 'ask.py'],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.stderr == ''
    assert result.stdout == blocks('text')['0']
