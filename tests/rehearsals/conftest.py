# SPDX-License-Identifier: Apache-2.0
"""Rehearsals of real tools, which are in an environment of their own."""

import os

from operator_tools import CLOUD, PROGRAMS
import pytest

from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.rehearse.errors import NotIsolated
from isolate_aggregates_tools.rehearse.rehearsal import Rehearsal
from isolate_aggregates_tools.rehearse.tool import Launcher


@pytest.fixture
def operator(tmp_path, monkeypatch):
    """An empty folder to work in, with the tools of operators.

    What the system or the missing environment do not allow is left out.
    """
    if not (PROGRAMS / 'openstack').exists():
        pytest.skip('the tools of operators are not installed')
    try:
        Launcher().close()
    except NotIsolated:
        pytest.skip('the system does not allow user namespaces')
    folder = tmp_path / 'work'
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in os.environ:
        if name.startswith(('OS_', 'ANSIBLE_')):
            monkeypatch.delenv(name)
    monkeypatch.setenv('PATH', f'{PROGRAMS}:{os.environ["PATH"]}')
    monkeypatch.setenv('HOME', str(tmp_path))
    # Programs find the cloud in their variables, too.
    monkeypatch.setenv('OS_CLOUD', 'prod')
    # The client takes the oldest one by default.
    monkeypatch.setenv('OS_PLACEMENT_API_VERSION', '1.29')
    return folder


@pytest.fixture
def rehearsal(operator):
    """A rehearsal of the cloud."""
    with Rehearsal(cloud_file.load(CLOUD), ['prod']) as found:
        yield found
