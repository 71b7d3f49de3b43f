# SPDX-License-Identifier: Apache-2.0
"""Every shortcut admits a subset of the full query, and refuses nothing else.

In random small clouds, Nova's database, its memory and Placement disagree on
the hosts of aggregates, and so do rollups. Some hosts share storage. Requests
of all operations, with locks and keys of all five filters, are scheduled by
the code of nova-scheduler: with rollups that lack hosts, several of them
together, forbidden aggregates and requirements that are left to host filters,
cached aggregates, and forced hosts. Memberships change between the requests,
in Placement only as well.

The hosts are compared with those for the full query by a model of
``member_of`` that follows the `Placement API reference
<https://docs.openstack.org/api-ref/placement/#list-allocation-candidates>`_
and shares no code with this package. Three things must never occur:

* A host is admitted that the full query excludes, or with storage that it
  excludes.
* A request is refused that would fit, or a host on which all agree.
* A query is longer than the limit.

``RANDOM_CLOUDS`` is the number of clouds, ``RANDOM_SEED`` selects them.
"""

from collections import Counter
from collections.abc import Mapping
import dataclasses
import itertools
import os
import random
from types import SimpleNamespace
from urllib import parse

import nova.conf
from nova.scheduler import request_filter
from nova.scheduler.filters import aggregate_instance_extra_specs
import pytest
import server_requests
from server_requests import OPERATIONS, PROJECTS, RESERVATION, TRAITS, Demand
from simulated_placement import Clock, SimulatedPlacement
from simulated_scheduler import Node, Scheduler, isolating

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex, cache
from isolate_aggregates.aggregates.cache import IndexCache
from isolate_aggregates.aggregates.rollups import rollups
from isolate_aggregates.decision import decide
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.filters.required_metadata import HOST_FILTER
from isolate_aggregates.nova import (
    host_filter,
    images,
    recheck,
    registration,
)
from isolate_aggregates.nova.messages import Observer
from isolate_aggregates.nova.recheck import HostCheck
from isolate_aggregates.nova.runner import Runner
from isolate_aggregates.query_limit import OUR_HOST_FILTER, Shortener
from isolate_aggregates_tools.placement.provider import Inventory, Provider
from isolate_aggregates_tools.request import asking

CLOUDS = int(os.environ.get('RANDOM_CLOUDS', '400'))
SEED = int(os.environ.get('RANDOM_SEED', '27'))
REQUESTS = 2
FILTERS = [
    'aggregate_instance_extra_specs',
    'blazar_reservation',
    'isolate_aggregates',
    'isolate_tenants',
    'reservation_prefix',
]
NODES = tuple(
    Node(f'host{n}', f'bbbbbbbb-0000-4000-8000-00000000000{n}')
    for n in range(1, 5)
)
HOSTS = [node.name for node in NODES]
UUIDS = {node.name: node.uuid for node in NODES}
# Storage, and the aggregate of the hosts that share it.
STORAGE = Node('storage', 'dddddddd-0000-4000-8000-000000000000')
SHARES = 'MISC_SHARES_VIA_AGGREGATE'
# What one resource provider is asked for.
REST = len('limit=1000&resources=DISK_GB%3A1%2CMEMORY_MB%3A64%2CVCPU%3A1')
# How much longer the query may be.
ROOM = [80, 100, 150, 200, 250, 300, 400, 550]
VALUES = {'ssd': ['true', 'false'], 'gpus': ['1', '2', '4'], 'rack': ['a']}
WANTED = {
    'ssd': ['true', '<or> true <or> false', 's!= false'],
    'gpus': ['>= 2', '<= 2', '!= 4'],
    'rack': ['a', '<all-in> a'],
}
TAGS = (*server_requests.TAGS, {'filter_tenant_id': PROJECTS[1]})
POOL = {'availability_zone': 'blazar_pool', 'blazar:owner': PROJECTS[0]}


@dataclasses.dataclass(frozen=True)
class Wish(Demand):
    """A request whose flavor wants metadata.

    :param wanted: What it wants.
    :param pool: The name of the reserved aggregate that it wants, if any.
    """

    wanted: Mapping[str, str]
    pool: str | None

    @property
    def extra_specs(self):
        """What it wants, and the keys that the flavor has."""
        return {**super().extra_specs, **self.wanted}

    @property
    def is_forced(self):
        """Whether Nova skips its host filters."""
        parts = OPERATIONS[self.operation].keys()
        return not parts.isdisjoint({'force_hosts', 'force_nodes'})

    @property
    def hints(self):
        """The keys that the user has."""
        pool = {'reservation': [self.pool]} if self.pool else {}
        return {**super().hints, **pool}


