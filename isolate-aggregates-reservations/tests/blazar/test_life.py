# SPDX-License-Identifier: Apache-2.0
"""The life of leases in a real blazar-manager, Nova and Placement."""

from concurrent import futures
import threading

from blazar import context
from blazar.manager import exceptions as manager_exceptions
from live import OWNER, STRANGER
import pytest

from isolate_aggregates_reservations.blazar import planning
from isolate_aggregates_reservations.blazar.periodic import PeriodicCompletion


@pytest.mark.smoke
def test_a_lease_from_its_creation_to_its_end(blazar, cloud):
    lease, reservation = blazar.reserve(amount=3, vcpus=5, start=10, end=60)

    assert blazar.status(lease) == 'PENDING'
    assert cloud.slots(reservation) == {}
    assert cloud.is_refused(OWNER, reservation)

    blazar.pass_time(10)

    assert blazar.status(lease) == 'ACTIVE'
    assert cloud.slots(reservation) == {'host1': (2, 0), 'host2': (1, 0)}
    assert cloud.aggregates() == []
    assert cloud.groups() == []
    assert cloud.is_refused(STRANGER, reservation)
    servers = [cloud.boot(OWNER, reservation) for _ in range(3)]
    hosts = sorted(s['OS-EXT-SRV-ATTR:host'] for s in servers)
    assert hosts == ['host1', 'host1', 'host2']
    cloud.boot(OWNER, reservation, 'ERROR')

    blazar.pass_time(50)
    blazar.complete_all()

    assert blazar.status(lease) == 'TERMINATED'
    assert cloud.left() == []
    assert blazar.slots(reservation) == {}


def test_a_start_can_be_repeated(blazar, cloud):
    lease, reservation = blazar.reserve(amount=2, affinity=True)
    blazar.pass_time()
    server = cloud.boot(OWNER, reservation)

    row = blazar.reservation(reservation)['resource_id']
    with context.BlazarContext():
        blazar.plugin.on_start(row)

    assert cloud.slots(reservation) == {'host1': (2, 0)}
    assert list(cloud.allocations(server['id'])) == ['host1', 'blazar_host1']
    blazar.end(lease)


@pytest.mark.parametrize(
    ('affinity', 'numbers'),
    [
        pytest.param(None, [1, 2], id='anywhere'),
        pytest.param(True, [3], id='on one host'),
        pytest.param(False, [1, 1, 1], id='each on its own'),
    ],
)
def test_affinity_is_enforced_by_the_slots_of_each_host(
    blazar, cloud, affinity, numbers
):
    vcpus = 3 if affinity else 5
    lease, reservation = blazar.reserve(3, vcpus, affinity)
    blazar.pass_time()

    servers = [cloud.boot(OWNER, reservation) for _ in range(3)]

    slots = cloud.slots(reservation)
    assert sorted(total for total, _ in slots.values()) == numbers
    hosts = [server['OS-EXT-SRV-ATTR:host'] for server in servers]
    assert sorted(map(hosts.count, set(hosts))) == numbers
    assert cloud.groups() == []
    blazar.end(lease)


@pytest.mark.parametrize(
    ('amount', 'vcpus', 'affinity'),
    [
        pytest.param(7, 5, None, id='more than the hosts have together'),
        pytest.param(3, 5, True, id='more than one host has'),
        pytest.param(4, 1, False, id='more than there are hosts'),
    ],
)
def test_a_lease_that_does_not_fit_is_refused(
    blazar, cloud, amount, vcpus, affinity
):
    with pytest.raises(manager_exceptions.NotEnoughHostsAvailable):
        blazar.reserve(amount, vcpus, affinity)
    assert cloud.left() == []


def test_each_slot_counts(blazar, cloud):
    """Blazar's own plugin counts a reservation once for each host."""
    first, _ = blazar.reserve(amount=4, vcpus=5)
    with pytest.raises(manager_exceptions.NotEnoughHostsAvailable):
        blazar.reserve(amount=3, vcpus=5)
    second, _ = blazar.reserve(amount=2, vcpus=5)
    with pytest.raises(manager_exceptions.NotEnoughHostsAvailable):
        blazar.reserve(amount=1)
    blazar.end(first)
    blazar.end(second)


def test_hosts_with_reservations_come_first(blazar):
    first, one = blazar.reserve(amount=1, vcpus=5)
    second, other = blazar.reserve(amount=2, vcpus=5)
    [host] = blazar.slots(one)
    found = blazar.slots(other)
    assert found.pop(host) == 1
    assert list(found.values()) == [1]
    blazar.end(first)
    blazar.end(second)


class ObservedLock:
    """A lock that counts the threads that have come to it."""

    def __init__(self, lock):
        self._lock = lock
        self.arrivals = threading.Semaphore(0)

    def __enter__(self):
        self.arrivals.release()
        return self._lock.__enter__()

    def __exit__(self, *details):
        return self._lock.__exit__(*details)


def test_concurrent_leases_do_not_get_the_same_slots(
    blazar, cloud, monkeypatch
):
    choose = blazar.plugin.pickup_hosts
    lock = ObservedLock(planning.CHOOSING)

    def choose_while_the_other_waits(reservation, values):
        chosen = choose(reservation, values)
        if reservation and not waits:
            waits.extend(lock.arrivals.acquire(timeout=120) for _ in range(2))
        return chosen

    waits = []
    monkeypatch.setattr(planning, 'CHOOSING', lock)
    monkeypatch.setattr(
        blazar.plugin, 'pickup_hosts', choose_while_the_other_waits
    )

    def reserve():
        try:
            return blazar.reserve(amount=4, vcpus=5)[0]
        except manager_exceptions.NotEnoughHostsAvailable:
            return None

    with futures.ThreadPoolExecutor(2) as pool:
        outcomes = [pool.submit(reserve) for _ in range(2)]

    [lease] = filter(None, (outcome.result() for outcome in outcomes))
    assert waits == [True, True]
    blazar.end(lease)


