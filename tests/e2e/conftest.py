# SPDX-License-Identifier: Apache-2.0
"""The control plane, and clients that talk to it over HTTP."""

from collections.abc import Iterator
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from clients import Cloud, OpenStack  # noqa: E402
from control_plane.plane import Plane  # noqa: E402
from control_plane.settings import Settings  # noqa: E402


@pytest.fixture(scope='session')
def plane(request: pytest.FixtureRequest) -> Iterator[Plane]:
    """A control plane; one that runs already is used and left running."""
    found = Plane(Settings.from_environment())
    was_running = found.is_running()
    found.up()
    yield found
    if request.session.testsfailed:
        print(f'\nLogs are in {found.settings.logs}')
    if not was_running:
        found.down()


@pytest.fixture(scope='session')
def admin(plane: Plane) -> OpenStack:
    """The ``openstack`` command of the administrator."""
    return OpenStack(plane.settings, 'admin')


@pytest.fixture(scope='session')
def demo(plane: Plane) -> OpenStack:
    """The ``openstack`` command of a tenant."""
    return OpenStack(plane.settings, 'demo')


@pytest.fixture
def cloud(plane: Plane) -> Iterator[Cloud]:
    """What a story makes; it is deleted when the story is over."""
    found = Cloud(plane)
    yield found
    found.clean_up()