@dataclasses.dataclass(frozen=True)
class Modelled:
    """A resource provider in the model.

    :param held: The uuids of its aggregates.
    """

    uuid: str
    classes: tuple[str, ...]
    held: frozenset[str]


def offers(tree, query, of_hosts=()):
    """Return the uuids of the providers of a tree that serve a query.

    Empty if there are no allocation candidates.

    From the API reference: "The resource providers in the allocation request
    in the response must directly or via the root provider be associated with
    the aggregate or aggregates identified by uuid", of each ``member_of``; a
    ``!`` negates it. ``in:`` precedes several uuids, which are alternatives.
    The traits are the same in all trees.

    :param tree: The providers of the tree, the root first, and shared storage.
    :param query: The query string.
    :param of_hosts: Choices of aggregates that storage need not be in.
    """
    params = parse.parse_qsl(query)

    def fits(provider):
        held = provider.held
        is_storage = provider.uuid == STORAGE.uuid
        if not is_storage:
            held = held | tree[0].held
        for name, value in params:
            if name == 'member_of':
                uuids = value.removeprefix('!').removeprefix('in:').split(',')
                if is_storage and frozenset(uuids) in of_hosts:
                    continue
                if held.isdisjoint(uuids) != value.startswith('!'):
                    return False
        return True

    offered = [
        {p.uuid for p in tree if wanted in p.classes and fits(p)}
        for wanted in ('DISK_GB', 'MEMORY_MB', 'VCPU')
    ]
    return set().union(*offered) if all(offered) else set()


class Placement(SimulatedPlacement):
    """Notes the queries that it answers."""

    def __init__(self):
        super().__init__()
        self.queries = []

    def request(self, url, method, microversion=None, **kwargs):
        """Answer a request."""
        path, _, query = url.partition('?')
        self.queries.append((path, query))
        return super().request(url, method, microversion, **kwargs)


class Refusals(Observer):
    """Notes why requests are refused."""

    def __init__(self):
        self.error = None

    def refused(self, name, error):
        self.error = error


# What the cache of the aggregates takes for the time.
TIME = SimpleNamespace()


@pytest.fixture(autouse=True)
def _time(monkeypatch):
    monkeypatch.setattr(cache, 'time', TIME)


@pytest.fixture
def conf():
    """Nova with all filters, and with enough alternates for all hosts."""
    with isolating(HOSTS, FILTERS) as conf:
        yield conf