def test_nova_may_hang_while_others_choose_hosts(blazar, cloud, monkeypatch):
    free = []

    def is_free():
        """Return whether another thread may choose hosts."""
        got = planning.CHOOSING.acquire(timeout=20)
        if got:
            planning.CHOOSING.release()
        return got

    def observe(call):
        def observed(*args, **kwargs):
            with futures.ThreadPoolExecutor(1) as pool:
                free.append(pool.submit(is_free).result())
            return call(*args, **kwargs)

        return observed

    for name in ('prepare', 'publish', 'agree'):
        call = getattr(blazar.plugin.backend, name)
        monkeypatch.setattr(blazar.plugin.backend, name, observe(call))
    lease, reservation = blazar.reserve(amount=1)
    blazar.pass_time()
    more = [{'id': reservation, 'amount': 2}]
    blazar.update(lease, reservations=more, end_date=blazar.at(120))
    assert sum(total for total, _ in cloud.slots(reservation).values()) == 2
    blazar.end(lease)

    assert len(free) >= 5
    assert all(free)


def test_resources_that_nova_reserves_are_not_leased(blazar, cloud):
    """A host has 8,192 MiB of memory; Nova keeps 512 of them."""
    with pytest.raises(manager_exceptions.NotEnoughHostsAvailable):
        blazar.reserve(amount=2, affinity=True, memory_mb=4096)
    lease, reservation = blazar.reserve(2, affinity=True, memory_mb=3840)
    blazar.pass_time()
    for _ in range(2):
        cloud.boot(OWNER, reservation)
    blazar.end(lease)


def test_a_lease_can_start_when_another_ends(blazar, cloud):
    first, _ = blazar.reserve(amount=6, vcpus=5, start=0, end=30)
    second, reservation = blazar.reserve(6, vcpus=5, start=30, end=60)
    with pytest.raises(manager_exceptions.NotEnoughHostsAvailable):
        blazar.reserve(amount=1, start=29, end=31)
    blazar.pass_time()

    blazar.pass_time(30)

    assert blazar.status(first) == 'TERMINATED'
    assert blazar.status(second) == 'ACTIVE'
    assert sum(total for total, _ in cloud.slots(reservation).values()) == 6
    blazar.end(second)


def test_every_property_of_a_planned_lease_can_change(blazar, cloud):
    lease, reservation = blazar.reserve(2, vcpus=2, start=10, end=20)

    blazar.update(
        lease,
        start_date=blazar.at(15),
        end_date=blazar.at(90),
        reservations=[
            {'id': reservation, 'amount': 6, 'vcpus': 5, 'affinity': 'None'}
        ],
    )
    # What it has itself is not in its way.
    blazar.update(lease, reservations=[{'id': reservation, 'vcpus': 4}])
    blazar.pass_time(15)

    assert blazar.status(lease) == 'ACTIVE'
    assert sum(total for total, _ in cloud.slots(reservation).values()) == 6
    server = cloud.boot(OWNER, reservation)
    assert server['flavor']['vcpus'] == 4
    blazar.end(lease)


def test_an_active_lease_can_grow_and_be_extended(blazar, cloud):
    lease, reservation = blazar.reserve(amount=1, vcpus=5, end=30)
    blazar.pass_time()
    server = cloud.boot(OWNER, reservation)

    grown = [{'id': reservation, 'amount': 6}]
    blazar.update(lease, reservations=grown, end_date=blazar.at(60))
    # Blazar does not take slots from active reservations.
    smaller = [{'id': reservation, 'amount': 2}]
    with pytest.raises(manager_exceptions.CantUpdateParameter):
        blazar.update(lease, reservations=smaller)
    blazar.pass_time(30)

    assert blazar.status(lease) == 'ACTIVE'
    assert cloud.slots(reservation) == {
        'host1': (2, 0),
        'host2': (2, 0),
        'host3': (2, 0),
    }
    assert cloud.wait(server['id'], 'ACTIVE')
    blazar.pass_time(30)
    blazar.complete_all()
    assert blazar.status(lease) == 'TERMINATED'


def test_ordinary_servers_keep_out_of_the_free_pool(blazar, cloud):
    """It is the filter that does it; there is no BlazarFilter here."""
    plain = cloud.plain_flavor()
    lease, reservation = blazar.reserve(amount=1)
    blazar.pass_time()

    refused = cloud.boot(OWNER, plain, 'ERROR')
    cloud.boot(OWNER, reservation)

    cloud.delete(refused)
    blazar.end(lease)


def test_a_resize_to_an_ordinary_flavor_leaves_the_free_pool(blazar, cloud):
    plain = cloud.plain_flavor()
    lease, reservation = blazar.reserve(amount=1)
    blazar.pass_time()
    server = cloud.boot(OWNER, reservation)
    cloud.take_from_freepool('host3')

    cloud.resize(server, plain)

    cloud.wait(server['id'], 'VERIFY_RESIZE')
    assert list(cloud.allocations(server['id'])) == ['host3']
    cloud.delete(server)
    blazar.end(lease)


def test_the_manager_polls_for_unfinished_work(blazar):
    polled = {
        plugin.get_polling_interval()
        for monitor in blazar.manager.monitors
        for plugin in monitor.monitor_plugins
        if isinstance(plugin, PeriodicCompletion)
    }
    assert polled == {30}
