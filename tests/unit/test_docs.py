# SPDX-License-Identifier: Apache-2.0
"""What README and documentation show is true, and nothing is left out."""

from collections.abc import Iterator
import configparser
import contextlib
import dataclasses
import inspect
import io
import logging
import pathlib
import re
import runpy
import shlex
import textwrap
from typing import Any

from openstackclient import shell
from oslo_config import generator
import pytest
import yaml

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.cli import app
from isolate_aggregates.cloud import file as cloud_file
from isolate_aggregates.placement import microversion

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / 'doc' / 'source'
PAGES = [
    ROOT / 'README.rst',
    ROOT / 'CONTRIBUTING.rst',
    *(
        page
        for page in sorted(SOURCE.rglob('*.rst'))
        # Followed from top to bottom by a test of its own.
        if page.name != 'writing-a-filter.rst'
    ),
]
NOTES = sorted((ROOT / 'releasenotes' / 'notes').glob('*'))
SAMPLE = 'etc/isolate-aggregates/isolate-aggregates.conf.sample'
GENERATOR = 'etc/isolate-aggregates/config-generator.conf'

_BLOCK = re.compile(
    r'^(?P<indent> *)\.\. code-block:: (?P<language>\w+)\n'
    r'(?P<options>(?:(?P=indent)   :[^\n]+\n)*)'
    r'\n(?P<body>(?:(?:(?P=indent)   [^\n]*)?\n)+)',
    re.MULTILINE,
)
_CAPTION = re.compile(r':caption: (\S+)')


