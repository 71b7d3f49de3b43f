# SPDX-License-Identifier: Apache-2.0
"""A real Placement that the tests of a module share."""

from collections.abc import Callable, Iterator
import sqlite3
from typing import Any

from keystoneauth1 import adapter
import placement_backup
import pytest

from isolate_aggregates.tools.embedded import EmbeddedPlacement


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
