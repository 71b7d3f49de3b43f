# SPDX-License-Identifier: Apache-2.0
"""Counts how often the candidate limit hides all hosts for a flavor.

    python tools/benchmarks/candidate_limit.py [--csv FILE] [requests]

A real Placement runs in this process, on SQLite in memory, with 1,000 hosts
that all have free capacity. Some of them are in the aggregate that the flavor
requires. Placement returns at most ``[scheduler] max_placement_results``
candidates, chosen at random
(``[placement] randomize_allocation_candidates``).

in-tree
    The query does not have the aggregate. Nova's host filter
    AggregateInstanceExtraSpecsFilter drops the other hosts.
ours
    The request filter aggregate_instance_extra_specs adds the aggregate to the
    query.

The result is the number of requests for which no host is left.
"""

from collections.abc import Iterator
import dataclasses
import pathlib
import random

import from_tests
from oslo_config import cfg
from placement.conf import placement as placement_opts
import table

ROOT = pathlib.Path(__file__).resolve().parents[2]
from_tests.use()

from loaded import LoadedCloud, identity  # noqa: E402

from isolate_aggregates import conf as ia_conf  # noqa: E402
from isolate_aggregates import options as tools_options  # noqa: E402
from isolate_aggregates.aggregates import Aggregate  # noqa: E402
from isolate_aggregates.filters.pipeline import Pipeline  # noqa: E402
from isolate_aggregates.request import Flavor  # noqa: E402
from isolate_aggregates_tools import candidates  # noqa: E402
from isolate_aggregates_tools.cloud.snapshot import Snapshot  # noqa: E402
from isolate_aggregates_tools.embedded import embedded_client  # noqa: E402
from isolate_aggregates_tools.mirrored import chain  # noqa: E402
from isolate_aggregates_tools.placement.client import PlacementClient  # noqa: E402
from isolate_aggregates_tools.placement.provider import Inventory, Provider  # noqa: E402
from isolate_aggregates_tools.request import Request  # noqa: E402

HOSTS = 1_000
# How many hosts are wanted, and how many candidates Placement returns.
CASES = ((20, 50), (20, 100), (20, 200), (5, 100), (5, 500))
REQUESTS = 200
SEED = 1

FLAVOR = Flavor(
    'fast', '1', 1, 512, 10,
    extra_specs={'aggregate_instance_extra_specs:ssd': 'true'},
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Row:
    """Of how many requests no host was left."""

    hosts: int
    wanted: int
    limit: int
    requests: int
    in_tree: int
    ours: int


def cloud(host_number: int, placement: PlacementClient) -> LoadedCloud:
    """Return a cloud in which some hosts are wanted."""
    names = [f'host-{number}' for number in range(HOSTS)]
    members = frozenset(random.sample(names, host_number))
    ssd = Aggregate(identity('ssd'), 'ssd', {'ssd': 'true'}, members, 1)
    hosts = tuple(
        Provider(
            uuid=identity(name),
            name=name,
            host=name,
            inventories={
                'VCPU': Inventory(64),
                'MEMORY_MB': Inventory(512_000),
                'DISK_GB': Inventory(4000),
            },
            aggregates=frozenset({ssd.uuid} if name in members else ()),
        )
        for name in names
    )
    snapshot = Snapshot(origin='benchmark', aggregates=(ssd,), providers=hosts)
    return LoadedCloud(snapshot, placement)


def pipeline(**options: list[str]) -> Pipeline:
    """Return the filters of a configuration."""
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    groups = {
        'request_filters': ia_conf.GROUP,
        'enabled_filters': tools_options.HOST_FILTERS,
    }
    for name, group in groups.items():
        conf.set_override(name, options.get(name, []), group)
    return chain.as_in_nova(conf)


IN_TREE = pipeline(enabled_filters=['AggregateInstanceExtraSpecsFilter'])
OURS = pipeline(request_filters=['aggregate_instance_extra_specs'])


def none_left(
    loaded: LoadedCloud, filters: Pipeline, limit: int, requests: int
) -> int:
    """Return for how many requests no host is left."""
    found = 0
    for _ in range(requests):
        outcome = candidates.find(loaded, filters, Request(FLAVOR), limit)
        assert len(outcome.hosts) + len(outcome.dropped_hosts) <= limit
        found += not outcome.hosts
    return found


def measure(requests: int, placement: PlacementClient) -> Iterator[Row]:
    """Ask the same of each case."""
    for wanted, limit in CASES:
        asked = cloud(wanted, placement)
        in_tree, ours = (
            none_left(asked, filters, limit, requests)
            for filters in (IN_TREE, OURS)
        )
        yield Row(HOSTS, wanted, limit, requests, in_tree, ours)


def main() -> None:
    """Measure and print a table."""
    options = table.parser('requests', REQUESTS).parse_args()
    cfg.set_defaults(
        placement_opts.placement_opts, randomize_allocation_candidates=True
    )
    random.seed(SEED)
    with embedded_client() as placement:
        rows = list(measure(options.requests, placement))
    table.report(rows, options.csv)


if __name__ == '__main__':
    main()
