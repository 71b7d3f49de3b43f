# SPDX-License-Identifier: Apache-2.0
"""Reservations with Placement over HTTP, on the databases of clouds.

The races and histories are those of the functional tests, where Placement is
in the process and serves one request at a time. Here all go on at
the same time, and servers boot with the check of nova-scheduler. That
Placement alone oversells is in ``test_claims.py``. All of it takes minutes;
with ``THOROUGH=1`` hours.
"""

import contextlib
import time

from nova import context as nova_context
from nova.scheduler.client import report
import placement_service
import pytest
from reservation_world import World
import test_reservation_histories as histories
from test_reservation_races import (  # noqa: F401
    _without_pauses,
    test_no_slot_is_sold_twice,
)
from thorough import THOROUGH
import uninstalling

from isolate_aggregates.nova import claims

pytestmark = pytest.mark.slow

USERS = 12
PAUSE = 0.01  # seconds


@pytest.fixture(scope='module')
def scenes(placement):
    """What keeps and restores its database, which is empty."""
    with contextlib.closing(
        placement_service.Scenes(placement.database)
    ) as found:
        yield found


@pytest.fixture(scope='module')
def empty(scenes):
    """The rows of an empty Placement."""
    return scenes.keep()


@pytest.fixture
def world(placement, scenes, empty):
    """Nova and Placement, without hosts."""
    scenes.put_back(empty)
    return World(placement.adapter(), scenes)


class AtOnce:
    """Lets all go on at the same time."""

    def __init__(self, actors, chance):
        pass

    def take(self, actor):
        """Go on."""

    leave = take

    def idle(self, actor):
        """Let others make a call."""
        time.sleep(PAUSE)


@pytest.fixture
def _checked():
    claims.install()
    yield
    uninstalling.uninstall()


@pytest.mark.usefixtures('_checked')
@pytest.mark.parametrize('seed', range(1000 if THOROUGH else 10))
def test_no_history_oversells_or_loses_a_reservation(placement, world, seed):
    def claim(server, allocations):
        """Claim for a server as nova-scheduler does, which has the check."""
        nova = report.SchedulerReportClient(placement.adapter())
        context = nova_context.get_admin_context()
        return nova.claim_resources(
            *(context, server, {'allocations': allocations}),
            *('project', 'user', '1.36'),
        )

    history = histories.History(world, seed, claim, AtOnce, USERS)
    others = histories.is_of_others(world)
    history.run()
    histories.check(history, others)
