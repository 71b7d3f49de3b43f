# SPDX-License-Identifier: Apache-2.0
"""The tools build requests in one module, and ask the filters in one."""

import ast
import pathlib

import isolate_aggregates_tools
from isolate_aggregates_tools import answers

TOOLS = pathlib.Path(isolate_aggregates_tools.__file__).parent
ANSWERS = pathlib.Path(answers.__file__).parent


def callers(name):
    """Return the modules of the tools that call something with a name."""
    return {
        path
        for path in TOOLS.rglob('*.py')
        # Builders for tests, and requests over HTTP.
        if not {'testing', 'rehearse'}.intersection(path.parts)
        for node in ast.walk(ast.parse(path.read_text('utf-8')))
        if isinstance(node, ast.Call)
        and name
        in (getattr(node.func, 'id', ''), getattr(node.func, 'attr', ''))
    }


def test_requests_are_built_in_one_module():
    assert callers('Request') == {ANSWERS / 'requests.py'}


def test_the_filters_are_asked_in_one_module():
    assert callers('decide') == {ANSWERS / 'deciding.py'}
