# SPDX-License-Identifier: Apache-2.0
"""A cloud for reservations."""

from keystoneauth1 import adapter
from placement_fixtures import *  # noqa: F403
import pytest
from reservation_world import World
from sentences_made import made  # noqa: F401

from isolate_aggregates_tools.cli import app


@pytest.fixture
def world(embedded: adapter.Adapter) -> World:
    """Nova and Placement, without hosts."""
    return World(embedded)


@pytest.fixture
def one_host(world: World) -> None:
    """Add a host with 10 VCPUs."""
    world.play_once('one host', lambda: world.add_host('h1'))


@pytest.fixture
def two_hosts(world: World) -> None:
    """Add two hosts with 10 VCPUs each."""

    def play() -> None:
        world.add_host('h1')
        world.add_host('h2')

    world.play_once('two hosts', play)


@pytest.fixture
def operated(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the program find the cloud."""
    monkeypatch.setattr(
        app.IsolateAggregatesApp, 'connect', lambda _: world.connection()
    )
