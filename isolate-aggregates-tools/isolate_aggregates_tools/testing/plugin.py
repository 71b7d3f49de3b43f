# SPDX-License-Identifier: Apache-2.0
"""The mocked Placement as a pytest fixture.

Enable it in the top-level ``conftest.py`` or in a test module::

    pytest_plugins = ['isolate_aggregates_tools.testing.plugin']
"""

from collections.abc import Callable, Iterable, Iterator
import contextlib
from typing import Any

import pytest

from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.testing import placement, service


@pytest.fixture
def mocked_placement(
    requests_mock: Any,
) -> Iterator[Callable[..., placement.PlacementFixture]]:
    """Mock Placement for a snapshot: ``mocked_placement(snapshot)``.

    Mock other services with the fixture ``requests_mock`` of requests-mock.
    """
    with contextlib.ExitStack() as stack:

        def start(
            snapshot: Snapshot,
            *,
            max_microversion: str = service.NEWEST,
            url: str = placement.URL,
            traits: Iterable[str] = (),
            resource_classes: Iterable[str] = (),
        ) -> placement.PlacementFixture:
            return stack.enter_context(
                placement.PlacementFixture(
                    snapshot,
                    max_microversion=max_microversion,
                    url=url,
                    http=requests_mock,
                    traits=traits,
                    resource_classes=resource_classes,
                )
            )

        yield start
