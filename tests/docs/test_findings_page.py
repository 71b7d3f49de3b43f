# SPDX-License-Identifier: Apache-2.0
"""The page about findings has a section for each kind, and for no other."""

import ast
import re

from pages import ROOT

_KIND = re.compile('[a-z]+(-[a-z]+)+')
_PAGE = ROOT / 'doc/source/admin/findings.rst'


def kinds_in_code():
    """Yield the kinds that the rules of the audit give to findings."""
    tools = ROOT / 'isolate-aggregates-tools/isolate_aggregates_tools'
    for path in (
        *(tools / 'audit').glob('*.py'),
        *(tools / 'diagnosis/spelling').glob('*.py'),
    ):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and len(node.args) > 4:
                # Kind, severity, and description of the rule.
                value = node.args[0]
            elif isinstance(node, ast.Assign) and _name_kind(*node.targets):
                value = node.value
            elif isinstance(node, ast.For) and _name_kind(node.target):
                value = node.iter
            else:
                continue
            for found in ast.walk(value):
                if isinstance(found, ast.Constant) and _KIND.fullmatch(
                    str(found.value)
                ):
                    yield found.value


def _name_kind(*targets):
    return any(
        isinstance(name, ast.Name) and name.id == 'kind'
        for target in targets
        for name in ast.walk(target)
    )


def test_each_kind_has_a_section_with_a_label():
    text = _PAGE.read_text()
    sections = re.findall(r'\n([a-z-]+)\n-+\n\nSeverity: ', text)
    labels = re.findall(r'\n\.\. _finding-([a-z-]+):\n', text)
    assert len(sections) == len(set(sections))
    assert sections == labels
    assert set(sections) == set(kinds_in_code())
