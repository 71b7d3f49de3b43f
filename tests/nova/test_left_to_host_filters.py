# SPDX-License-Identifier: Apache-2.0
"""Constraints left to host filters never admit more hosts.

In random clouds, Nova's database, its memory and Placement disagree on the
hosts of aggregates. Requests of all operations are scheduled by the code of
nova-scheduler, with Nova's own host filter.
"""

from collections import Counter
from collections.abc import Mapping
import dataclasses
import random
from types import SimpleNamespace

from nova import objects
import nova.conf
from nova.scheduler import request_filter
from nova.scheduler.filters import aggregate_instance_extra_specs
from oslo_config import fixture as config_fixture
import pytest
from server_requests import OPERATIONS, PROJECTS, TAGS, TRAITS, Demand
from simulated_placement import SimulatedPlacement
from simulated_scheduler import Node, Scheduler

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import testing
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.aggregates.cache import IndexCache
from isolate_aggregates.aggregates.rollups import rollups
from isolate_aggregates.decision import decide
from isolate_aggregates.filters import host_check, loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.filters.required_metadata import HOST_FILTER
from isolate_aggregates.nova import (
    forced,
    host_filter,
    images,
    registration,
)
from isolate_aggregates.nova.forced import ForcedHosts
from isolate_aggregates.nova.runner import Runner
from isolate_aggregates.query_limit import (
    OUR_HOST_FILTER,
    PlacementMembers,
    Shortener,
)

CLOUDS = 120
REQUESTS = 6
NODES = tuple(
    Node(f'host{n}', f'bbbbbbbb-0000-4000-8000-00000000000{n}')
    for n in range(1, 5)
)
HOSTS = [node.name for node in NODES]
# What one resource provider is asked for.
REST = len('limit=1000&resources=MEMORY_MB%3A64%2CVCPU%3A1')
ROOM = [0, 20, 60, 100, 150, 200, 300, 450, 700]
VALUES = {'ssd': ['true', 'false'], 'gpus': ['1', '2', '4'], 'rack': ['a']}
WANTED = {
    'ssd': ['true', '<or> true <or> false', 's!= false'],
    'gpus': ['>= 2', '<= 2', '!= 4'],
    'rack': ['a', '<all-in> a'],
}


@dataclasses.dataclass(frozen=True)
class Wish(Demand):
    """A request whose flavor wants metadata.

    :param wanted: What it wants.
    """

    wanted: Mapping[str, str]

    @property
    def extra_specs(self):
        """What it wants, and the keys that the flavor has."""
        return {**super().extra_specs, **self.wanted}


@pytest.fixture
def conf():
    """Nova with all filters, and with enough alternates for all hosts."""
    objects.register_all()
    with config_fixture.Config(nova.conf.CONF) as fixture:
        ia_conf.register_opts(fixture.conf)
        fixture.config(
            enable_isolated_aggregate_filtering=True,
            max_attempts=len(HOSTS) + 1,
            group='scheduler',
        )
        fixture.config(
            request_filters=[
                'aggregate_instance_extra_specs',
                'isolate_aggregates',
                'isolate_tenants',
            ],
            group=ia_conf.GROUP,
        )
        yield fixture.conf
        registration.uninstall()


