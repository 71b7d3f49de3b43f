# SPDX-License-Identifier: Apache-2.0
"""``make test`` runs all parts, and fails if any does or none has a test."""

import re
import runpy

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


@pytest.mark.parametrize(
    ('quick', 'slow'), [('smoke', 'rest'), ('quick', 'slow')]
)
def test_a_part_can_be_limited(run, capfd, quick, slow):
    assert run(f'one:{quick}', f'two:{slow}', '--', '-v') == 0
    out = capfd.readouterr().out
    assert 'test_one.py::test_quick PASSED' in out
    assert 'test_two.py::test_slow PASSED' in out
    assert total(out) == '2 passed'


def test_a_part_may_select_no_test_unless_all_parts_do(run, capfd):
    assert run('one', 'two', '--', '-k', 'test_two') == 0
    assert total(capfd.readouterr().out) == '2 passed'
    assert run('one', '--', '-k', 'nothing') == 5
    said = total(capfd.readouterr().out)
    assert said == 'No part has a test for: -k nothing'


def test_a_path_is_run_in_its_part_alone(run, capfd):
    path = 'tests/two/test_two.py'
    assert run('one', 'two', '--', f'{path}::test_slow') == 0
    out = capfd.readouterr().out
    assert 'Tests of two' in out
    assert 'Tests of one' not in out
    assert '1 passed' in out
    # Nothing of it is in the other part.
    assert run('one', '--', path) == 5


def test_a_test_that_hangs_fails_and_the_other_parts_are_run(
    run, tmp_path, capfd
):
    hanging = tmp_path / 'tests' / 'one' / 'test_hanging.py'
    hanging.write_text(
        'import threading\ndef test_hanging(): threading.Event().wait()\n'
    )
    options = (
        '-p',
        'pytest_timeout',
        '--timeout',
        '2',
        '--timeout-method',
        'thread',
    )
    assert run('one', 'two', '--', *options) == 1
    out = capfd.readouterr().out
    assert 'threading.Event().wait()' in out
    assert '2 passed' in out
    assert total(out) == 'Failed: one'


def test_a_part_that_fails_is_named_and_the_others_are_run(
    run, tmp_path, capfd
):
    broken = tmp_path / 'tests' / 'one' / 'test_broken.py'
    broken.write_text('def test_broken(): assert False\n')
    assert run('one', 'two') == 1
    out = capfd.readouterr().out
    assert '1 failed, 4 passed in' in out
    assert out.endswith('Failed: one\n')
    # What is not even a test run ends all.
    broken.write_text('raise KeyboardInterrupt\n')
    assert run('one', 'two') == 2
    assert 'Tests of two' not in capfd.readouterr().out
