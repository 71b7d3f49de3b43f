# SPDX-License-Identifier: Apache-2.0
"""Commands in sentences can be pasted, whatever the names in them are."""

import ast
import pathlib
import re
import shlex

import pytest

import isolate_aggregates
from isolate_aggregates import shell

PACKAGE = pathlib.Path(isolate_aggregates.__file__).parent

# A command of ours in a sentence is written without the program.
COMMAND = re.compile(
    r'\b(?:(?:openstack|isolate-aggregates) [a-z]'
    r'|reservation (?:create|end|host|repair|set|show) )'
    r'(?:(?!\bwith\b)[^,;:.])*\0'
)


def unquoted(source):
    """Return the f-strings that put a value into a command."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.JoinedStr)
        and COMMAND.search(
            ''.join(
                str(part.value) if isinstance(part, ast.Constant) else '\0'
                for part in node.values
            )
        )
    ]


@pytest.mark.parametrize(
    'source',
    [
        "f'run openstack flavor delete {name}'",
        "f'{x}; run openstack aggregate set ' f'--property {key} pool'",
        "f'isolate-aggregates sync {host}'",
        "f'run reservation host set --enable {name}'",
    ],
)
def test_a_value_in_a_command_is_noticed(source):
    assert unquoted(source)


def test_no_sentence_has_a_command_that_is_not_quoted():
    found = {
        f'{path.relative_to(PACKAGE)}: {text}'
        for path in PACKAGE.rglob('*.py')
        for text in unquoted(path.read_text('utf-8'))
    }
    assert found == set()


@pytest.mark.parametrize(
    'name', ['pool', 'my pool', "it's", '$(reboot)', 'a;b', '-rf', 'a\nb', '<']
)
def test_a_name_is_one_word_of_a_command(name):
    text = shell.command('openstack aggregate delete', names=[name])
    assert text.isprintable()
    if text.isascii() and "$'" not in text:
        assert shlex.split(text)[-1] == name
    assert ('-- ' in text) == name.startswith('-')
