# SPDX-License-Identifier: Apache-2.0
"""A cloud for sync, lock and unlock."""

import pytest
from sync_world import World


@pytest.fixture
def world(embedded, conf):
    """Nova and Placement, without hosts."""
    return World(embedded, conf)
