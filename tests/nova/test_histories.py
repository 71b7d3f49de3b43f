# SPDX-License-Identifier: Apache-2.0
"""No shortcut admits hosts that the plain path excludes, in any history.

Hypothesis draws a cloud with a history: metadata is set and removed, hosts
join and leave aggregates in Nova and in Placement, aggregates are deleted and
recreated, Nova and Placement fail, hang and recover, and time passes. Between
these changes servers are booted, moved and rebuilt, with the real code of
nova-scheduler and the simulator. The hosts for a request must be a subset of
those of the plain path at that time, or the request must be refused.

``RANDOM_CASES`` is the minimum number of requests.
``test_every_small_cloud.py`` explains the rule.
"""

from collections import Counter
import dataclasses
import functools
import itertools
import math
import os
import types
from typing import ClassVar

from hypothesis import note, settings, stateful
from hypothesis import strategies as st
from keystoneauth1 import exceptions as ks_exceptions
import nova.conf
from nova.scheduler import request_filter
import pytest
import requests
from server_requests import OPERATIONS, TAGS, TRAITS, demands
from simulated_placement import Clock, SimulatedPlacement
from simulated_scheduler import Node, Scheduler, isolating

from isolate_aggregates import exception, query_limit
from isolate_aggregates.aggregates import (
    Aggregate,
    AggregateIndex,
    cache,
    sources,
    waiting,
)
from isolate_aggregates.aggregates.cache import IndexCache
from isolate_aggregates.aggregates.rollups import rollups
from isolate_aggregates.aggregates.waiting import WaitingCache
from isolate_aggregates.decision import decide
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.nova import images, recheck, registration
from isolate_aggregates.nova.messages import Observer
from isolate_aggregates.nova.recheck import HostCheck
from isolate_aggregates.nova.runner import Runner
from isolate_aggregates.query_limit import OUR_HOST_FILTER, Shortener
from isolate_aggregates_tools import testing

CASES = int(os.environ.get('RANDOM_CASES', '2000'))
STEPS = 40
# Fewer than the average number of requests in a history.
REQUESTS = 25
HOUR = 3600
PATIENCE = 120  # seconds until a thread that hangs fails a test

NODES = tuple(
    Node(f'host{n}', f'bbbbbbbb-0000-4000-8000-00000000000{n}')
    for n in range(1, 5)
)
HOSTS = tuple(node.name for node in NODES)
SLOTS = range(8)

# Limits for three, four or five aggregates in the query of a boot.
LIMITS = tuple(
    len('limit=1000&resources=MEMORY_MB%3A64%2CVCPU%3A1')
    + query_limit.forbidden_length(number)
    for number in (3, 4, 5)
)

hosts = st.sampled_from(HOSTS)
slots = st.sampled_from(SLOTS)
flags = st.booleans()
# Rollups are used only if several aggregates have the same lock.
# Few hosts are in an aggregate, so that a mistake would admit one.
few_hosts = st.sampled_from([(), (), *((host,) for host in HOSTS)]).map(set)
strangers = st.sampled_from([()] * 20 + [(host,) for host in HOSTS]).map(set)
tags = st.sampled_from((*TAGS[:1] * 8, *TAGS))

DEMANDS = demands(HOSTS)
# Drawing a number is faster than drawing each part.
numbers = st.integers(0, len(DEMANDS) - 1)


class Placement(SimulatedPlacement):
    """A Placement that may fail, or change between queries.

    :param clock: What tells the time.
    """

    def __init__(self, clock):
        self.members = {host: frozenset() for host in HOSTS}
        self.loaded = None
        self.clock = clock
        # The faults of the next calls.
        self.faults = []
        self.meddle = None
        super().__init__()

    def join(self, host, uuids):
        self.members[host] |= frozenset(uuids)

    def leave(self, host, uuids):
        self.members[host] -= frozenset(uuids)

    def request(self, url, method, microversion=None, **kwargs):
        if self.meddle:
            self.meddle()
        fault = self.faults.pop(0) if self.faults else None
        if fault == 'hangs':
            self.clock.now += 60
            raise ks_exceptions.ConnectTimeout('timed out')
        if fault == 'refuses':
            raise ks_exceptions.ConnectFailure('refused')
        if fault == 'is busy':
            answer = requests.Response()
            answer.status_code = 503
            return answer
        if self.loaded != self.members:
            self.loaded = dict(self.members)
            self.load(
                testing.make_compute_node(
                    node.name,
                    uuid=node.uuid,
                    traits=TRAITS,
                    aggregates=self.members[node.name],
                )
                for node in NODES
            )
        return super().request(url, method, microversion, **kwargs)


