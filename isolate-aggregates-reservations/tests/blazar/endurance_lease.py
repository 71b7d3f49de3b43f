# SPDX-License-Identifier: Apache-2.0
"""A blazar-manager with a lease that is created, starts and ends repeatedly.

For ``tools/benchmarks/endurance.py``, without pytest.
"""

import contextlib
import pathlib
import tempfile

from blazar.db.sqlalchemy import api as db_models
from blazar.db.sqlalchemy import facade_wrapper
from blazar.manager import service
from blazar.notification import notifier
from blazar.plugins.oshosts import host_plugin  # noqa: F401
import live

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
        with live.services(folder / 'log') as endpoint:
            conf = live.configure(endpoint, folder)
            conf.set_override('plugins', list(PLUGINS), 'manager')
            conf.set_override('enable_polling_monitor', False, 'physical:host')
            facade_wrapper._clear_engine()
            db_models.setup_db()
            notifier.init()
            cloud = live.Cloud(endpoint)
            cloud.create_freepool()
            blazar = live.Blazar(service.ManagerService(), cloud)
            for host in live.HOSTS:
                blazar.add_host(host)
            yield Lease(blazar)
