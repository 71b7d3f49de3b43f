# SPDX-License-Identifier: Apache-2.0
"""The page about findings has a section for each kind, and for no other."""

import ast
import re

from pages import ROOT

_KIND = re.compile('[a-z]+(-[a-z]+)+')
_PAGE = ROOT / 'doc/source/admin/findings.rst'


def kinds_in_code():
    """Yield the kinds that the rules of the audit give to findings."""
    for path in (ROOT / 'isolate_aggregates/tools/audit').glob('*.py'):
        for node in ast.walk(ast.parse(path.read_text())):
            # Kind, severity, and description of the rule.
            is_finding = isinstance(node, ast.Call) and len(node.args) > 4
            is_kind = isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == 'kind'
                for target in node.targets
            )
            if not (is_finding or is_kind):
                continue
            for found in ast.walk(node.args[0] if is_finding else node.value):
                if isinstance(found, ast.Constant) and _KIND.fullmatch(
                    str(found.value)
                ):
                    yield found.value


def test_each_kind_has_a_section_with_a_label():
    text = _PAGE.read_text()
    sections = re.findall(r'\n([a-z-]+)\n-+\n\nSeverity: ', text)
    labels = re.findall(r'\n\.\. _finding-([a-z-]+):\n', text)
    assert len(sections) == len(set(sections))
    assert sections == labels
    assert set(sections) == set(kinds_in_code())
