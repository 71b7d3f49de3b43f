# SPDX-License-Identifier: Apache-2.0
"""A real Placement that the tests of a module share."""

from collections.abc import Callable, Iterator
import sqlite3
from typing import Any

from keystoneauth1 import adapter
import placement_backup
import pytest

from isolate_aggregates.tools.cli import periodic
from isolate_aggregates.tools.embedded import EmbeddedPlacement


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the rounds of a watch in this process follow at once."""
    wait = periodic.EndSignals.wait

    def shorter(
        self: periodic.EndSignals, seconds: float | None = None
    ) -> Any:
        return wait(self, None if seconds is None else min(seconds, 0.01))

    monkeypatch.setattr(periodic.EndSignals, 'wait', shorter)


@pytest.fixture(scope='module')
def _shared() -> Iterator[tuple[adapter.Adapter, sqlite3.Connection]]:
    placement = EmbeddedPlacement()
    yield placement.open(), placement_backup.keep()
    placement.close()


@pytest.fixture
def embedded(
    _shared: tuple[adapter.Adapter, sqlite3.Connection],
) -> adapter.Adapter:
    """The adapter of a real Placement that is empty."""
    client, empty = _shared
    placement_backup.put_back(empty)
    return client


@pytest.fixture
def cloud(
    request: pytest.FixtureRequest, example: Callable[[str], Any]
) -> Any:
    """The example cloud that the module of a test names as ``EXAMPLE``."""
    return example(request.module.EXAMPLE)
