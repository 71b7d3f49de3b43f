# SPDX-License-Identifier: Apache-2.0
"""Reservations with Placement over HTTP, on the databases of clouds.

The races and histories are those of ``tests/functional/reservations``, where
Placement is in the process and serves one request at a time. Here servers also
boot at the same time, with and without the check of nova-scheduler. All of it
takes minutes; with ``THOROUGH=1`` hours.
"""

from concurrent import futures
import contextlib
import random
import uuid

from nova import context as nova_context
from nova.scheduler.client import report
import placement_service
import pytest
from reservation_world import World
from reservation_world import uuid as uuid_of
import test_reservation_interleaving as interleaving
from test_reservation_interleaving import (  # noqa: F401
    START,
    test_no_history_oversells_or_loses_a_reservation,
)
from test_reservation_races import (  # noqa: F401
    _without_pauses,
    test_no_slot_is_sold_twice,
)
import test_reservation_reconcilers as reconcilers
from thorough import THOROUGH
import uninstalling

from isolate_aggregates import reservations
from isolate_aggregates.nova import claims
from isolate_aggregates.reservations import names

pytestmark = pytest.mark.slow

TRIES = 10
BOOTS = 12
# What an operator does meanwhile. A move leaves servers where they are.
COMMANDS = (
    *(interleaving.more, interleaving.longer, interleaving.shorter),
    *(interleaving.too_many, interleaving.create, interleaving.create_later),
    *(interleaving.reconcile_all, interleaving.repair, interleaving.end),
)


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


class Scheduler:
    """A nova-scheduler that claims slots; each thread has its own."""

    def __init__(self, placement, world, reservation):
        self._client = report.SchedulerReportClient(placement.adapter())
        self._world = world
        self._reservation = reservation

    def boot(self, hosts):
        """Boot a server; return whether a host had a slot for it."""
        server = str(uuid.uuid4())
        servers_of_nova = self._world.nova.servers
        servers_of_nova[server] = self._reservation
        is_booted = any(self._claim(server, host) for host in hosts)
        if not is_booted:
            servers_of_nova.pop(server, None)
        elif server not in servers_of_nova:
            # It was deleted meanwhile, and Nova gives up its claim.
            self._client.delete_allocation_for_instance(
                nova_context.get_admin_context(), server, force=True
            )
        return is_booted

    def _claim(self, server, host):
        slot = {names.resource_class(self._reservation): 1}
        allocations = {
            uuid_of(1, host): {'resources': {'VCPU': 1}},
            self._world.child(host): {'resources': slot},
        }
        return bool(
            self._client.claim_resources(
                nova_context.get_admin_context(),
                server,
                {'allocations': allocations},
                'project',
                'user',
                '1.36',
            )
        )


@pytest.fixture
def _checked():
    claims.install()
    yield
    uninstalling.uninstall()


def boot_during_commands(placement, world, seed):
    """Boot servers of two reservations while commands run.

    :returns: How many slots were sold too much, or 0.
    """
    chance = random.Random(seed)
    interleaving.begin(world)
    reservations.reconcile_all(world.store, START)
    commands = chance.sample(COMMANDS, 2)
    boots = [
        (name, chance.sample(['h1', 'h2'], 2))
        for name in (interleaving.X, interleaving.Y)
        for _ in range(BOOTS)
    ]
    with futures.ThreadPoolExecutor(len(boots) + len(commands)) as threads:
        told = [
            threads.submit(interleaving.attempt, command, world.new_store())
            for command in commands
        ]
        booted = [
            threads.submit(Scheduler(placement, world, name).boot, hosts)
            for name, hosts in boots
        ]
        for future in (*told, *booted):
            future.result()
    statuses = reservations.list_reservations(world.store, START)
    return sum(
        on_host.oversold
        for status in statuses
        for on_host in status.hosts.values()
    )


@pytest.mark.usefixtures('_checked')
@pytest.mark.parametrize('seed', range(1000 if THOROUGH else 4))
def test_three_reconcilers_at_once_lose_and_oversell_nothing(
    placement, world, seed
):
    interleaving.begin(world)
    reservations.reconcile_all(world.store, START)

    def boot(reservation, hosts):
        return Scheduler(placement, world, reservation).boot(hosts)

    rush = reconcilers.Rush(world, seed, boot)
    rush.run()
    reconcilers.check(world, rush)


@pytest.mark.usefixtures('_checked')
def test_boots_during_commands_oversell_nothing(placement, world):
    kept = world.keep()
    for seed in range(TRIES):
        world.put_back(kept)
        assert boot_during_commands(placement, world, seed) == 0, seed
        interleaving.check(world, {}, {'is_gone': True})


def test_boots_during_commands_oversell_without_the_check(placement, world):
    """If this fails, Placement has been mended."""
    kept = world.keep()
    oversold = []
    for seed in range(TRIES):
        world.put_back(kept)
        oversold.append(boot_during_commands(placement, world, seed))
    assert any(oversold)
