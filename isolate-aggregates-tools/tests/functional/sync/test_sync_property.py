# SPDX-License-Identifier: Apache-2.0
"""After a sync there is nothing left to do.

Each example is a cloud with a history: aggregates get and lose metadata and
hosts, other clients add and remove traits and memberships, and sync runs at
random times. Data of others must be unchanged, and sync must reach its target.
"""

import collections

from hypothesis import given
from hypothesis import strategies as st
from sync_world import uuid
from thorough import examples

from isolate_aggregates.aggregates import rollups
from isolate_aggregates_tools import marks

HOSTS = ['h1', 'h2', 'h3']
NAMES = ['a', 'b', 'c']
TRAITS = ['CUSTOM_A', 'CUSTOM_B', 'HW_NIC_SRIOV']
# Never required, so sync must never touch it.
FOREIGN = 'CUSTOM_FOREIGN'

hosts, names, traits = map(st.sampled_from, (HOSTS, NAMES, TRAITS))
STEPS = st.one_of(
    st.tuples(st.just('tag'), names, st.sets(traits, max_size=2)),
    st.tuples(st.just('hosts'), names, st.sets(hosts)),
    st.tuples(st.just('delete'), names),
    st.tuples(st.just('put'), hosts, st.sampled_from([*TRAITS, FOREIGN])),
    st.tuples(st.just('take'), hosts, st.sampled_from([*TRAITS, FOREIGN])),
    st.tuples(st.just('join'), hosts, st.sampled_from(['g1', 'g2'])),
    st.tuples(st.just('sync')),
    st.tuples(st.just('sync')),
)


class Life:
    """A cloud that lives for a while, and what to expect of it.

    :param world: Its Nova and Placement.
    """

    def __init__(self, world):
        self.world = world
        # The traits and memberships of others, by host.
        self.traits = collections.defaultdict(set)
        self.members = collections.defaultdict(set)

    def tag(self, name, required):
        group = self.world.groups.get(name)
        self.world.require(name, group.hosts if group else [], *required)

    def hosts(self, name, hosts):
        group = self.world.groups.get(name)
        required = (
            [k.removeprefix('trait:') for k in group.metadata]
            if (group)
            else []
        )
        # As Nova does with its own mirror.
        for host in (group.hosts if group else frozenset()) - hosts:
            members = self.world.of(host, 'aggregates') - {uuid(2, name)}
            self.world.put(host, aggregates=members)
        self.world.require(name, hosts, *required)

    def delete(self, name):
        if name in self.world.groups:
            self.hosts(name, frozenset())
            self.world.remove(name)

    def put(self, host, trait):
        now = self.world.of(host, 'traits')
        if trait not in now:
            self.world.put(host, traits=now | {trait})
            # With a mark left from before it counts as sync's.
            if marks.of_trait(trait) not in now:
                self.traits[host].add(trait)

    def take(self, host, trait):
        now = self.world.of(host, 'traits')
        self.world.put(host, traits=now - {trait})
        self.traits[host].discard(trait)

    def join(self, host, group):
        now = self.world.of(host, 'aggregates')
        self.world.put(host, aggregates=now | {uuid(9, group)})
        self.members[host].add(uuid(9, group))

    def sync(self):
        assert self.world.sync().is_complete
        assert self.world.todo() == []
        for host in HOSTS:
            self._check(host)

    def _check(self, host):
        groups = self.world.groups.values()
        mine = [group for group in groups if host in group.hosts]
        required = {k[len('trait:') :] for g in mine for k in g.metadata}
        own = required - self.traits[host]
        assert self.world.of(host, 'traits') == {
            *self.traits[host], *own, *map(marks.of_trait, own)
        }  # fmt: skip
        shared = {
            rollups.uuid_of(f'trait:{trait}')
            for trait in required
            if sum(f'trait:{trait}' in g.metadata for g in groups) > 1
        }
        assert self.world.of(host, 'aggregates') == {
            *self.members[host], *shared, *(group.uuid for group in mine)
        }  # fmt: skip

    def end(self):
        """Remove all tags; then no marks of sync are left."""
        for name in NAMES:
            self.tag(name, [])
        self.sync()
        left = filter(marks.is_mark, self.world.custom_traits())
        assert list(left) == []


@examples(6)
@given(steps=st.lists(STEPS, min_size=3, max_size=12))
def test_sync_completes_its_work_and_keeps_the_data_of_others(world, steps):
    world.reset()
    for number, host in enumerate(HOSTS):
        world.add_host(host, vcpus=number)
    life = Life(world)
    for action, *arguments in steps:
        getattr(life, action)(*map(_frozen, arguments))
    life.sync()
    life.end()


def _frozen(value):
    return frozenset(value) if isinstance(value, set) else value
