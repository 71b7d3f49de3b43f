# SPDX-License-Identifier: Apache-2.0
"""Keeps older releases of Nova from replacing threads in these tests.

Servers that the tests start in threads of this process would never answer.
"""

from importlib import metadata
import logging
import os

os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')

from cloud_fixtures import *  # noqa: F403
from nova import monkey_patch

if metadata.version('nova').startswith('32.'):
    # It would only have native threads if nothing had used oslo.service.
    monkey_patch.patch = lambda: None

from nova.db.api import api as api_db
from oslo_db.sqlalchemy import enginefacade
import pytest

from isolate_aggregates.record import LOGGER


@pytest.fixture(autouse=True)
def _own_database(request):
    """Let each test configure Nova's API database as if nobody had before.

    Those that have an engine share that of their module.
    """
    if 'engine' in request.fixturenames:
        yield
        return
    restore = api_db.context_manager.patch_factory(
        enginefacade.transaction_context()
    )
    yield
    restore()


@pytest.fixture
def lines():
    """What the logger of the records logs."""
    found = []

    class Keeping(logging.Handler):
        def emit(self, record):
            found.append(record.getMessage())

    log = logging.getLogger(LOGGER)
    handler, level = Keeping(), log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield found
    log.removeHandler(handler)
    log.setLevel(level)