class Cloud:
    """A cloud in which Nova and Placement disagree on hosts of aggregates."""

    def __init__(self, chance, filters, placement):
        self.chance = chance
        self.enabled = [OUR_HOST_FILTER] if chance.random() < 0.9 else []
        self.enabled += [HOST_FILTER] if chance.random() < 0.9 else []
        self.pipeline = Pipeline(filters)
        self.drawn = [
            Aggregate(
                f'aaaaaaaa-0000-4000-8000-{number:012}',
                f'a{number}',
                self._metadata(),
                frozenset(h for h in HOSTS if chance.random() < 0.4),
            )
            for number in range(chance.randint(4, 14))
        ]
        self.index = AggregateIndex(self.drawn)
        wrong = chance.choice([0, 0.1, 0.3])
        self.in_placement, self.in_memory = (
            {
                host: frozenset(
                    a.uuid
                    for a in self.drawn
                    if (host in a.hosts) != (chance.random() < wrong)
                )
                for host in HOSTS
            }
            for _ in range(2)
        )
        known = rollups(self.pipeline.locks(self.index))
        placement.load(
            testing.make_compute_node(
                node.name,
                uuid=node.uuid,
                traits=TRAITS,
                aggregates=self.in_placement[node.name].union(
                    rollup.uuid
                    for rollup in known
                    if rollup.aggregates & self.in_placement[node.name]
                ),
            )
            for node in NODES
        )

    def _metadata(self):
        keys = self.chance.sample(sorted(VALUES), self.chance.randint(0, 2))
        found = {key: self.chance.choice(VALUES[key]) for key in keys}
        if self.chance.random() < 0.3:
            found |= self.chance.choice(TAGS)
        return found

    def aggregates(self):
        """Return the aggregates as Nova's database has them."""
        return self.drawn

    def aggregates_of(self, hosts):
        """Return who is in them there."""
        return {
            host: self.index.aggregates_of.get(host, frozenset())
            for host in hosts
        }

    def start(self, filters, placement):
        """Start nova-scheduler; return it and its request filters."""
        runner = Runner(
            nova.conf.CONF,
            filters,
            IndexCache(self.aggregates),
            Shortener(
                REST + self.chance.choice(ROOM),
                self.pipeline.locks,
                PlacementMembers(lambda: placement.client, 4000)
                if OUR_HOST_FILTER in self.enabled
                else None,
                host_filters=self.enabled,
            ),
            self,
            ForcedHosts(self, lambda: placement.client),
        )
        scheduler = Scheduler(NODES, placement)
        hosts = scheduler.host_manager
        theirs = aggregate_instance_extra_specs
        classes = {
            OUR_HOST_FILTER: host_filter.IsolatedAggregatesFilter,
            HOST_FILTER: theirs.AggregateInstanceExtraSpecsFilter,
        }
        hosts.enabled_filters = [classes[name]() for name in self.enabled]
        read = hosts.get_host_states_by_uuids

        def states(*arguments):
            for state in read(*arguments):
                state.aggregates = [
                    SimpleNamespace(metadata=dict(a.metadata))
                    for a in self.drawn
                    if a.uuid in self.in_memory[state.host]
                ]
                yield state

        hosts.get_host_states_by_uuids = states
        return scheduler, runner

    def demand(self):
        """Return a request of any kind."""
        keys = self.chance.sample(sorted(WANTED), self.chance.randint(0, 3))
        return Wish(
            self.chance.choice(sorted(OPERATIONS)),
            self.chance.choice(HOSTS),
            tuple(t for t in TRAITS if self.chance.random() < 0.2),
            None,
            self.chance.choice(PROJECTS),
            {key: self.chance.choice(WANTED[key]) for key in keys},
        )

    def admits(self, demand, host, left):
        """Return whether a host may serve a request with an unshortened query.

        :param left: The constraints left to host filters, for which membership
            in Nova counts; see decision record 27.
        """
        destination = decide(
            demand.request(), self.index, self.pipeline
        ).destination
        in_nova = self.aggregates_of([host])[host]
        held = self.in_placement[host]
        if demand.operation == 'rebuild':
            held = in_nova
        elif left:
            if host_check.objections(destination, in_nova):
                return False
            held |= in_nova & frozenset().union(*left)
        return not host_check.objections(destination, held)


def test_no_host_is_offered_that_the_plain_path_excludes(conf, monkeypatch):
    # Others of Nova's read databases.
    monkeypatch.setattr(
        request_filter,
        'ALL_REQUEST_FILTERS',
        [request_filter.isolate_aggregates],
    )
    monkeypatch.setattr(
        forced,
        '_nodes',
        lambda context, hosts, nodes: {
            n.name: [n.uuid] for n in NODES if n.name in (*hosts, *nodes)
        },
    )
    # No server was rebuilt.
    monkeypatch.setattr(images, '_read', lambda spec: None)
    filters = loading.load(conf)
    placement = SimulatedPlacement()
    chance = random.Random(27)
    seen = Counter()
    for _ in range(CLOUDS):
        cloud = Cloud(chance, filters, placement)
        scheduler, runner = cloud.start(filters, placement)
        monkeypatch.setattr(
            registration, '_make_runner', lambda _, r=runner: r
        )
        registration.install()
        for _ in range(REQUESTS):
            demand = cloud.demand()
            if demand.operation == 'rebuild' and (
                OUR_HOST_FILTER not in cloud.enabled
            ):
                # Nova calls none of our filters for it.
                continue
            spec = demand.spec()
            found = scheduler.hosts_for(spec)
            known = runner.progress(spec)
            subset = (
                known and known.decision and known.decision.required_subset
            )
            left = subset.left_out if subset else ()
            for host in found:
                assert cloud.admits(demand, host, left), (demand, host)
            seen['served'] += bool(found)
            seen['served, some of it left'] += bool(found and left)
            seen['refused, some of it left'] += bool(left and not found)
    # Each outcome occurs often.
    assert len(seen) == 3
    assert min(seen.values()) > CLOUDS // 10, seen
