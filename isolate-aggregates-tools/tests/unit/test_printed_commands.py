# SPDX-License-Identifier: Apache-2.0
"""Printed commands can be pasted, whatever the names in them are.

All are of a kind in ``isolate_aggregates_tools.shell``, and of each kind a
line is run on a real cloud.
"""

import ast
import functools
import pathlib
import re
import shlex
import types
from unittest import mock
import uuid

import printed_lines
import pytest

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools import shell
from isolate_aggregates_tools.shell import Kind

# Of all three distributions.
ROOT = pathlib.Path(__file__).parents[3]
SOURCES = [
    path
    for package in (
        'isolate_aggregates',
        'isolate-aggregates-tools/isolate_aggregates_tools',
        'isolate-aggregates-reservations/isolate_aggregates_reservations',
    )
    for path in (ROOT / package).rglob('*.py')
]

# A command of ours in a sentence is written without the program.
COMMAND = re.compile(
    r'\b(?:(?:openstack|isolate-aggregates) [a-z]'
    r'|reservation (?:create|end|host|repair|set|show) )'
    r'(?:(?!\bwith\b)[^,;:.])*\0'
)


# A command that is not of a kind. "The openstack client" is none.
LITERAL = re.compile(
    r'\bopenstack (?!clients?\b|commands?\b)[a-z-]'
    r'|(?<!`)\bisolate-aggregates ('
    + '|'.join({kind.words[0] for kind in Kind if kind.is_ours})
    + r')\b'
)


def strings(source):
    """Return the text of each string but docstrings, with NUL for values."""
    tree = ast.parse(source)
    parts = {
        id(part)
        for node in ast.walk(tree)
        for part in (
            node.values
            if isinstance(node, ast.JoinedStr)
            else [node.value]
            if isinstance(node, ast.Expr)
            else []
        )
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield ''.join(
                str(part.value) if isinstance(part, ast.Constant) else '\0'
                for part in node.values
            )
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in parts
        ):
            yield node.value


def written_out(source):
    """Return the strings with a command that is not of a kind, or quoted."""
    # Faster than to parse all files.
    if not re.search(r'openstack |isolate-aggregates |reservation ', source):
        return []
    return [
        text
        for text in strings(source)
        if LITERAL.search(text) or COMMAND.search(text)
    ]


@pytest.mark.parametrize(
    'source',
    [
        "f'run openstack flavor delete {name}'",
        "f'{x}; run openstack aggregate set ' f'--property {key} pool'",
        "f'isolate-aggregates sync {host}'",
        "f'run reservation host set --enable {name}'",
        "'run openstack server list'",
        "('openstack --os-compute-api-version 2.56 server list', name)",
        "'run isolate-aggregates reservation list'",
    ],
)
def test_a_command_that_is_written_out_is_noticed(source):
    assert written_out(f'text = {source}')


def test_no_string_has_a_command_that_is_written_out():
    found = {
        f'{path.relative_to(ROOT)}: {text}'
        for path in SOURCES
        if path.name != 'shell.py'
        for text in written_out(path.read_text('utf-8'))
    }
    assert len(SOURCES) > 300
    assert found == set()


class DryCloud(mock.Mock):
    """A cloud that is only named."""

    data = b''

    def name(self, short):
        return short

    def uuid(self, name):
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))

    project = uuid

    def aggregate(self, short, hosts):
        return Aggregate('', short)

    def flavor(self, short):
        return Flavor(short)

    def reservation(self, hosts):
        return self.uuid('reservation')

    def server(self, short, host=''):
        return types.SimpleNamespace(id=self.uuid(short), name=short)

    server_of = server

    def provider(self, name, trait, resource_class):
        return self.uuid(name), self.uuid(trait)

    def traits(self, host):
        return []


@functools.cache
def run_options():
    """Return the options of each kind that a story runs."""
    options = {}
    for story in printed_lines.STORIES:
        for line in story(DryCloud()):
            words = shlex.split(line.text)
            options.setdefault(line.kind, set()).update(
                word.partition('=')[0]
                for word in words[len(line.kind.words) :]
                if word.startswith('--') and word != '--'
            )
    return options


@pytest.mark.parametrize(
    'kind', [one for one in Kind if one not in printed_lines.ELSEWHERE]
)
def test_a_line_of_each_kind_with_each_option_is_run(kind):
    assert run_options().get(kind) == kind.options, (
        'printed_lines.py has the lines that the end-to-end tests run'
    )


@pytest.mark.parametrize(
    ('kind', 'runner'), printed_lines.ELSEWHERE.items(), ids=str
)
def test_lines_that_the_cloud_cannot_run_have_another_test(kind, runner):
    path, _, name = runner.partition('::')
    tests = (ROOT / path).read_text('utf-8')
    assert f'def {name}(' in tests
    assert kind not in run_options()


def test_a_command_has_no_option_that_is_not_of_its_kind():
    with pytest.raises(ValueError, match='no option --wait'):
        shell.command(Kind.SERVER_EVACUATE, '--wait')


def test_a_negative_number_is_a_value():
    """A file may have one, which Nova refuses."""
    assert shell.command(Kind.FLAVOR_CREATE, '--disk', '-1').endswith(
        '--disk -1'
    )


@pytest.mark.parametrize(
    'name', ['pool', 'my pool', "it's", '$(reboot)', 'a;b', '-rf', 'a\nb', '<']
)
def test_a_name_is_one_word_of_a_command(name):
    text = shell.command(Kind.AGGREGATE_DELETE, names=[name])
    assert text.isprintable()
    if text.isascii() and "$'" not in text:
        assert shlex.split(text)[-1] == name
    assert ('-- ' in text) == name.startswith('-')
