# SPDX-License-Identifier: Apache-2.0
"""Measures the length of queries, and Placement's time for them.

    python tools/benchmarks/length.py [--csv FILE] [aggregates ...]

A real Placement in this process, on SQLite in memory, with 1,000 hosts. Every
other host is in isolated aggregates, each of which is locked with one of 50
traits; each aggregate has some of those hosts. The request requires none of
the traits, or one of them. It is asked as the request filters conclude it,
and with rollup aggregates as ``sync`` makes them, and the answers are checked
to be the same. The limit is so low that the shortest query is needed. Time is
processor time of what the client waits for; of several runs the median counts.
"""

from collections.abc import Callable, Iterator
import dataclasses
import pathlib
import statistics
import time

import from_tests
from oslo_config import cfg
import table

ROOT = pathlib.Path(__file__).resolve().parents[2]
from_tests.use()

from loaded import LoadedCloud, identity  # noqa: E402

from isolate_aggregates import conf as ia_conf  # noqa: E402
from isolate_aggregates import options as tools_options  # noqa: E402
from isolate_aggregates.aggregates import Aggregate, rollups  # noqa: E402
from isolate_aggregates.filters.pipeline import Pipeline  # noqa: E402
from isolate_aggregates.request import Flavor  # noqa: E402
from isolate_aggregates_tools import candidates  # noqa: E402
from isolate_aggregates_tools.candidates import CandidateHosts  # noqa: E402
from isolate_aggregates_tools.cloud.snapshot import Snapshot  # noqa: E402
from isolate_aggregates_tools.embedded import embedded_client  # noqa: E402
from isolate_aggregates_tools.mirrored import chain  # noqa: E402
from isolate_aggregates_tools.placement.client import PlacementClient  # noqa: E402
from isolate_aggregates_tools.placement.provider import Inventory, Provider  # noqa: E402
from isolate_aggregates_tools.request import Request  # noqa: E402

AGGREGATES = (100, 500, 1_000, 5_000)
HOSTS = 1_000
TRAITS = 50
LIMIT = 900
RESULTS = 1_000
RUNS = 15

FLAVORS = {
    'none': Flavor('plain', '1', 1, 512, 10),
    'one': Flavor(
        'license-7',
        '2',
        1,
        512,
        10,
        extra_specs={'trait:CUSTOM_LICENSE_7': 'required'},
    ),
}


@dataclasses.dataclass(frozen=True)
class Row:
    """Bytes of the query, and milliseconds for the answer."""

    aggregates: int
    keys: str
    hosts: int
    bytes_all: int
    bytes_rollups: int
    all: float
    rollups: float


def trait(number: int) -> str:
    """Return the trait that locks an aggregate."""
    return f'CUSTOM_LICENSE_{number % TRAITS}'


def groups(number: int) -> tuple[Aggregate, ...]:
    """Return aggregates; each host is in those of one trait."""
    hosts: dict[int, set[str]] = {i: set() for i in range(number)}
    locked = range(0, HOSTS, 2)
    for place, host in enumerate(locked):
        hosts[place % number].add(f'host-{host}')
    for i in range(len(locked), number):
        # All hosts have an aggregate by now.
        hosts[i] = hosts[i - len(locked)]
    return tuple(
        Aggregate(
            identity('aggregate', i),
            f'aggregate-{i}',
            {f'trait:{trait(i)}': 'required'},
            frozenset(hosts[i]),
            i,
        )
        for i in range(number)
    )


def hosts(
    aggregates: tuple[Aggregate, ...], pipeline: Pipeline
) -> Iterator[Provider]:
    """Yield the hosts as they are after ``sync``."""
    bare = Snapshot(origin='benchmark', aggregates=aggregates)
    members: dict[str, set[str]] = {}
    traits: dict[str, set[str]] = {}
    for aggregate in aggregates:
        for host in aggregate.hosts:
            members.setdefault(host, set()).add(aggregate.uuid)
            traits.setdefault(host, set()).update(
                key.removeprefix('trait:') for key in aggregate.metadata
            )
    all_rollups = rollups.rollups(pipeline.locks(bare.index))
    for number in range(HOSTS):
        name = f'host-{number}'
        mine = members.get(name, set())
        mine |= {r.uuid for r in all_rollups if r.aggregates & mine}
        yield Provider(
            uuid=identity(name),
            name=name,
            host=name,
            inventories={
                'VCPU': Inventory(64),
                'MEMORY_MB': Inventory(512_000),
                'DISK_GB': Inventory(4000),
            },
            traits=frozenset(traits.get(name, ())),
            aggregates=frozenset(mine),
        )


def milliseconds(run: Callable[[], object], runs: int = RUNS) -> float:
    """Return the duration in milliseconds."""
    found = []
    for _ in range(runs):
        start = time.process_time()
        run()
        found.append(1000 * (time.process_time() - start))
    return statistics.median(found)


def ask(
    cloud: LoadedCloud, pipeline: Pipeline, flavor: Flavor, length: int
) -> tuple[int, float, CandidateHosts]:
    """Return the length of a query, the time of the answer, and the answer."""
    outcome = candidates.find(
        cloud, pipeline, Request(flavor), RESULTS, length
    )
    path = f'/allocation_candidates?{outcome.query.to_querystring()}'
    took = milliseconds(
        lambda: cloud.placement.get(path, outcome.query.needed)
    )
    return len(outcome.query.to_querystring()), took, outcome


def measure(
    number: int, pipeline: Pipeline, placement: PlacementClient
) -> Iterator[Row]:
    """Measure with a number of aggregates."""
    aggregates = groups(number)
    cloud = LoadedCloud(
        Snapshot(
            origin='benchmark',
            aggregates=aggregates,
            providers=tuple(hosts(aggregates, pipeline)),
        ),
        placement,
    )
    for keys, flavor in FLAVORS.items():
        long, took_long, plain = ask(cloud, pipeline, flavor, 0)
        short, took_short, rolled = ask(cloud, pipeline, flavor, LIMIT)
        assert plain.hosts == rolled.hosts
        yield Row(
            number,
            keys,
            len(plain.hosts),
            long,
            short,
            took_long,
            took_short,
        )


def configured() -> Pipeline:
    """Return the request filters with isolation enabled."""
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override(
        'enable_isolated_aggregate_filtering', True, ia_conf.SCHEDULER
    )
    return chain.as_in_nova(conf)


def main() -> None:
    """Measure and print a table."""
    options = table.parser('aggregates', AGGREGATES).parse_args()
    pipeline = configured()
    with embedded_client() as placement:
        rows = [
            row
            for number in options.aggregates
            for row in measure(number, pipeline, placement)
        ]
    table.report(rows, options.csv)


if __name__ == '__main__':
    main()