@dataclasses.dataclass(frozen=True)
class Block:
    """A block of code on a page."""

    language: str
    caption: str | None
    text: str

    def commands(self) -> Iterator[tuple[list[str], str]]:
        """Yield the shown commands, each with the output beneath it."""
        text = self.text.replace('\\\n', ' ')
        for part in re.split(r'^\$ ', text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition('\n')
            yield shlex.split(command), output


def blocks(page: pathlib.Path) -> list[Block]:
    """Return the blocks of code on a page, in order."""
    found = []
    for match in _BLOCK.finditer(f'{page.read_text("utf-8")}\n'):
        caption = _CAPTION.search(match['options'])
        found.append(
            Block(
                match['language'],
                caption[1] if caption else None,
                textwrap.dedent(match['body']).strip() + '\n',
            )
        )
    return found


def agrees(shown: str, real: str) -> bool:
    """Tell whether shown output is the real one.

    Pages fold long lines and leave out parts with a line of three dots.
    """
    parts = re.split(r'^ *\.\.\.$', shown, flags=re.MULTILINE)
    squeezed = [re.escape(''.join(part.split())) for part in parts]
    return bool(re.fullmatch('.*'.join(squeezed), ''.join(real.split())))


def check_arguments(program: Any, arguments: list[str]) -> None:
    """Parse the arguments of a command that is not run."""
    _, rest = program.parser.parse_known_args(arguments)
    command, name, own = program.command_manager.find_command(rest)
    command(program, None).get_parser(name).parse_args(own)


def is_command(words: list[str]) -> bool:
    """Tell whether a shown command is one of ours, in either program."""
    if '<command>' in words or '|' in words:
        return False
    return words[0] == 'isolate-aggregates' or (
        words[0] == 'openstack' and 'isolation' in words
    )


def client() -> shell.OpenStackShell:
    """Return the client with our commands."""
    started = shell.OpenStackShell()
    started.command_manager.add_command_group('openstack.isolation.v1')
    return started


def names(page: pathlib.Path) -> set[str]:
    """Return what a page names in double back quotes."""
    return set(re.findall(r'``([^`]+)``', page.read_text('utf-8')))


def entry_points(group: str) -> list[str]:
    """Return the names of this package's entry points of a group."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / 'setup.cfg')
    lines = parser['entry_points'][group].strip().splitlines()
    return [line.partition('=')[0].strip() for line in lines]


# What pages show.


@pytest.mark.parametrize(
    'page', PAGES, ids=lambda page: str(page.relative_to(ROOT))
)
def test_what_a_page_shows_is_what_happens(
    page, run, openstack, tmp_path, monkeypatch
):
    (tmp_path / 'examples').symlink_to(ROOT / 'examples')
    (tmp_path / 'clouds.yaml').write_text('clouds: {mycloud: {}}')
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    handlers = list(root.handlers)
    saved = set()
    for block in blocks(page):
        if block.caption:
            (tmp_path / block.caption).write_text(block.text)
        if block.language != 'console':
            continue
        for words, shown in block.commands():
            if not is_command(words):
                continue
            ours, arguments = words[0] == 'isolate-aggregates', words[1:]
            if 'save' in arguments:
                saved.add(arguments[-1])
            live = '--snapshot' not in arguments and not shown
            if live or '--os-cloud' in arguments or saved & set(arguments):
                monkeypatch.setenv('OS_CLIENT_CONFIG_FILE', 'clouds.yaml')
                check_arguments(
                    app.IsolateAggregatesApp(arguments) if ours else client(),
                    arguments,
                )
                monkeypatch.delenv('OS_CLIENT_CONFIG_FILE')
                continue
            finished = (run if ours else openstack)(*arguments)
            # Each run adds a handler of its own.
            root.handlers[:] = handlers
            real = finished.err + finished.out
            assert agrees(shown, real), f'{shlex.join(words)}\n{real}'


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
    assert agrees(shown, 'a b\n') is agreeing


def test_some_commands_are_shown_and_run():
    shown = [
        words
        for page in PAGES
        for block in blocks(page)
        if block.language == 'console'
        for words, output in block.commands()
        if words[0] == 'isolate-aggregates' and output
    ]
    assert len(shown) >= 20


def test_the_program_of_the_api_reference_prints_what_is_shown(
    tmp_path, monkeypatch
):
    [program, shown] = [
        block
        for block in blocks(SOURCE / 'reference' / 'api.rst')
        if block.language in ('python', 'text')
    ]
    (tmp_path / 'ask.py').write_text(program.text)
    monkeypatch.setenv('HOME', str(tmp_path))
    monkeypatch.chdir(ROOT)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(tmp_path / 'ask.py'))
    assert agrees(shown.text, printed.getvalue())


def test_each_part_of_a_cloud_file_that_is_shown_is_valid(tmp_path):
    shown = [
        block.text
        for block in blocks(SOURCE / 'user' / 'cloud-file.rst')
        if block.language == 'yaml' and not block.caption
    ]
    assert len(shown) == 5
    for number, text in enumerate(shown):
        path = tmp_path / f'{number}.yaml'
        path.write_text(f'version: 1\n{text}')
        cloud_file.load(path)


# What pages leave out.


def schema_keys(schema: object) -> set[str]:
    """Return every key that a JSON schema lets a document have."""
    if isinstance(schema, list):
        return set().union(*map(schema_keys, schema))
    if not isinstance(schema, dict):
        return set()
    keys = schema_keys(list(schema.values()))
    properties = schema.get('properties', {})
    # One of the definitions has the name "properties" itself.
    if 'type' in schema and schema['type'] == 'object':
        keys |= set(properties)
    return keys


def test_each_key_of_a_cloud_file_is_described():
    schema = yaml.safe_load(
        (ROOT / 'isolate_aggregates/cloud/schema.yaml').read_text('utf-8')
    )
    keys = schema_keys(schema)
    assert {'version', 'step_size', 'children', 'extra_specs'} <= keys
    assert keys - names(SOURCE / 'user' / 'cloud-file.rst') == set()


def test_each_setting_of_a_cloud_file_is_shown():
    page = (SOURCE / 'user' / 'cloud-file.rst').read_text('utf-8')
    missing = [o for _, o in ia_conf.CLOUD_SETTINGS if f'{o}:' not in page]
    assert missing == []


@pytest.mark.parametrize(
    'name', entry_points('isolate_aggregates.request_filters')
)
def test_each_filter_has_a_page_with_an_example(name):
    page = SOURCE / 'admin' / 'filters' / f'{name}.rst'
    shown = [b for b in blocks(page) if b.language == 'console']
    assert shown, f'{page} has no example'


def test_each_aggregate_source_is_described():
    sources = entry_points('isolate_aggregates.aggregate_sources')
    assert set(sources) <= names(SOURCE / 'admin' / 'snapshots.rst')


@pytest.mark.parametrize('name', entry_points('isolate_aggregates.cli'))
def test_each_command_is_shown(name):
    command = name.split('_')
    shown = [
        words
        for page in PAGES
        for block in blocks(page)
        if block.language == 'console'
        for words, _ in block.commands()
        if words[0] == 'isolate-aggregates'
    ]
    assert any(
        words[place : place + len(command)] == command
        for words in shown
        for place in range(len(words))
    )


@pytest.mark.parametrize('name', entry_points('console_scripts'))
def test_each_program_is_shown(name):
    shown = [
        words[0]
        for page in PAGES
        for block in blocks(page)
        if block.language == 'console'
        for words, _ in block.commands()
    ]
    assert name in shown


@pytest.mark.parametrize(
    'error',
    [
        value
        for value in vars(exception).values()
        if inspect.isclass(value)
        and issubclass(value, exception.IsolateAggregatesError)
    ],
    ids=lambda error: error.__name__,
)
def test_each_error_is_explained(error):
    page = SOURCE / 'admin' / 'troubleshooting.rst'
    assert error.__name__ in names(page)


def test_each_microversion_that_is_used_is_listed():
    page = (SOURCE / 'admin' / 'placement.rst').read_text('utf-8')
    rows = re.findall(
        r'^   \* - (.+)\n     - (1\.\d+)\n     - (\w+)$', page, re.MULTILINE
    )
    used = [
        (feature.purpose, feature.microversion, feature.release)
        for feature in vars(microversion).values()
        if isinstance(feature, microversion.Feature)
    ]
    assert rows == used


# Configuration.


def own_options() -> list[tuple[str, str]]:
    """Return the options that are ours and not keystoneauth's."""
    found = [(ia_conf.GROUP, o.name) for o in ia_conf.isolate_aggregates_opts]
    for group, options in ia_conf.list_opts():
        if group != ia_conf.GROUP:
            found += [(group, option.name) for option in options]
    return found


def paragraphs(sample: str) -> dict[tuple[str, str], str]:
    """Return the text on each option in a sample file."""
    found = {}
    section = ''
    for paragraph in sample.split('\n\n'):
        heading = re.search(r'^\[(.+)\]$', paragraph, re.MULTILINE)
        if heading:
            section = heading[1]
        option = re.search(r'^#(\w+) = ?', paragraph, re.MULTILINE)
        if option:
            found[section, option[1]] = paragraph
    return found


def test_the_sample_configuration_is_what_the_options_give(tmp_path):
    # Not compared as a whole: keystoneauth's options change with its version.
    output = tmp_path / 'sample'
    generator.main([
        '--config-file', str(ROOT / GENERATOR), '--output-file', str(output),
    ])  # fmt: skip
    generated = paragraphs(output.read_text('utf-8'))
    kept = paragraphs((ROOT / SAMPLE).read_text('utf-8'))
    for option in own_options():
        assert kept.get(option) == generated[option], 'run "make sample"'


def test_the_sample_configuration_has_no_option_that_is_gone():
    known = {
        (group, option.dest)
        for group, options in ia_conf.list_opts()
        for option in options
    }
    kept = paragraphs((ROOT / SAMPLE).read_text('utf-8'))
    ours = {
        (section, name)
        for section, name in kept
        if section != ia_conf.GROUP or (section, name) in own_options()
    }
    assert ours == set(own_options())
    assert ours <= known


def test_the_configuration_page_is_made_from_the_options():
    page = (SOURCE / 'configuration' / 'index.rst').read_text('utf-8')
    parser = configparser.ConfigParser()
    parser.read(ROOT / 'setup.cfg')
    [namespace] = [
        line.partition(' = ')[0]
        for line in parser['entry_points']['oslo.config.opts'].split('\n')
        if line
    ]
    assert f'.. show-options::\n\n   {namespace}\n' in page


# Release notes.


def test_there_are_release_notes():
    assert NOTES


@pytest.mark.parametrize('path', NOTES, ids=lambda path: path.name)
def test_a_release_note_is_one_that_reno_takes(path):
    assert re.fullmatch(r'[a-z0-9-]+-[0-9a-f]{16}\.yaml', path.name)
    note = yaml.safe_load(path.read_text('utf-8'))
    assert set(note) <= {
        'prelude', 'features', 'issues', 'upgrade', 'deprecations',
        'critical', 'security', 'fixes', 'other',
    }  # fmt: skip
    assert isinstance(note.pop('prelude', ''), str)
    for entries in note.values():
        assert all(isinstance(entry, str) for entry in entries)
