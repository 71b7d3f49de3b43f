# SPDX-License-Identifier: Apache-2.0
"""Measures planning and reconciling with many reservations.

    python tools/benchmarks/reservations.py [--csv FILE] [SIZE ...]

A size is HOSTS:RESERVATIONS, followed by ``:full`` if all hosts are full.

Placement is a real one (in this process, on SQLite); Nova answers at once from
memory. Each reservation has four slots, starts within a month and lasts up to
two weeks. Where hosts are full, reservations have started, each slot has a
server, and no host has room for another. What is measured: planning alone with
all that is known of the hosts, creating one more reservation, extending one,
each as the only command of a process, listing all in another one, reconciling
in a new process with nothing to do, reconciling again in the same process,
reconciling when one in a hundred reservations starts, and the memory that
listing needs. HTTP calls are counted as they leave. Times are processor time,
which that of Placement is in; with others on the machine the clock tells more
of them, as SQLite lets them go first at each question. What does not fit into
a full cloud is a refusal, and measured as such.
"""

import argparse
from collections.abc import Callable
from concurrent import futures
import contextlib
import dataclasses
import datetime
import multiprocessing
import random
import time
import tracemalloc

import from_tests

from_tests.use()

import placement_rows  # noqa: E402
from reservation_world import HOUR, NOW, PROJECT, World  # noqa: E402
import table  # noqa: E402

from isolate_aggregates_reservations import api as reservations  # noqa: E402
from isolate_aggregates_reservations import (  # noqa: E402
    capacity,
    errors,
    events,
    names,
    plan,
    slots,
)
from isolate_aggregates_reservations.api import HostSlots  # noqa: E402
from isolate_aggregates_reservations.record import describe  # noqa: E402
from isolate_aggregates_reservations.reservation import Reservation  # noqa: E402
from isolate_aggregates_tools.embedded import EmbeddedPlacement  # noqa: E402
from isolate_aggregates_tools.placement.provider import Inventory, Provider  # noqa: E402

SIZES = (
    '100:100',
    '300:300',
    '300:1000',
    '1000:300',
    '1000:1000',
    '1000:10000',
    '300:300:full',
    '300:1000:full',
    '1000:1000:full',
    '1000:10000:full',
)
DAY = 24 * HOUR
SLOTS = 4
SHAPE = reservations.Shape(vcpus=1, ram=64, disk=1)


@dataclasses.dataclass(frozen=True)
class Row:
    """Seconds of processor time, HTTP calls, and MiB of memory."""

    hosts: int
    reservations: int
    full: bool
    plan: float
    create: float
    create_calls: int
    update: float
    update_calls: int
    list: float
    list_calls: int
    first_round: float
    first_calls: int
    next_round: float
    next_calls: int
    starting: float
    starting_calls: int
    memory: float


def build(world: World, hosts: int, reservations: int, full: bool) -> None:
    """Fill a cloud directly, without the library's many calls."""
    chance = random.Random(7)
    held: dict[int, dict[str, HostSlots]] = {}
    for number in range(reservations):
        start = NOW + chance.randrange(1, 30 * 24) * HOUR
        if number % 100 == 0:
            start = NOW + HOUR
        elif full:
            start -= 30 * DAY
        made = Reservation(
            id=reservation_id(number),
            incarnation='00000000',
            project=PROJECT,
            start=start,
            end=max(start, NOW) + chance.randrange(1, 14) * DAY,
            amount=SLOTS,
            shape=SHAPE,
            has_access=start <= NOW,
        )
        used = SLOTS // 2 if start <= NOW else 0
        there = (
            (2 * number % hosts, (2 * number + 1) % hosts)
            if full
            else chance.sample(range(hosts), 2)
        )
        if used:
            is_open = {host_name(host): used for host in there}
            made = events.recorded(
                dataclasses.replace(made, open=is_open), made.start
            )
        record(world, made)
        for host in there:
            held.setdefault(host, {})[made.resource_class] = HostSlots(
                SLOTS // 2, used, used
            )
    pool = world.set_pool()
    providers = []
    for number in range(hosts):
        name = host_name(number)
        root = world.add_node(name)
        pool['hosts'].append(name)
        there = held.get(number, {})
        amounts = {'VCPU': 64, 'MEMORY_MB': 10240, 'DISK_GB': 100}
        if full:
            amounts['VCPU'] = sum(on.total for on in there.values()) or 1
        servers = sum(on.used for on in there.values())
        providers += [
            Provider(
                root,
                name,
                inventories={
                    key: Inventory(amount, max_unit=amount)
                    for key, amount in amounts.items()
                },
                usages={
                    'VCPU': servers,
                    'MEMORY_MB': 64 * servers,
                    'DISK_GB': servers,
                },
                aggregates=frozenset([pool['uuid']]),
            ),
            Provider(
                names.provider_uuid(root),
                names.provider(name),
                parent=root,
                inventories={
                    names.MARKER: Inventory(1),
                    **{
                        name: Inventory(**slots.inventory(on))
                        for name, on in there.items()
                    },
                },
                usages={name: on.used for name, on in there.items()},
                traits=frozenset([names.TRAIT]),
            ),
        ]
    placement_rows.load(providers)


