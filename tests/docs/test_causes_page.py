# SPDX-License-Identifier: Apache-2.0
"""The page about causes has each kind that JSON may show, and no other."""

import ast
import re

from pages import ROOT, SOURCE

PLUGIN = ROOT / 'isolate_aggregates'
TOOLS = ROOT / 'isolate-aggregates-tools/isolate_aggregates_tools'
REQUIREMENTS = TOOLS / 'explain/requirements.py'
ANSWERS = TOOLS / 'answers'
FILTER_KINDS, REQUEST_KINDS = (
    re.findall(r'^   \* - ``([a-z-]+)``$', section, re.MULTILINE)
    for section in (SOURCE / 'reference/causes.rst')
    .read_text('utf-8')
    .split('Requirements of the request')
)


def calls(path, *names):
    """Yield the calls of some functions in a module."""
    for node in ast.walk(ast.parse(path.read_text('utf-8'))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names:
            yield node


def kinds_of_causes():
    """Yield the kind of each cause that the package creates."""
    for path in (*PLUGIN.rglob('*.py'), *TOOLS.rglob('*.py')):
        # A filter may have a function that refuses for a cause.
        for call in calls(path, 'Cause', '_refuse'):
            kind = call.args[0]
            if isinstance(kind, ast.Constant):
                yield kind.value
            else:
                # What passes the kind of another cause on.
                assert isinstance(kind, ast.Name), path


def kinds_of_requirements():
    """Yield the kind of each requirement that is not of a filter."""
    for node in ast.walk(ast.parse(REQUIREMENTS.read_text('utf-8'))):
        if isinstance(node, ast.Assign):
            [target] = node.targets
            if ast.unparse(target) == 'kind':
                yield node.value.value
    for path in ANSWERS.glob('*.py'):
        for call in calls(path, 'Exclusion'):
            if isinstance(call.args[3], ast.Constant):
                yield call.args[3].value


def test_each_kind_of_a_cause_is_on_the_page():
    assert sorted(FILTER_KINDS) == sorted(set(kinds_of_causes()))


def test_each_kind_of_a_requirement_is_on_the_page():
    assert sorted(REQUEST_KINDS) == sorted(set(kinds_of_requirements()))
