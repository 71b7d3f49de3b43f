# SPDX-License-Identifier: Apache-2.0
"""A cloud for sync, lock and unlock."""

from keystoneauth1 import adapter
from oslo_config import cfg
import pytest
from sync_world import World


@pytest.fixture
def world(embedded: adapter.Adapter, conf: cfg.ConfigOpts) -> World:
    """Nova and Placement, without hosts."""
    return World(embedded, conf)