def host_name(number: int) -> str:
    """Return the name of a host."""
    return f'n{number:05d}'


def reservation_id(number: int) -> str:
    """Return the id of an existing reservation."""
    return f'00000009-0000-4000-8000-{number:012x}'


def record(world: World, reservation: Reservation) -> None:
    """Write the record of an existing reservation."""
    flavor = reservation.flavor
    world.nova.flavors[reservation.id] = {
        'id': reservation.id,
        'name': flavor.name,
        'vcpus': flavor.vcpus,
        'ram': flavor.ram,
        'disk': flavor.disk,
        'swap': flavor.swap,
        'OS-FLV-EXT-DATA:ephemeral': flavor.ephemeral,
        'os-flavor-access:is_public': False,
        'extra_specs': dict(flavor.extra_specs),
        'description': describe(reservation),
    }
    world.nova.access[reservation.id] = (
        {PROJECT} if reservation.start <= NOW else set()
    )


def planning(world: World) -> float:
    """Return the duration of choosing hosts in seconds."""
    state = world.store.read()
    reservation = reservations.new(
        PROJECT, 2 * SLOTS, SHAPE, NOW, NOW + 30 * DAY
    ).settled
    known = capacity.Capacities(state, reservation, NOW).all_hosts()
    begin = time.process_time()
    plan.assign(capacity.demand(reservation, NOW), known.values())
    return time.process_time() - begin


def timed(world: World, what: Callable[[], object]) -> tuple[float, int]:
    """Return the duration in seconds, and the number of HTTP calls."""
    world.wire.calls.clear()
    begin = time.process_time()
    what()
    return time.process_time() - begin, len(world.wire.calls)


def memory(what: Callable[[], object]) -> float:
    """Return the peak memory of Python objects in MiB."""
    tracemalloc.start()
    what()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 2**20


def measure(size: str) -> Row:
    """Build a cloud and run all measurements once."""
    parts = size.split(':')
    hosts, number = map(int, parts[:2])
    full = parts[2:] == ['full']
    placement = EmbeddedPlacement()
    world = World(placement.open())
    build(world, hosts, number, full)
    seconds = planning(world)

    def create() -> None:
        reservation = reservations.new(PROJECT, SLOTS, SHAPE, NOW + DAY)
        # In a full cloud it is refused, which takes just as long.
        with contextlib.suppress(errors.ReservationError):
            reservations.create(world.store, reservation, NOW)

    def update() -> None:
        store = world.new_store()
        # It may not fit.
        with contextlib.suppress(errors.ReservationError):
            reservations.update(
                store, reservation_id(0), NOW, end=NOW + 60 * DAY
            )

    def show() -> None:
        reservations.list_reservations(world.new_store(), NOW)

    def reconcile(now: datetime.datetime = NOW) -> None:
        reservations.reconcile_all(world.store, now)

    created = timed(world, create)
    updated = timed(world, update)
    listed = timed(world, show)
    world.store = world.new_store()
    row = Row(
        hosts,
        number,
        full,
        seconds,
        *created,
        *updated,
        *listed,
        # As in a new process, and a second time.
        *timed(world, reconcile),
        *timed(world, reconcile),
        *timed(world, lambda: reconcile(NOW + HOUR)),
        memory(show),
    )
    placement.close()
    return row


def main() -> None:
    """Measure and print a table, each row in a separate process."""
    parser = argparse.ArgumentParser()
    parser.add_argument('sizes', nargs='*', default=SIZES)
    parser.add_argument('--csv', help='write the figures to this file too')
    options = parser.parse_args()
    context = multiprocessing.get_context('spawn')
    rows = []
    for size in options.sizes:
        with futures.ProcessPoolExecutor(1, context) as process:
            rows.append(process.submit(measure, size).result())
    table.report(rows, options.csv)


if __name__ == '__main__':
    main()
