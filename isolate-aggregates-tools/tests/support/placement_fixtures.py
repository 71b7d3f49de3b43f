# SPDX-License-Identifier: Apache-2.0
"""A real Placement that the tests of a module share."""

import placement_backup
import pytest

from isolate_aggregates_tools.cli import periodic
from isolate_aggregates_tools.embedded import EmbeddedPlacement


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    """Let the rounds of a watch in this process follow at once."""
    wait = periodic.EndSignals.wait

    def shorter(self, seconds=None):
        return wait(self, None if seconds is None else min(seconds, 0.01))

    monkeypatch.setattr(periodic.EndSignals, 'wait', shorter)


@pytest.fixture(scope='module')
def shared_placement():
    placement = EmbeddedPlacement()
    yield placement.open(), placement_backup.keep()
    placement.close()


@pytest.fixture
def embedded(shared_placement):
    """The adapter of a real Placement that is empty."""
    client, empty = shared_placement
    placement_backup.put_back(empty)
    return client


@pytest.fixture
def cloud(request, example):
    """The example cloud that the module of a test names as ``EXAMPLE``."""
    return example(request.module.EXAMPLE)