def members_of(aggregates, host):
    """Return the uuids of those of the aggregates that a host is in."""
    return frozenset(a.uuid for a in aggregates if host in a.hosts)


class Nova:
    """Nova's aggregates, as an aggregate source reads them."""

    def __init__(self):
        self.by_slot = {}
        self.last = ()
        self.made = 0
        self.broken = 0

    def aggregates(self):
        if self.broken:
            self.broken -= 1
            raise exception.ServiceError('Nova', None, 'is broken.')
        return self.now()

    def now(self):
        """Return the aggregates; the same sequence if nothing has changed."""
        results = tuple(self.by_slot.values())
        if results != self.last:
            self.last = results
        return self.last

    def make(self, slot, metadata):
        """Create an aggregate; a recreated one has another uuid."""
        self.made += 1
        self.by_slot[slot] = Aggregate(
            f'aaaaaaaa-0000-4000-8000-{self.made:012}',
            f'aggregate-{slot}',
            metadata,
            id=self.made,
        )

    def change(self, slot, **values):
        self.by_slot[slot] = dataclasses.replace(self.by_slot[slot], **values)

    def of(self, host):
        """Return the uuids of the aggregates that a host is in."""
        return members_of(self.now(), host)


class NovaDatabase(Nova):
    """The same, read from the database, with memberships read separately."""

    def hosts(self):
        self.aggregates()
        return {a.uuid: a.hosts for a in self.now()}

    def aggregates_of(self, hosts):
        self.aggregates()
        return {host: self.of(host) for host in hosts}


def compute_nodes(context, hosts, nodes):
    """Return the uuids of the nodes of forced hosts, as from the database."""
    return {n.name: [n.uuid] for n in NODES if n.name in (*hosts, *nodes)}


# What the caches of the aggregates take for the time.
TIME = types.SimpleNamespace()


@pytest.fixture(scope='module', autouse=True)
def _nova():
    """Nova with all filters, and with enough alternates for all hosts."""
    filters = ['isolate_aggregates', 'reservation_prefix', 'isolate_tenants']
    with (
        pytest.MonkeyPatch.context() as patch,
        isolating(HOSTS, filters) as conf,
    ):
        # Others of Nova's read databases.
        patch.setattr(
            request_filter,
            'ALL_REQUEST_FILTERS',
            [request_filter.isolate_aggregates],
        )
        patch.setattr(recheck, '_forced_nodes', compute_nodes)
        for module in (cache, waiting):
            patch.setattr(module, 'time', TIME)
        # No server was rebuilt.
        patch.setattr(images, '_read', lambda *_: images.AcceptedImage(None))
        Histories.filters = loading.load(conf)
        yield


class Counting(Observer):
    """Counts the outcomes of requests."""

    def __init__(self, counter):
        self._counter = counter

    def passed(self, started_at, destination, is_shortened):
        self._counter['shortened' if is_shortened else 'in full'] += 1

    def refused(self, name, error):
        self._counter[f'refused: {type(error).__name__}'] += 1


