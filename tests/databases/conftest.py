# SPDX-License-Identifier: Apache-2.0
"""Nova's API database on each supported kind of server.

Nova's own migrations create it, and Nova's own objects write to it. If the
programs of a server are missing, its tests are skipped with a reason.
"""

import pathlib
import tempfile

import any_machine  # noqa: F401
import database_servers
from nova import objects, rpc
import nova.conf
from nova_database import KINDS, NovaDatabase
import placement_service
import pytest


@pytest.fixture(scope='session', autouse=True)
def _nova(tmp_path_factory):
    """Set Nova up as for one of its services; its objects notify others."""
    path = tmp_path_factory.mktemp('nova') / 'nova.conf'
    path.write_text('[DEFAULT]\ntransport_url = fake:/\n', 'utf-8')
    nova.conf.CONF([], default_config_files=[str(path)])
    rpc.init(nova.conf.CONF)
    objects.register_all()


@pytest.fixture(scope='session')
def folder():
    """A folder that is open to other users, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture(scope='session')
def made(folder):
    """The available databases by kind; each is created once."""
    found = {}
    yield found
    for database in found.values():
        database.close()


@pytest.fixture
def database(request, folder, made):
    """Nova's API database of one kind, without any aggregates."""
    kind = request.param
    server = KINDS[kind]
    if server is not None and not server.is_installed():
        pytest.skip(
            f'{server.NAME} is not installed; "apt-get install '
            f'{server.PACKAGE}"'
        )
    if kind not in made:
        made[kind] = NovaDatabase(kind, folder / kind, server)
    with made[kind].in_use() as found:
        yield found


@pytest.fixture(scope='session', params=list(database_servers.KINDS))
def server(request, folder):
    """A running database server of each kind."""
    kind = database_servers.KINDS[request.param]
    if not kind.is_installed():
        pytest.skip(f'{kind.NAME} is not installed')
    found = kind(
        folder / f'placement-{request.param}', database_servers.free_port()
    )
    found.start()
    try:
        yield found
    finally:
        found.stop()


@pytest.fixture(scope='module')
def placement(server, tmp_path_factory):
    """A Placement with its default configuration."""
    folder = tmp_path_factory.mktemp('placement')
    with placement_service.running(server, folder) as found:
        yield found


def pytest_generate_tests(metafunc):
    """Run what wants a database with each, or with those that it marks."""
    if 'database' in metafunc.fixturenames:
        marked = metafunc.definition.get_closest_marker('on')
        kinds = marked.args if marked else tuple(KINDS)
        metafunc.parametrize('database', kinds, indirect=True)


def pytest_configure(config):
    """Describe the marker."""
    config.addinivalue_line('markers', 'on(*kinds): databases to run with')
