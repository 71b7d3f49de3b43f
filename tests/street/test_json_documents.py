# SPDX-License-Identifier: Apache-2.0
"""Each JSON document names its schema, which is a file beside the code."""

from importlib import metadata
import importlib.util
import json
import pathlib

from cases import cases
import jsonschema
from published_schemas import schema_of

from isolate_aggregates_tools.cli import app

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLE = 'windows-licensing.yaml'
WITH_SERVERS = 'licensed-rack.yaml'
COMMANDS = {
    e.name.replace('_', ' '): e
    for e in metadata.entry_points(group=app.COMMANDS)
}
QUESTION = '--flavor m1.small'

# Arguments of commands that need no cloud; the others have tests with one.
ON_FILES = {
    'audit': '',
    'candidate list': QUESTION,
    'capacity list': QUESTION,
    'check': f'{QUESTION} --host win-1',
    'effect show': f'--to {EXAMPLE}',
    'explain': QUESTION,
    'key add': '--flavor m1.small --trait CUSTOM_LICENSED_WINDOWS',
    'key remove': '--image windows-2022 --trait CUSTOM_LICENSED_WINDOWS',
    'lock create': 'win-hosts --trait CUSTOM_LICENSED_WINDOWS',
    'lock delete': 'win-hosts',
    'lock list': '',
    'lock show': 'win-hosts',
    'matrix list': '',
    'provider set': 'win-1 --trait CUSTOM_X',
    'provider unset': 'win-1 --trait CUSTOM_LICENSED_WINDOWS',
    'sync': '',
}


def documented():
    """Return the names of the commands that can write JSON."""
    program = app.IsolateAggregatesApp([])
    return {
        name
        for name, entry_point in COMMANDS.items()
        if '-f' in _options(entry_point.load()(program, None))
    }


def _options(command):
    return command.get_parser('x')._option_string_actions


def test_every_command_with_json_has_a_schema():
    for command in documented():
        schema = schema_of(command)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema['$id'] == (
            f'isolate-aggregates/{command.replace(" ", "-")}/1'
        )


def test_the_schemas_are_those_of_the_code():
    """If they are not, "make sample" writes them anew."""
    path = ROOT / 'tools' / 'json_schemas.py'
    spec = importlib.util.spec_from_file_location('json_schemas', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    files = module.files()
    assert {*files} == {
        path for file in files for path in file.parent.iterdir()
    }
    assert [
        path for path, text in files.items() if path.read_text('utf-8') != text
    ] == []


@cases('command', {name: name for name in ON_FILES})
def test_a_document_names_its_schema_and_has_it(run, monkeypatch, command):
    monkeypatch.chdir(ROOT / 'examples')
    check(run, command, *ON_FILES[command].split(), '--snapshot', EXAMPLE)


@cases('words', {'relocation create': ['--out-of-place'], 'survival list': []})
def test_so_does_a_document_about_servers(run, monkeypatch, request, words):
    monkeypatch.chdir(ROOT / 'examples')
    command = request.node.callspec.id
    check(run, command, *words, '--snapshot', WITH_SERVERS)


def check(run, command, *arguments):
    """Check that the document of a command has the schema that it names."""
    result = run(*command.split(), *arguments, '-f', 'json')
    document = json.loads(result.out)
    schema = schema_of(command)
    assert document['schema'] == schema['$id']
    jsonschema.validate(document, schema)


def test_the_client_writes_the_same_document(run, openstack, monkeypatch):
    monkeypatch.chdir(ROOT / 'examples')
    words = 'lock', 'list', '--snapshot', EXAMPLE, '-f', 'json'
    listed = openstack('isolation', *words)
    assert json.loads(listed.out) == json.loads(run(*words).out)


def test_columns_that_were_chosen_are_all_there_is(run, monkeypatch):
    monkeypatch.chdir(ROOT / 'examples')
    words = 'lock', 'show', 'win-hosts', '--snapshot', EXAMPLE, '-f', 'json'
    assert json.loads(run(*words, '-c', 'name').out) == {'name': 'win-hosts'}
