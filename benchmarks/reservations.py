# SPDX-License-Identifier: Apache-2.0
"""Plan and reconcile reservations in a cloud with many of them.

    python benchmarks/reservations.py [hosts:reservations ...]

Placement is a real one (in this process, on SQLite); Nova answers at once from
memory. Each reservation has four slots, starts within a month and lasts up to
two weeks. What is measured: planning alone with all that is known of the
hosts, creating one more reservation, reconciling in a new process with nothing
to do, reconciling again in the same process, and reconciling when one in a
hundred reservations starts. HTTP calls are counted as they leave.
"""

from collections.abc import Callable
import datetime
import multiprocessing
import pathlib
import random
import sys
import time

_TESTS = pathlib.Path(__file__).parent.parent / 'tests' / 'support'
sys.path.insert(0, str(_TESTS))

from reservation_world import HOUR, NOW, PROJECT, World  # noqa: E402

from isolate_aggregates import reservations  # noqa: E402
from isolate_aggregates.placement import inventories  # noqa: E402
from isolate_aggregates.placement.embedded import EmbeddedPlacement  # noqa: E402
from isolate_aggregates.reservations import host_capacity, planner, slots  # noqa: E402
from isolate_aggregates.reservations.record import describe  # noqa: E402
from isolate_aggregates.reservations.reservation import Reservation  # noqa: E402

SIZES = ('100:100', '300:300', '1000:1000', '1000:300', '300:1000')
DAY = 24 * HOUR
SLOTS = 4
SHAPE = reservations.Shape(vcpus=1, ram=64, disk=1)


def build(world: World, hosts: int, reservations: int) -> None:
    """Fill a cloud, without the library's own many questions."""
    for number in range(hosts):
        world.add_host(f'n{number:05d}', vcpus=64)
    chance = random.Random(7)
    held: dict[str, dict[str, dict[str, object]]] = {}
    for number in range(reservations):
        start = NOW + chance.randrange(1, 30 * 24) * HOUR
        if number % 100 == 0:
            start = NOW + HOUR
        made = Reservation(
            id=f'00000009-0000-4000-8000-{number:012x}',
            incarnation='00000000',
            project=PROJECT,
            start=start,
            end=start + chance.randrange(1, 14) * DAY,
            amount=SLOTS,
            shape=SHAPE,
        )
        record(world, made)
        world.direct.send('PUT', f'/resource_classes/{made.resource_class}')
        for host in chance.sample(range(hosts), 2):
            held.setdefault(f'n{host:05d}', {})[made.resource_class] = (
                slots.inventory(SLOTS // 2, 0)
            )
    for host, by_class in held.items():
        inventories.write(
            world.direct,
            world.child(host),
            inventories.Inventories(1, by_class),
        )


def record(world: World, made: Reservation) -> None:
    """Write the record of a reservation that was made long ago."""
    flavor = made.flavor
    world.nova.flavors[made.id] = {
        'id': made.id,
        'name': flavor.name,
        'vcpus': flavor.vcpus,
        'ram': flavor.ram,
        'disk': flavor.disk,
        'swap': flavor.swap,
        'OS-FLV-EXT-DATA:ephemeral': flavor.ephemeral,
        'os-flavor-access:is_public': False,
        'extra_specs': dict(flavor.extra_specs),
        'description': describe(made),
    }
    world.nova.access[made.id] = set()


def planning(world: World) -> float:
    """Return the seconds that choosing hosts alone takes."""
    found = world.store.read()
    wanted = reservations.new(
        PROJECT, 2 * SLOTS, SHAPE, NOW, NOW + 30 * DAY
    ).settled
    known = host_capacity.Capacities(world.store, found, wanted, NOW).all()
    begin = time.perf_counter()
    demand = host_capacity.demand(wanted, NOW)
    assignment = planner.assign(demand, known.values())
    assert not assignment.missing
    return time.perf_counter() - begin


def timed(world: World, what: Callable[[], object]) -> tuple[float, int]:
    """Return the seconds and the calls that something takes."""
    world.wire.calls.clear()
    begin = time.perf_counter()
    what()
    return time.perf_counter() - begin, len(world.wire.calls)


def measure(size: str) -> None:
    """Build a cloud, do everything once and print a row."""
    hosts, number = map(int, size.split(':'))
    placement = EmbeddedPlacement()
    world = World(placement.open())
    build(world, hosts, number)
    seconds = planning(world)

    def create() -> None:
        wanted = reservations.new(PROJECT, SLOTS, SHAPE, NOW + DAY)
        reservations.create(world.store, wanted, NOW)

    def reconcile(now: datetime.datetime = NOW) -> None:
        statuses = reservations.reconcile_all(world.store, now)
        assert not any(status.problems for status in statuses)

    row = [timed(world, create)]
    world.store = world.new_store()
    row += [timed(world, reconcile), timed(world, reconcile)]
    row.append(timed(world, lambda: reconcile(NOW + HOUR)))
    print(
        f'{hosts:6,} {number:6,}  {seconds * 1000:7.0f} ms',
        *(f'{seconds:8.1f} s {calls:6,}' for seconds, calls in row),
        flush=True,
    )
    placement.close()


def main() -> None:
    """Print a table, each row from a process of its own."""
    print(
        ' hosts  res.     planning   create     calls  first round calls'
        '  next round calls   ten start calls'
    )
    context = multiprocessing.get_context('spawn')
    for size in sys.argv[1:] or SIZES:
        process = context.Process(target=measure, args=[size])
        process.start()
        process.join()


if __name__ == '__main__':
    main()
