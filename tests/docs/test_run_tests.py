# SPDX-License-Identifier: Apache-2.0
"""``make test`` runs all parts, and fails if any does or runs no test."""

import re
import runpy

from cases import cases
import pages
import pytest

TESTS = """
import pytest

@pytest.mark.smoke
def test_quick(): pass

@pytest.mark.slow
def test_slow(): pass
"""
CONFIGURATION = '[pytest]\nmarkers =\n  smoke: some of them\n  slow: others\n'


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run two parts of two tests each, of which one can be broken."""
    tool = runpy.run_path(str(pages.ROOT / 'tools' / 'run_tests.py'))
    for name in ('one', 'two'):
        folder = tmp_path / 'tests' / name
        folder.mkdir(parents=True)
        (folder / f'test_{name}.py').write_text(TESTS)
    (tmp_path / 'pytest.ini').write_text(CONFIGURATION)
    parts = {name: tool['Part']((f'tests/{name}',)) for name in ('one', 'two')}
    tool['run'].__globals__.update(ROOT=tmp_path, PARTS=parts)
    monkeypatch.setattr('sys.argv', ['run_tests.py'])
    # Those of the run that this test is part of.
    monkeypatch.delenv('TESTS_RECORD', raising=False)
    monkeypatch.delenv('WITHOUT', raising=False)
    # Without those that are not needed pytest starts sooner.
    monkeypatch.setenv('PYTEST_DISABLE_PLUGIN_AUTOLOAD', '1')

    def run_tool(*arguments):
        monkeypatch.setattr('sys.argv', ['run_tests.py', *arguments])
        return tool['main']()

    return run_tool


def total(out):
    """Return the last line, without the time."""
    *_, last = out.strip().splitlines()
    return re.sub(r' in [\d.]+s', '', last.strip('= '))


def test_a_part_may_select_no_test_unless_all_parts_do(run, capfd):
    assert run('one', 'two', '--', '-k', 'test_two') == 0
    assert total(capfd.readouterr().out) == '2 passed'
    assert run('one', '--', '-k', 'nothing') == 5
    message = total(capfd.readouterr().out)
    assert message == 'No part runs a test: -k nothing'


ALL_SKIPPED = (
    'import pytest\npytestmark = pytest.mark.skip("no Chromium")\n' + TESTS
)


@cases('text', {'it has none': '', 'all are skipped': ALL_SKIPPED})
def test_a_part_that_runs_no_test_fails_if_it_may_not_be_left_out(
    run, tmp_path, capfd, monkeypatch, text
):
    (tmp_path / 'tests' / 'two' / 'test_two.py').write_text(text)
    monkeypatch.setenv('WITHOUT', '')
    assert run('one', 'two:rest') == 1
    out = capfd.readouterr().out
    assert 'No test of two:rest ran. Install what is missing, or set' in out
    assert 'set WITHOUT=two.\n' in out
    assert total(out) == 'Failed: two:rest'
    assert run('two') == 5
    assert total(capfd.readouterr().out) == 'No part runs a test'

    monkeypatch.setenv('WITHOUT', 'two')
    assert run('one', 'two:rest') == 0
    assert total(capfd.readouterr().out) == 'Left out: two'


@cases(
    ('text', 'status', 'said'),
    {
        'it has none': ('', 1, 'Failed: two:rest'),
        'all are skipped': (ALL_SKIPPED, 0, 'Left out: two:rest'),
    },
)
def test_a_part_is_left_out_only_if_all_its_tests_are_skipped(
    run, tmp_path, capfd, text, status, said
):
    (tmp_path / 'tests' / 'two' / 'test_two.py').write_text(text)
    assert run('one', 'two:rest') == status
    assert total(capfd.readouterr().out) == said


def test_skipped_tests_are_counted_by_reason(
    run, tmp_path, capfd, monkeypatch
):
    for name in ('one', 'two'):
        (tmp_path / 'tests' / name / f'test_{name}.py').write_text(
            f'{TESTS}\n@pytest.mark.skip("no Chromium")\n'
            'def test_page(): pass\n'
        )
    record = tmp_path / 'record'
    monkeypatch.setenv('TESTS_RECORD', str(record))
    assert run('one', 'two') == 0
    assert total(capfd.readouterr().out) == '2 skipped: no Chromium'
    assert run('one', 'two', '--', '-k', 'page') == 5
    assert sorted(record.read_text('utf-8').splitlines()) == [
        *['ran'] * 4,
        *['skipped no Chromium'] * 4,
    ]
