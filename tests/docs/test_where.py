# SPDX-License-Identifier: Apache-2.0
"""The page "Where is what" names each existing module once."""

import re
import runpy

from pages import ROOT

WRITTEN = runpy.run_path(str(ROOT / 'doc' / 'where.py'))['written']()
PACKAGE = ROOT / 'isolate_aggregates'


def test_files_of_commands_and_plugins_exist():
    paths = re.findall(
        r'^\* ``[^`]+``: ``\w+`` in ``([^`]+)``$', WRITTEN, re.M
    )
    assert {'tools/commands/audit.py', 'filters/isolate_tenants.py'} <= set(
        paths
    )
    assert [name for name in paths if not (PACKAGE / name).is_file()] == []


def test_each_listed_module_exists_with_its_description():
    modules = re.findall(r'^  \* ``(\w+\.py)``: (.*)$', WRITTEN, re.M)
    there = [
        path.name
        for path in PACKAGE.rglob('*.py')
        if path.name != '__init__.py'
    ]
    assert sorted(name for name, _ in modules) == sorted(there)
    assert [name for name, said in modules if not said.endswith('.')] == []
