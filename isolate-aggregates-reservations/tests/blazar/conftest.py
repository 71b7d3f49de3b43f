# SPDX-License-Identifier: Apache-2.0
"""Runs a real blazar-manager with a real Nova and a real Placement."""

import logging
import types

from agreement import agreed, answer  # noqa: F401
from blazar.db.sqlalchemy import api as db_models
from blazar.db.sqlalchemy import facade_wrapper
from blazar.notification import notifier
from blazar.plugins.oshosts import host_plugin
import live
from oslo_utils import timeutils
import pytest

from isolate_aggregates.rest import client
from isolate_aggregates_reservations.blazar import settings
from isolate_aggregates_tools.cli import app

PLUGINS = (
    'physical.host.plugin',
    'virtual.instance.placement',
    'flavor.instance.placement',
)


@pytest.fixture(scope='session')
def log(tmp_path_factory):
    """Return the log of Nova."""
    return tmp_path_factory.mktemp('cloud') / 'nova.log'


@pytest.fixture(scope='session')
def endpoint(log):
    """Start Nova, Placement and Keystone in a separate process."""
    with live.services(log) as endpoint:
        yield endpoint


@pytest.fixture
def conf(endpoint, tmp_path):
    """Return the configuration of Blazar."""
    return live.configure(endpoint, tmp_path)


@pytest.fixture
def database(conf):
    """Set an empty database up."""
    facade_wrapper._clear_engine()
    db_models.setup_db()
    yield
    db_models.drop_db()
    facade_wrapper._clear_engine()


@pytest.fixture
def make_manager(conf, database, monkeypatch):
    """Return a function that starts a manager with plugins."""
    # Importing this registers options of the manager.
    from blazar.manager import service as manager_service

    monkeypatch.setattr(client, 'RETRIES', 0)
    # Generous timeouts: a busy machine must not look like a failed service.
    monkeypatch.setattr(settings, 'TIMEOUT', live.SECONDS)
    notifier.init()

    def make(plugins=PLUGINS, server_deletion_wait=0):
        conf.set_override('plugins', list(plugins), 'manager')
        # There is one per process, and it holds the plugins of all managers.
        monkeypatch.setattr(
            host_plugin.PhysicalHostMonitorPlugin, '_instance', None
        )
        manager = manager_service.ManagerService()
        if 'virtual.instance.placement' in plugins:
            conf.set_override(
                'server_deletion_wait',
                server_deletion_wait,
                'virtual:instance',
            )
        return manager

    return make


@pytest.fixture
def cloud(endpoint, log):
    """Return the cloud; no reservation may leave anything in it."""
    found = live.Cloud(endpoint)
    found.create_freepool()
    before = log.stat().st_size
    yield found
    # Shown if the test fails.
    print(log.read_text()[before:])
    timeutils.clear_time_override()
    remnants = found.left()
    found.tidy()
    assert remnants == []


@pytest.fixture
def start(make_manager, cloud):
    """Return a function that starts a manager with the hosts of the cloud."""

    def start(**settings):
        found = live.Blazar(make_manager(**settings), cloud)
        for host in live.HOSTS:
            found.add_host(host)
        return found

    return start


@pytest.fixture
def blazar(start):
    """Return a manager with the plugins under test."""
    return start()


@pytest.fixture
def program(capsys, monkeypatch, tmp_path):
    """Return a function that runs a command about reservations."""
    monkeypatch.setenv('HOME', str(tmp_path))
    root = logging.getLogger()

    def run_it(*arguments, asks=False):
        handlers = list(root.handlers)
        words = ('reservation', *arguments)
        try:
            code = app.main(words if asks else agreed(words))
        except SystemExit as exc:
            code = int(exc.code or 0)
        # Each run adds its own handler.
        root.handlers[:] = handlers
        written = capsys.readouterr()
        return types.SimpleNamespace(
            code=code, out=written.out, err=written.err
        )

    return run_it
