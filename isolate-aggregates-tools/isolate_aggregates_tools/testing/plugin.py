# SPDX-License-Identifier: Apache-2.0
"""The mocked Placement and rehearsals as pytest fixtures.

Enable them in the top-level ``conftest.py`` or in a test module::

    pytest_plugins = ['isolate_aggregates_tools.testing.plugin']
"""

from collections.abc import Callable, Iterable, Iterator
import contextlib
import os
from typing import Any

import pytest

from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.testing import placement, service
from isolate_aggregates_tools.testing.rehearsal import Rehearsal


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


@pytest.fixture
def rehearsal() -> Iterator[Callable[..., Rehearsal]]:
    """Let tools change a copy of a cloud: ``rehearsal(cloud)``.

    The arguments are those of
    :class:`~isolate_aggregates_tools.testing.rehearsal.Rehearsal`.
    """
    with contextlib.ExitStack() as stack:

        def start(
            cloud: Snapshot | str | os.PathLike[str],
            *,
            clouds: Iterable[str] = (),
            any_network: bool = False,
        ) -> Rehearsal:
            return stack.enter_context(
                Rehearsal(cloud, clouds=clouds, any_network=any_network)
            )

        yield start
