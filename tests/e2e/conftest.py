# SPDX-License-Identifier: Apache-2.0
"""The control plane, and clients that talk to it over HTTP."""

import contextlib

import clients
from clients import Cloud, OpenStack
from control_plane import bootstrap
from control_plane.plane import Plane
from control_plane.settings import Settings
import pytest
from tenants import Tenants


def pytest_configure(config):
    """Ignore deprecation warnings of openstacksdk."""
    for number in (5, 6):
        warning = f'openstack.warnings.RemovedInSDK{number}0Warning'
        config.addinivalue_line('filterwarnings', f'ignore::{warning}')


def pytest_terminal_summary(terminalreporter, exitstatus):
    """Say where the logs are if there is a reason to look into them."""
    if exitstatus:
        logs = Settings.from_environment().logs
        terminalreporter.write_line(f'The logs of the services: {logs}')


@pytest.fixture(scope='session')
def plane():
    """A control plane; one that runs already is used and left running."""
    found = Plane(Settings.from_environment())
    was_running = found.is_running()
    try:
        found.up()
        yield found
    finally:
        if not was_running:
            found.down()


@pytest.fixture(autouse=True)
def _left_as_it_was(request):
    """Fail a story that leaves anything behind for those after it."""
    if 'plane' not in request.fixturenames:
        yield
        return
    before = _what_there_is(request.getfixturevalue('plane'))
    yield
    assert _what_there_is(request.getfixturevalue('plane')) == before


def _what_there_is(plane):
    """Return the names of all that stories make."""
    nova = clients.nova(plane, 'admin')
    with bootstrap.connect(plane.settings, 'admin') as sdk:
        images = {image.name for image in sdk.image.images()}
    return {
        'aggregates': {found.name for found in nova.aggregates.list()},
        'flavors': {f.name for f in nova.flavors.list(is_public=None)},
        'images': images,
        'servers': {
            found.name
            for found in nova.servers.list(search_opts={'all_tenants': True})
        },
    }


@pytest.fixture(scope='session')
def admin(plane):
    """The ``openstack`` command of the administrator."""
    return OpenStack(plane.settings, 'admin')


@pytest.fixture(scope='session')
def demo(plane):
    """The ``openstack`` command of a tenant."""
    return OpenStack(plane.settings, 'demo')


@pytest.fixture(scope='session')
def stranger(plane):
    """The ``openstack`` command of a tenant of another project."""
    return OpenStack(plane.settings, 'alt_demo')


@pytest.fixture
def cloud(plane):
    """What a story makes; it is deleted when the story is over."""
    found = Cloud(plane)
    yield found
    found.clean_up()


@pytest.fixture
def tenants(cloud, tmp_path):
    """Users with an ``openstack`` client; deletes their objects at the end."""
    found = Tenants(cloud, tmp_path)
    yield found
    found.clean_up()


@pytest.fixture
def lock(admin, cloud):
    """Lock an aggregate; it is unlocked when the story is over."""
    with contextlib.ExitStack() as unlocking:

        def lock_one(aggregate, trait):
            words = (aggregate.name, '--trait', trait)
            admin('isolation', 'lock', 'create', *words)
            unlocking.callback(admin, 'isolation', 'lock', 'delete', *words)

        yield lock_one