class Cloud:
    """A cloud in which Nova and Placement disagree on hosts of aggregates."""

    def __init__(self, chance, filters, placement):
        self.chance = chance
        self.placement = placement
        self.enabled = [OUR_HOST_FILTER] if chance.random() < 0.9 else []
        self.enabled += [HOST_FILTER] if chance.random() < 0.9 else []
        self.filters = filters
        self.pipeline = Pipeline(filters)
        self.limit = REST + chance.choice(ROOM)
        self.clock = Clock()
        TIME.monotonic = self.clock
        self.observer = Refusals()
        self.drawn = [
            self._aggregate(number) for number in range(chance.randint(3, 11))
        ]
        wrong = chance.choice([0, 0, 0.1, 0.3])
        self.in_placement, self.in_memory = (
            {
                host: {
                    a.uuid
                    for a in self.drawn
                    if (host in a.hosts) != (chance.random() < wrong)
                }
                for host in HOSTS
            }
            for _ in range(2)
        )
        # The hosts with a provider for VCPU below the root.
        self.below = {
            host: {a.uuid for a in self.drawn if chance.random() < 0.1}
            for host in HOSTS
            if chance.random() < 0.1
        }
        # The aggregates of storage, and the hosts that share it, some without
        # disks of their own.
        self.storage = {STORAGE.uuid} if chance.random() < 0.3 else set()
        if self.storage:
            self.storage |= {
                a.uuid for a in self.drawn if chance.random() < 0.1
            }
        self.sharing = {h for h in HOSTS if chance.random() < 0.5}
        self.without_disks = {h for h in HOSTS if chance.random() < 0.1} | {
            h
            for h in self.sharing
            if chance.random() < 0.5 * bool(self.storage)
        }
        self.in_rollups = {}
        for host in HOSTS:
            right = self._right_rollups(host)
            self.in_rollups[host] = {
                rollup.uuid
                for rollup in self.rollups()
                if (rollup.uuid in right) != (chance.random() < wrong / 3)
            }
        self._load()

    def _aggregate(self, number):
        chance = self.chance
        keys = chance.sample(sorted(VALUES), chance.choice([0, 0, 1, 2]))
        metadata = {key: chance.choice(VALUES[key]) for key in keys}
        for tags in chance.sample(TAGS, chance.choice([0, 1, 1, 2])):
            metadata |= tags
        if chance.random() < 0.15:
            metadata |= POOL
        return Aggregate(
            f'aaaaaaaa-0000-4000-8000-{number:012}',
            f'a{number}',
            metadata,
            frozenset(h for h in HOSTS if chance.random() < 0.15),
            availability_zone=metadata.get('availability_zone'),
        )

    def rollups(self):
        return rollups(self.pipeline.locks(AggregateIndex(self.drawn)))

    def _held(self, host):
        """Return the aggregates of all providers of a host in Placement."""
        return self.in_placement[host] | self.below.get(host, set())

    def _right_rollups(self, host):
        held = self._held(host)
        return {r.uuid for r in self.rollups() if r.aggregates & held}

    def tree(self, host):
        """Return the providers of a host, as the model knows them."""
        node = UUIDS[host]
        # All providers of a host are in its rollups.
        rollups_ = self.in_rollups[host]
        held = self.in_placement[host] | rollups_
        if host in self.sharing:
            held |= {STORAGE.uuid}
        classes = {'DISK_GB', 'MEMORY_MB', 'VCPU'}
        if host in self.without_disks:
            classes -= {'DISK_GB'}
        tree = [Modelled(node, tuple(sorted(classes)), frozenset(held))]
        if host in self.below:
            classes -= {'VCPU'}
            tree = [
                Modelled(node, tuple(sorted(classes)), frozenset(held)),
                Modelled(
                    node.replace('b', 'c'),
                    ('VCPU',),
                    frozenset(self.below[host] | rollups_),
                ),
            ]
        return tree

    def serving(self, demand, host):
        """Return the same, and the storage that serves the host.

        If a request names the host, Placement offers no shared storage.
        """
        tree = self.tree(host)
        shares = not names_host(demand) and not self.storage.isdisjoint(
            set().union(*(provider.held for provider in tree))
        )
        return [*tree, *([self._storage()] if shares else [])]

    def _storage(self):
        return Modelled(STORAGE.uuid, ('DISK_GB',), frozenset(self.storage))

    def _load(self):
        trees = [self.tree(host) for host in HOSTS]
        if self.storage:
            trees.append([self._storage()])
        self.placement.load(
            Provider(
                provider.uuid,
                provider.uuid,
                parent=tree[0].uuid if provider is not tree[0] else None,
                inventories=dict.fromkeys(provider.classes, Inventory(4096)),
                traits=frozenset(TRAITS)
                | ({SHARES} if provider.uuid == STORAGE.uuid else set()),
                aggregates=provider.held,
            )
            for tree in trees
            for provider in tree
        )

    def aggregates(self):
        """Return the aggregates as Nova's database has them."""
        return self.drawn

    def aggregates_of(self, hosts):
        """Return who is in them there."""
        index = AggregateIndex(self.drawn)
        return {
            host: index.aggregates_of.get(host, frozenset()) for host in hosts
        }

    def start(self):
        """Start nova-scheduler; return it and its request filters."""
        placement = self.placement
        self.shortens = OUR_HOST_FILTER in self.enabled
        shortener = Shortener(self.limit, self.pipeline.locks, self.enabled)
        window = self.chance.choice([0, 30])
        runner = Runner(
            nova.conf.CONF,
            self.filters,
            IndexCache(self.aggregates, ttl=window),
            shortener,
            HostCheck(self, lambda: placement.client, self.limit),
            self.observer,
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
        weigh = hosts.get_weighed_hosts
        self.used = {}

        def weighed(passed, spec):
            passed = list(passed)
            # Not read, because that would check them.
            self.used |= {
                state.host: state.allocation_candidates for state in passed
            }
            return weigh(passed, spec)

        hosts.get_weighed_hosts = weighed
        return scheduler, runner

    def change(self):
        """Let hosts join or leave, in Nova, in Placement, or in both."""
        for _ in range(self.chance.choice([0, 0, 1, 2])):
            host = self.chance.choice(HOSTS)
            number = self.chance.randrange(len(self.drawn))
            changed = self.drawn[number]
            if self.chance.random() < 0.4:
                self.drawn[number] = dataclasses.replace(
                    changed, hosts=changed.hosts ^ {host}
                )
            if self.chance.random() < 0.7:
                self.in_placement[host] ^= {changed.uuid}
            elif host in self.below:
                self.below[host] ^= {changed.uuid}
            if (all_rollups := self.rollups()) and self.chance.random() < 0.2:
                rollup = self.chance.choice(all_rollups)
                self.in_rollups[host] ^= {rollup.uuid}
        self.clock.now += self.chance.choice([0, 0.5, 20, 130])
        self._load()

    def demand(self):
        """Return a request of any kind."""
        chance = self.chance
        keys = chance.sample(
            sorted(WANTED), chance.choice([0, 0, 0, 0, 1, 2, 3])
        )
        pools = [
            a.name for a in self.drawn if POOL.items() <= a.metadata.items()
        ]
        return Wish(
            chance.choice(sorted(OPERATIONS)),
            chance.choice(HOSTS),
            tuple(t for t in TRAITS if chance.random() < 0.2),
            RESERVATION if chance.random() < 0.05 else None,
            chance.choice(PROJECTS),
            {key: chance.choice(WANTED[key]) for key in keys},
            chance.choice(pools) if pools and chance.random() < 0.1 else None,
        )

    def decision(self, demand):
        """Return the decision of the filters, without any shortcut."""
        index = AggregateIndex(self.drawn)
        return decide(demand.request(), index, self.pipeline)

    def admitted(self, demand, of_hosts=()):
        """Return the hosts that the full query admits.

        Each has the providers that may serve the request.

        :param of_hosts: Choices of aggregates that storage need not be in.
        """
        decision = self.decision(demand)
        if decision.destination.refusals:
            return {}
        if demand.operation == 'rebuild':
            # It stays where it is, and Placement is not asked.
            return {
                host: set()
                for host, held in self.aggregates_of(HOSTS).items()
                if not decision.destination.objections(held)
            }
        query = asking.first(decision, demand.request()).to_querystring()
        return {
            host: offered
            for host in HOSTS
            if (offered := offers(self.serving(demand, host), query, of_hosts))
        }

    def agreed(self, host):
        """Return whether everybody has the same memberships of a host."""
        in_nova = self.aggregates_of([host])[host]
        return (
            in_nova == self.in_placement[host] == self.in_memory[host]
            and host not in self.below
            and self.storage <= {STORAGE.uuid}
            and self.in_rollups[host] == self._right_rollups(host)
        )

    def fits(self, demand):
        """Return whether there is a query for a request within the limit.

        Forbidden aggregates and requirements are left to our host filter.
        """
        length = REST
        if names_host(demand):
            length += len(f'&in_tree={NODES[0].uuid}')
        if demand.traits:
            length += len('&required=' + '%2C'.join(demand.traits))
        destination = self.decision(demand).destination
        forbidden = destination.forbidden_aggregates
        required = [
            (choice - forbidden) or choice
            for choice in destination.required_aggregates
        ]
        may_omit = self.shortens and not demand.is_forced
        number = 0 if self.shortens else len(forbidden)
        length += len('&member_of=%21in%3A') - 3 + 39 * number if number else 0
        shortest = min(
            sum(
                len('&member_of=in%3A') - 3 + 39 * len(choice)
                for choice in {*sent}
                if not any(other < choice for other in sent)
            )
            for sent in itertools.chain.from_iterable(
                itertools.combinations(required, number)
                for number in range(len(required) + 1)
            )
            if may_omit
            or all(
                any(other <= choice for other in sent) for choice in required
            )
        )
        return length + shortest <= self.limit


def names_host(demand):
    """Return whether a request is for one host only."""
    parts = OPERATIONS[demand.operation].keys()
    return not parts.isdisjoint({'destination', 'force_hosts', 'force_nodes'})


def reach(demand):
    """Return the hosts that Nova considers for a request."""
    if names_host(demand):
        return {demand.host}
    ignored = 'ignore_hosts' in OPERATIONS[demand.operation]
    return {*HOSTS} - {demand.host} if ignored else {*HOSTS}


@pytest.fixture
def placement(monkeypatch):
    """A Placement; in Nova, only our request filters."""
    # Others of Nova's read databases.
    monkeypatch.setattr(
        request_filter,
        'ALL_REQUEST_FILTERS',
        [request_filter.isolate_aggregates],
    )
    monkeypatch.setattr(
        recheck,
        '_forced_nodes',
        lambda context, hosts, nodes: {
            n.name: [n.uuid] for n in NODES if n.name in (*hosts, *nodes)
        },
    )
    # No server was rebuilt.
    unknown = images.AcceptedImage(None)
    monkeypatch.setattr(images, '_read', lambda *_: unknown)
    return Placement()


def test_shortcuts_admit_a_subset_and_refuse_nothing_else(
    conf, monkeypatch, placement
):
    filters = loading.load(conf)
    assert sorted(loaded_filter.name for loaded_filter in filters) == FILTERS
    counts = Counter()
    for number in range(CLOUDS):
        # Each cloud can be made again without the ones before.
        chance = random.Random(f'{SEED} {number}')
        cloud = Cloud(chance, filters, placement)
        scheduler, runner = cloud.start()
        monkeypatch.setattr(registration, 'build', lambda *_, r=runner: r)
        registration.install()
        for _ in range(REQUESTS):
            demand = cloud.demand()
            if demand.operation == 'rebuild' and (
                OUR_HOST_FILTER not in cloud.enabled
            ):
                # Nova calls none of our filters for it.
                continue
            check(counts, cloud, scheduler, runner, demand)
            cloud.change()
    print(dict(counts))
    for outcome in (
        'served',
        'with rollups',
        'with several rollups',
        'with requirements left out',
        'forced, with rollups',
        'refused as too long',
        'excluded after Placement',
        'with storage',
    ):
        assert counts[outcome] > CLOUDS // 400, (outcome, counts)


def check(seen, cloud, scheduler, runner, demand):
    """Schedule a request, and compare."""
    case = (demand, cloud.limit, cloud.enabled, cloud.drawn)
    cloud.placement.queries.clear()
    cloud.observer.error = None
    cloud.used.clear()
    spec = demand.spec()
    hosts = scheduler.hosts_for(spec)
    admitted = cloud.admitted(demand)

    progress = runner.progress(spec)
    decision = progress and progress.decision
    if decision and decision.left_out:
        # Host filters require nothing of storage.
        admitted = cloud.admitted(demand, decision.left_out)
    assert hosts <= admitted.keys(), case
    for host, candidates in cloud.used.items():
        for candidate in candidates:
            providers = candidate['allocations'].keys()
            assert providers <= admitted[host], (providers, case)
            seen['with storage'] += STORAGE.uuid in providers
    seen['served'] += bool(hosts)

    asked = None
    for path, query in cloud.placement.queries:
        assert len(query) <= cloud.limit, (query, case)
        if path == '/allocation_candidates':
            asked = query
    if cloud.observer.error:
        if isinstance(cloud.observer.error, exception.QueryNotShortened):
            assert not cloud.fits(demand), case
            seen['refused as too long'] += 1
        else:
            seen['refused otherwise'] += 1
            seen['forced, with rollups'] += 'forced host' in str(
                cloud.observer.error
            )
        return
    agreed = set(filter(cloud.agreed, admitted))
    assert agreed & reach(demand) <= hosts, case
    seen['admitted'] += bool(admitted.keys() & reach(demand))

    if asked:
        offered = {h for h in HOSTS if offers(cloud.serving(demand, h), asked)}
        seen['excluded after Placement'] += bool(
            offered & reach(demand) - hosts
        )
    if decision and decision.replacement:
        seen['with rollups'] += 1
        seen['with several rollups'] += len(decision.replacement.rollups) > 1
        seen['forced, with rollups'] += demand.is_forced
    if decision and decision.left_out:
        seen['with requirements left out'] += 1
