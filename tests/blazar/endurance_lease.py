# SPDX-License-Identifier: Apache-2.0
"""A blazar-manager with a lease that is created, starts and ends repeatedly.

For ``benchmarks/endurance.py``, without pytest.
"""

import contextlib
import pathlib
import subprocess
import sys
import tempfile
import time

from blazar import config as blazar_config
from blazar.db.sqlalchemy import api as db_models
from blazar.db.sqlalchemy import facade_wrapper
from blazar.manager import service
from blazar.notification import notifier
from blazar.plugins.oshosts import host_plugin  # noqa: F401
import live

HERE = pathlib.Path(__file__).parent
PLUGINS = ('physical.host.plugin', 'virtual.instance.placement')
# The rounds of a lease.
ROUNDS = 20


class Lease:
    """One lease after the other.

    :param blazar: The manager.
    """

    def __init__(self, blazar):
        self.blazar = blazar
        self._lease = None

    def step(self, number):
        """Do what users do before a round."""
        number %= ROUNDS
        if number == 0:
            self._lease, _ = self.blazar.reserve(amount=2, start=1, end=10)
        elif number == ROUNDS // 4:
            self.blazar.pass_time(1)
        elif number == ROUNDS // 2:
            self.blazar.delete(self._lease)


@contextlib.contextmanager
def manager():
    """Start Nova, Placement and Keystone beside it, and a blazar-manager."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with _cloud(folder) as endpoint:
            _configure(endpoint, folder)
            notifier.init()
            cloud = live.Cloud(endpoint)
            cloud.create_freepool()
            blazar = live.Blazar(service.ManagerService(), cloud)
            for host in live.HOSTS:
                blazar.add_host(host)
            yield Lease(blazar)


@contextlib.contextmanager
def _cloud(folder):
    port = folder / 'port'
    with (folder / 'log').open('wb') as log:
        process = subprocess.Popen(
            [sys.executable, str(HERE / 'cloud_process.py'), str(port)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
        )
        while not port.exists():
            assert process.poll() is None, (folder / 'log').read_text()
            time.sleep(0.1)
        try:
            yield f'127.0.0.1:{port.read_text()}'
        finally:
            process.stdin.close()
            process.wait()


def _configure(endpoint, folder):
    host, _, port = endpoint.partition(':')
    path = folder / 'blazar.conf'
    path.write_text(
        f"""
[DEFAULT]
os_auth_host = {host}
os_auth_port = {port}
os_auth_prefix = identity
os_region_name = RegionOne
transport_url = fake:/

[database]
connection = sqlite:///{folder}/blazar.sqlite

[manager]
minutes_before_end_lease = 0
plugins = {','.join(PLUGINS)}
"""
    )
    conf = blazar_config.CONF
    conf([], project='blazar', default_config_files=[str(path)])
    facade_wrapper._clear_engine()
    db_models.setup_db()
