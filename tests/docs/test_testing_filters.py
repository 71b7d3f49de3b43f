# SPDX-License-Identifier: Apache-2.0
"""The example of a filter package, and the page that shows it."""

import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLE = ROOT / 'examples' / 'filter-package'
PROGRAM = (
    'import sys; from isolate_aggregates.tools.cli import app; '
    'sys.exit(app.main())'
)
PAGE = ROOT / 'doc' / 'source' / 'contributor' / 'testing-filters.rst'


@pytest.fixture
def example(tmp_path):
    """A copy of the filter package."""
    return pathlib.Path(shutil.copytree(EXAMPLE, tmp_path / 'example'))


def run_pytest(folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Run the tests in a folder as their author would."""
    return subprocess.run(
        [sys.executable, '-m', 'pytest', '-p', 'no:cacheprovider', '-c',
         folder / 'pyproject.toml', '--rootdir', folder],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def blocks(language: str) -> dict[str, str]:
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


def shows(page_text: str, real: str) -> bool:
    """Return whether the shown lines match the output; dots match any.

    The width depends on the terminal.
    """
    page_text, real = (re.sub(' +', ' ', text) for text in (page_text, real))
    parts = [re.escape(part) for part in re.split(r'\.\.\.\n', page_text)]
    return bool(re.search('(.*\n)*'.join(parts), real))


def test_the_tests_of_the_example_pass_as_shown(example):
    result = run_pytest(example)
    assert result.returncode == 0, result.stdout
    command, _, shown = blocks('console')['0'].partition('\n')
    assert command == '$ pytest'
    assert shows(shown, result.stdout), result.stdout


def test_the_tests_of_the_example_fail_as_shown_without_the_filter(example):
    (example / 'tier_filter.py').write_text(
        'from isolate_aggregates.filters import RequestFilter\n\n\n'
        'class Tiers(RequestFilter):\n'
        '    def __call__(self, request, aggregates):\n'
        '        return ()\n'
    )
    result = run_pytest(example)
    assert result.returncode == 1
    assert shows(blocks('text')['0'], result.stdout), result.stdout


def test_the_test_of_the_example_is_about_ten_lines():
    text = (EXAMPLE / 'test_tier_filter.py').read_text('utf-8')
    body = text.partition('\n\n\n')[2]
    assert len(body.splitlines()) <= 16


@pytest.fixture
def installed(example, tmp_path):
    """Run the program in an environment where the example is installed.

    The metadata that pip would install is written here. The program runs in a
    separate process, because stevedore caches the installed entry points.
    """
    project = tomllib.loads((example / 'pyproject.toml').read_text('utf-8'))
    project = project['project']
    info = example / 'example_tier_filter-1.0.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text(
        f'Metadata-Version: 2.1\nName: {project["name"]}\n'
        f'Version: {project["version"]}\n'
    )
    [(group, points)] = project['entry-points'].items()
    lines = [f'{name} = {value}' for name, value in points.items()]
    (info / 'entry_points.txt').write_text('\n'.join([f'[{group}]', *lines]))

    def run_program(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, '-c', PROGRAM, *arguments],
            env={'HOME': str(tmp_path), 'PYTHONPATH': str(example)},
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip

    return run_program


def test_the_installed_example_filter_is_listed_as_shown(installed):
    command, _, shown = blocks('text')['1'].partition('\n')
    program = '$ isolate-aggregates '
    assert command.startswith(program)
    real = installed(*command.removeprefix(program).split())
    assert shows(shown, real), real


def test_the_example_filter_runs_when_it_is_enabled(installed, tmp_path):
    conf = tmp_path / 'some.conf'
    conf.write_text('[isolate_aggregates]\nrequest_filters = tiers\n')
    result = installed(
        '--config-file', str(conf), 'filter', 'list', '-f', 'csv'
    )
    assert result.splitlines()[1] == (
        '"tiers",True,"number 1 of 1",'
        '"example-tier-filter 1.0, tier_filter:Tiers"'
    )


def test_the_filter_of_the_example_names_its_locks(installed, tmp_path):
    cloud = tmp_path / 'tiers.yaml'
    cloud.write_text(
        'version: 1\n'
        'settings: {isolate_aggregates: {request_filters: [tiers]}}\n'
        'aggregates:\n'
        '- {name: a, metadata: {tier: gold}}\n'
        '- {name: b, metadata: {tier: iron}}\n'
        '- {name: c, metadata: {tier: gold}}\n'
        '- {name: d}\n'
    )
    printed = installed(
        *('list', '--snapshot', cloud, '-f', 'value'),
        *('-c', 'Lock', '-c', 'Aggregates'),
    )
    assert printed == 'tier=gold 2\ntier=iron 1\n'


def test_the_tests_on_the_page_pass(tmp_path):
    files = blocks('python')
    tests = [name for name in files if name.startswith('test_')]
    assert len(tests) == 8
    for name in tests:
        (tmp_path / name).write_text(files[name])
    (tmp_path / 'pyproject.toml').touch()
    result = run_pytest(tmp_path)
    assert result.returncode == 0, result.stdout
    assert '11 passed' in result.stdout


def test_the_program_on_the_page_prints_the_shown_output(tmp_path):
    (tmp_path / 'ask.py').write_text(blocks('python')['ask.py'])
    result = subprocess.run(
        [sys.executable, tmp_path / 'ask.py'],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.stderr == ''
    assert result.stdout == blocks('text')['2']