class Histories(stateful.RuleBasedStateMachine):
    """A cloud and what happens to it."""

    asked: ClassVar = Counter()
    filters = ()

    @stateful.initialize(
        limit=st.sampled_from(LIMITS),
        # For how many seconds the aggregates are cached.
        window=st.sampled_from([0, 0, 30]),
        locked=st.lists(
            st.tuples(tags, few_hosts, strangers),
            min_size=5,
            max_size=len(SLOTS),
        ),
    )
    def begin(self, limit, window, locked):
        self.clock = Clock()
        TIME.monotonic = self.clock
        self.placement = Placement(self.clock)
        self.nova = Nova() if window else NovaDatabase()
        self.ttl = window
        # Aggregates of an API are used twice as long while they are read.
        self.window = 2 * window
        # Times by host and aggregate uuid, and by host.
        self.changed_at = {}
        self.left_rollup_at = dict.fromkeys(HOSTS, -math.inf)
        for slot, (metadata, members, in_placement_alone) in enumerate(locked):
            self.nova.make(slot, metadata)
            for host in members | in_placement_alone:
                self._join(host, slot, host in members, True)
        self.clock.now += HOUR
        self.versions = []
        self._note()
        self.pipeline = Pipeline(self.filters)
        self.sync()
        self._start(limit)

    def _start(self, limit):
        """Start nova-scheduler, with everything that shortcuts need."""
        make = IndexCache
        if self.ttl:
            make = functools.partial(WaitingCache, deadline=PATIENCE)
        cache = make(self.nova.aggregates, ttl=self.ttl)
        members = sources.membership(self.nova, cache.get)
        runner = Runner(
            nova.conf.CONF,
            self.filters,
            cache,
            Shortener(limit, self.pipeline.locks, [OUR_HOST_FILTER]),
            HostCheck(members, lambda: self.placement.client, limit),
            Counting(self.asked),
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(registration, 'build', lambda *_: runner)
            registration.install()
        self.scheduler = Scheduler(NODES, self.placement)

    # What happens to the cloud.

    @stateful.rule(slot=slots, metadata=tags)
    def tag(self, slot, metadata):
        if found := self.nova.by_slot.get(slot):
            self.nova.change(slot, metadata={**found.metadata, **metadata})
        else:
            self.nova.make(slot, metadata)
        self._note()

    @stateful.rule(slot=slots)
    def untag(self, slot):
        if slot in self.nova.by_slot:
            self.nova.change(slot, metadata={})
            self._note()

    @stateful.rule(slot=slots, cleaned=flags)
    def delete(self, slot, cleaned):
        if found := self.nova.by_slot.pop(slot, None):
            for host in found.hosts:
                self.changed_at[host, found.uuid] = self.clock.now
                if cleaned:
                    self.placement.leave(host, {found.uuid})
            self._note()

    @stateful.rule(host=hosts, slot=slots)
    def join(self, host, slot):
        """Let a host join an aggregate in Nova, and so in Placement."""
        if slot in self.nova.by_slot:
            self._join(host, slot, True, True)
            self._note()

    @stateful.rule(number=numbers, slot=slots)
    def join_and_ask(self, number, slot):
        """Add the host to the aggregate that is requested next."""
        demand = DEMANDS[number]
        self._ask(demand)
        self.join(demand.host, slot)
        self._ask(demand)
        self._ask(dataclasses.replace(demand, operation='boot'))

    @stateful.rule(number=numbers, slot=slots, late=flags)
    def join_past_nova_and_ask(self, number, slot, late):
        """Let the host join in Placement alone, and ask, at once or late."""
        demand = DEMANDS[number]
        self._ask(demand)
        if slot in self.nova.by_slot:
            self._join(demand.host, slot, False, True)
            self.clock.now += late * 122
            self._ask(demand)

    @stateful.rule(host=hosts, slot=slots, in_nova=flags)
    def join_in_one(self, host, slot, in_nova):
        """Let it join in Nova or in Placement, and not in the other."""
        if slot in self.nova.by_slot:
            self._join(host, slot, in_nova, not in_nova)
            self._note()

    @stateful.rule(host=hosts, slot=slots, in_nova=flags, in_placement=flags)
    def leave(self, host, slot, in_nova, in_placement):
        if found := self.nova.by_slot.get(slot):
            self.changed_at[host, found.uuid] = self.clock.now
            if in_nova:
                self.nova.change(slot, hosts=found.hosts - {host})
            if in_placement:
                self.placement.leave(host, {found.uuid})
            self._note()

    @stateful.rule()
    def sync(self):
        """Do what ``isolate-aggregates sync`` does."""
        for host, rollup in itertools.product(HOSTS, self._rollups()):
            self._put(host, rollup, rollup.aggregates & self.nova.of(host))

    @stateful.rule(host=hosts, number=st.integers(0, 3), joins=flags)
    def change_rollup(self, host, number, joins):
        for rollup in self._rollups()[number : number + 1]:
            self._put(host, rollup, joins)

    @stateful.rule(seconds=st.sampled_from([0, 1, 10, 31, 61, 121]))
    def wait(self, seconds):
        """Let time pass."""
        self.clock.now += seconds

    @stateful.rule(
        faults=st.lists(
            st.sampled_from(['', '', 'hangs', 'refuses', 'is busy']),
            max_size=2,
        )
    )
    def break_placement(self, faults):
        self.placement.faults = faults

    @stateful.rule(times=st.integers(1, 3))
    def break_nova(self, times):
        """Make the next reads of the aggregates from Nova fail."""
        self.nova.broken = times

    # Requests.

    @stateful.rule(made=st.lists(numbers, min_size=2, max_size=10))
    def ask(self, made):
        for number in made:
            self._ask(DEMANDS[number])

    @stateful.rule(number=numbers, calls=st.integers(0, 3), slot=slots)
    def ask_while_a_host_joins(self, number, calls, slot):
        """Let a host join an aggregate just before one of the questions."""
        asked = itertools.count()
        demand = DEMANDS[number]

        def meddle():
            if next(asked) == calls and slot in self.nova.by_slot:
                self._join(demand.host, slot, True, True)
                self._note()

        self.placement.meddle = meddle
        self._ask(demand)
        self.placement.meddle = None

    def _ask(self, demand):
        """Compare the hosts that are offered with those of the plain path."""
        note(f'# {demand}')
        plain = self._plain(demand)
        hosts = self.scheduler.hosts_for(demand.spec())
        self.asked[demand.operation] += 1
        self.asked['served'] += bool(hosts)
        opened = hosts.difference(*(allowed for allowed, _ in plain))
        if not opened:
            return
        # The clock may have moved, and a host joined.
        plain = self._plain(demand)
        for host in opened.difference(*(allowed for allowed, _ in plain)):
            assert any(self._is_unseen(host, closed) for _, closed in plain), (
                f'{demand.operation}: {host} is offered'
            )
            self.asked['unseen'] += 1

    def _plain(self, demand):
        """Return the hosts that the plain path admits, and what it forbids.

        Where aggregates are remembered there are several such pairs, of all
        moments of that time; it is enough that a host is admitted in one.
        """
        request = demand.request()
        plain = []
        for aggregates in self._recent():
            held = self.placement.members
            if demand.operation == 'rebuild':
                # It stays where it is, and Placement is not asked.
                held = {host: members_of(aggregates, host) for host in HOSTS}
            destination = decide(
                request, AggregateIndex(aggregates), self.pipeline
            ).destination
            allowed = {
                host
                for host in HOSTS
                if not destination.objections(held[host])
            }
            plain.append((allowed, destination.forbidden_aggregates))
        return plain

    def _is_unseen(self, host, closed):
        """Return whether no component can have seen a new exclusion yet.

        If aggregates are cached with their hosts, changes of hosts in Nova are
        seen as late as changes of tags.
        """

        def unseen(aggregate):
            changed_at = max(
                self.changed_at[host, aggregate], self.left_rollup_at[host]
            )
            return self.clock.now - changed_at < self.window

        kept_out_by = self.placement.members[host] & closed
        return bool(kept_out_by) and all(map(unseen, kept_out_by))

    def _recent(self):
        """Return all versions of the aggregates that may be in the cache."""
        since = self.clock.now - self.window
        ends = [at for at, _ in self.versions[1:]] + [self.clock.now + 1]
        return [
            aggregates
            for (_, aggregates), end in zip(self.versions, ends, strict=True)
            if end > since
        ]

    def _note(self):
        self.versions.append((self.clock.now, self.nova.now()))

    def _rollups(self):
        return rollups(self.pipeline.locks(AggregateIndex(self.nova.now())))

    def _put(self, host, rollup, inside):
        """Add a host to a rollup, or remove it."""
        if inside:
            self.placement.join(host, {rollup.uuid})
        elif rollup.uuid in self.placement.members[host]:
            self.left_rollup_at[host] = self.clock.now
            self.placement.leave(host, {rollup.uuid})

    def _join(self, host, slot, in_nova, in_placement):
        found = self.nova.by_slot[slot]
        self.changed_at[host, found.uuid] = self.clock.now
        if in_nova:
            self.nova.change(slot, hosts=found.hosts | {host})
        if in_placement:
            self.placement.join(host, {found.uuid})


@pytest.mark.slow
def test_shortening_caching_and_retries_open_nothing():
    asked = Histories.asked
    asked.clear()
    runs = 0
    # How many queries are shortened varies by a factor of thirty.
    while runs < 10 and not (
        sum(asked[operation] for operation in OPERATIONS) >= CASES
        and asked['shortened'] >= 10
    ):
        runs += 1
        stateful.run_state_machine_as_test(
            Histories,
            settings=settings(
                max_examples=-(-CASES // REQUESTS), stateful_step_count=STEPS
            ),
        )
    assert asked['shortened'] >= 10
    assert asked['served'] > 0
    print(dict(asked))
