# SPDX-License-Identifier: Apache-2.0
"""What README and documentation show is true, and nothing is left out."""

import configparser
import inspect
import re

from oslo_config import generator
from pages import PAGES, ROOT, SOURCE, blocks
import pytest
import yaml

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates import options as tools_options
from isolate_aggregates_reservations import errors
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.cloud.file import cloud_file

NOTES = sorted((ROOT / 'releasenotes' / 'notes').glob('*'))
SAMPLE = 'etc/isolate-aggregates/isolate-aggregates.conf.sample'
GENERATOR = 'etc/isolate-aggregates/config-generator.conf'


def names(page):
    """Return what a page names in double back quotes."""
    return set(re.findall(r'``([^`]+)``', page.read_text('utf-8')))


def entry_points(group):
    """Return the names of our entry points of a group."""
    lines = []
    for folder in (ROOT, *sorted(ROOT.glob('isolate-aggregates-*'))):
        parser = configparser.ConfigParser()
        parser.read(folder / 'setup.cfg')
        lines += parser['entry_points'].get(group, '').strip().splitlines()
    return [line.partition('=')[0].strip() for line in lines]


# What pages show.


def test_each_part_of_a_cloud_file_that_is_shown_is_valid(tmp_path):
    shown = [
        block.text
        for block in blocks(SOURCE / 'user' / 'cloud-file.rst')
        if block.language == 'yaml' and not block.caption
    ]
    assert len(shown) == 7
    for number, text in enumerate(shown):
        path = tmp_path / f'{number}.yaml'
        path.write_text(f'version: 1\n{text}')
        cloud_file.load(path)


# What pages leave out.


def schema_keys(schema):
    """Return all keys that a JSON schema allows."""
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
        (
            ROOT
            / 'isolate-aggregates-tools/isolate_aggregates_tools'
            / 'cloud/file/schema.yaml'
        ).read_text('utf-8')
    )
    keys = schema_keys(schema)
    assert {'version', 'step_size', 'children', 'extra_specs'} <= keys
    assert keys - names(SOURCE / 'user' / 'cloud-file.rst') == set()


def test_each_setting_of_a_cloud_file_is_shown():
    page = (SOURCE / 'user' / 'cloud-file.rst').read_text('utf-8')
    missing = [
        o for _, o in tools_options.CLOUD_SETTINGS if f'{o}:' not in page
    ]
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


def test_each_check_of_the_scheduler_is_described():
    from isolate_aggregates.upgrade_check.checks import CHECKS

    assert set(CHECKS) <= names(SOURCE / 'cli' / 'status.rst')


@pytest.mark.parametrize(
    'error',
    [
        value
        for module in (exception, tools_errors, errors)
        for name, value in vars(module).items()
        if not name.startswith('_')
        and inspect.isclass(value)
        and issubclass(value, exception.IsolateAggregatesError)
        and value.__module__ == module.__name__
    ],
    ids=lambda error: error.__name__,
)
def test_each_error_is_explained(error):
    page = SOURCE / 'admin' / 'troubleshooting.rst'
    assert error.__name__ in names(page)


# Configuration.


def own_options():
    """Return the options that are ours and not keystoneauth's."""
    return [
        (group, option.name)
        for group, options in tools_options.list_opts(connection=False)
        for option in options
    ]


def paragraphs(sample):
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


def test_the_sample_configuration_is_current(tmp_path):
    # Not compared as a whole: keystoneauth's options change with its version.
    output = tmp_path / 'sample'
    generator.main([
        '--config-file', str(ROOT / GENERATOR), '--output-file', str(output),
    ])  # fmt: skip
    generated = paragraphs(output.read_text('utf-8'))
    kept = paragraphs((ROOT / SAMPLE).read_text('utf-8'))
    for option in own_options():
        assert kept.get(option) == generated[option], 'run "make sample"'


def test_the_sample_configuration_has_no_removed_option():
    names = {
        (group, option.dest)
        for group, options in tools_options.list_opts()
        for option in options
    }
    kept = paragraphs((ROOT / SAMPLE).read_text('utf-8'))
    ours = {
        (section, name)
        for section, name in kept
        if section != ia_conf.GROUP or (section, name) in own_options()
    }
    assert ours == set(own_options())
    assert ours <= names


def test_the_configuration_page_is_made_from_the_options():
    page = (SOURCE / 'configuration' / 'index.rst').read_text('utf-8')
    [namespace] = entry_points('oslo.config.opts')
    assert f'.. show-options::\n\n   {namespace}\n' in page


# Release notes.


def test_there_are_release_notes():
    assert NOTES


@pytest.mark.parametrize('path', NOTES, ids=lambda path: path.name)
def test_reno_accepts_each_release_note(path):
    assert re.fullmatch(r'[a-z0-9-]+-[0-9a-f]{16}\.yaml', path.name)
    note = yaml.safe_load(path.read_text('utf-8'))
    assert set(note) <= {
        'prelude', 'features', 'issues', 'upgrade', 'deprecations',
        'critical', 'security', 'fixes', 'other',
    }  # fmt: skip
    assert isinstance(note.pop('prelude', ''), str)
    for entries in note.values():
        assert all(isinstance(entry, str) for entry in entries)


def test_the_side_bar_cuts_no_title():
    """The theme shows 24 characters; decision records are not in it."""
    titles = [
        re.search(r'^=+\n(.+)\n=+$', page.read_text('utf-8'), re.MULTILINE)
        for page in SOURCE.rglob('*.rst')
        if page.parent.name != 'decisions' and page.stem != 'contributing'
    ]
    assert len(titles) > 50
    assert [title[1] for title in titles if len(title[1]) > 24] == []


def test_the_spec_passes_the_line_check_of_nova_specs():
    """URLs, code and words longer than a line are exempt there."""
    spec = SOURCE / 'contributor/upstream/scheduler-request-filters-option.rst'
    in_code = False
    too_long = []
    for line in spec.read_text('utf-8').splitlines():
        if in_code and (not line or line.startswith(' ')):
            continue
        in_code = '::' in line
        if len(line) > 79 and '//' not in line and ' ' in line.strip():
            too_long.append(line)
    assert too_long == []


def test_files_named_on_the_page_of_specs_exist():
    page = (SOURCE / 'reference' / 'specs.rst').read_text('utf-8')
    named = re.findall(r'``([\w/]+(?:\.py|/))``', page)
    folders = [ROOT, *ROOT.glob('isolate-aggregates-*')]
    assert len(named) >= 6
    assert [
        one
        for one in named
        if not any((folder / one).exists() for folder in folders)
    ] == []
