# SPDX-License-Identifier: Apache-2.0
"""Tags of domains, and what sync does with them."""

import contextlib
import dataclasses
import itertools
import random

from cases import cases
import pytest

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex, domains
from isolate_aggregates.filters.isolate_tenants import IsolateTenants
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools import domains as tools_domains
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.identity import Domain
from isolate_aggregates_tools.operate import domain_locks
from isolate_aggregates_tools.operate.plan import carry_out
from isolate_aggregates_tools.operate.sync import projects
from isolate_aggregates_tools.request import Request

PLAIN = Aggregate('uuid-acme', 'acme-hosts', {}, id=1)
SALES = Domain('sales-id', 'sales', frozenset({'p1', 'p2'}))
LAB = Domain('lab-id', 'lab', frozenset({'p3'}))


def let_in(aggregate, candidates=('p1', 'p2', 'p3', 'p4', 'x', 'sales-id')):
    """Return the projects that the filter lets in."""
    index = AggregateIndex([aggregate])
    return {
        each
        for each in candidates
        if not list(
            IsolateTenants()(Request(Flavor('f'), project_id=each), index)
        )
    }


class World:
    """A Nova and a Keystone; each call may fail."""

    def __init__(self, *groups, owners=(SALES, LAB)):
        self.groups = {group.uuid: group for group in groups}
        self.owners = {owner.id: owner for owner in owners}
        self.fault = lambda: None
        self.observe = lambda: None
        self.between = lambda: None
        self.nova = self

    def aggregates(self):
        self._call()
        return list(self.groups.values())

    def set_metadata(self, aggregate, metadata):
        self._call()
        added = {k: v for k, v in metadata.items() if v is not None}
        for key in metadata.keys() - added.keys():
            # Nova removes keys one by one.
            self._write(aggregate.uuid, lambda m, key=key: m.pop(key, None))
        self._write(aggregate.uuid, lambda m: m.update(added))

    def domain(self, name):
        self._call()
        for owner in self.owners.values():
            if name in (owner.id, owner.name):
                return owner
        raise errors.NotFound('domain', name, 'Keystone')

    def domain_projects(self, ids):
        self._call()
        return {
            each: self.owners[each].projects if each in self.owners else None
            for each in ids
        }

    def _write(self, uuid, change):
        metadata = dict(self.groups[uuid].metadata)
        change(metadata)
        self.groups[uuid] = dataclasses.replace(
            self.groups[uuid], metadata=metadata
        )
        self.observe()

    def _call(self):
        self.between()
        self.fault()

    @property
    def acme(self):
        return self.groups[PLAIN.uuid]

    def sync(self):
        known = self.domain_projects(domains.of(self.acme))
        differences = list(tools_domains.differences(self.acme, known))
        return projects.carry_out(differences, self, self.domain_projects)


def make(plan):
    outcome = carry_out(plan)
    assert outcome.error is None
    return outcome


def locked(*names):
    world = World(PLAIN)
    make(domain_locks.lock(world, 'acme-hosts', names or ['sales']))
    return world


def test_a_lock_lets_in_the_projects_of_the_domain_only():
    world = locked()
    assert let_in(world.acme) == {'p1', 'p2', 'sales-id'}
    assert world.acme.metadata == {
        'filter_tenant_id:domain:sales-id': 'sales-id',
        'filter_tenant_id:domain:sales-id:p1': 'p1',
        'filter_tenant_id:domain:sales-id:p2': 'p2',
    }
    again = domain_locks.lock(world, 'acme-hosts', ['sales'])
    assert again.steps == ()
    assert not any('has no projects' in note for note in again.notes)


def test_a_domain_without_projects_closes_the_aggregate():
    world = World(PLAIN, owners=[Domain('new', 'new')])
    plan = domain_locks.lock(world, 'acme-hosts', ['new'])
    assert plan.notes[0] == (
        'domain new has no projects yet, so it opens nothing'
    )
    make(plan)
    assert let_in(world.acme) == set()


def test_the_reason_names_the_domain():
    index = AggregateIndex([locked().acme])
    [constraint] = IsolateTenants()(
        Request(Flavor('f'), project_id='x'), index
    )
    assert constraint.cause.text == (
        'reserved for the projects of domain sales-id in filter_tenant_id; '
        'project x is not one of them'
    )


def test_a_lock_is_named_by_its_domains():
    by_hand = dataclasses.replace(
        PLAIN,
        metadata=locked().acme.metadata | {'filter_tenant_id': 'h'},
    )
    [lock] = IsolateTenants().locks(AggregateIndex([by_hand]))
    assert lock.name == 'filter_tenant_id:domain:sales-id,h'


def test_locks_of_one_domain_with_other_projects_are_apart():
    later = Aggregate('uuid-b', 'b', domains.tag('sales-id'), id=2)
    locks = list(
        IsolateTenants().locks(AggregateIndex([locked().acme, later]))
    )
    assert len({lock.name for lock in locks}) == 2


def test_an_unknown_domain_changes_nothing():
    world = World(PLAIN)
    with pytest.raises(errors.NotFound):
        domain_locks.lock(world, 'acme-hosts', ['mars'])
    assert world.acme == PLAIN


@cases(
    ('metadata', 'change'),
    {
        'a lock would let the domain in beside others': (
            {'filter_tenant_id': 'x'},
            lambda w: domain_locks.lock(w, 'acme-hosts', ['sales']),
        ),
        'a grant would keep all others out': (
            {},
            lambda w: domain_locks.grant(w, 'acme-hosts', 'sales'),
        ),
        'a revocation would open the aggregate': (
            domains.tag('sales-id')
            | tools_domains.tags('sales-id', SALES.projects),
            lambda w: domain_locks.revoke(w, 'acme-hosts', 'sales'),
        ),
        'the other may be about to be revoked too': (
            domains.tag('sales-id') | domains.tag('lab-id'),
            lambda w: domain_locks.revoke(w, 'acme-hosts', 'sales'),
        ),
        'it would not be unlocked': (
            domains.tag('sales-id') | {'filter_tenant_id2': 'x'},
            lambda w: domain_locks.unlock(w, 'acme-hosts', ['sales']),
        ),
        'it is not locked': (
            {},
            lambda w: domain_locks.unlock(w, 'acme-hosts', ['sales']),
        ),
    },
)
def test_a_change_that_does_something_else_is_refused(metadata, change):
    world = World(dataclasses.replace(PLAIN, metadata=metadata))
    with pytest.raises(errors.InvalidRequest):
        change(world)
    assert world.acme.metadata == metadata


def test_grant_and_revoke_leave_the_others_alone():
    world = locked()
    make(domain_locks.grant(world, 'acme-hosts', 'lab'))
    assert let_in(world.acme) == {'p1', 'p2', 'p3', 'sales-id'}
    make(domain_locks.revoke(world, 'acme-hosts', 'sales'))
    assert let_in(world.acme) == {'p3'}


def test_a_deleted_domain_can_be_unlocked():
    world = locked()
    del world.owners['sales-id']
    make(domain_locks.unlock(world, 'acme-hosts', ['sales-id']))
    assert world.acme.metadata == {}


def test_two_revocations_at_once_never_open_the_aggregate():
    world = locked('sales', 'lab')
    seen = []
    world.observe = lambda: seen.append(let_in(world.acme))
    steps = [
        domain_locks.revoke(world, 'acme-hosts', name).steps
        for name in ('sales', 'lab')
    ]
    for first, second in itertools.zip_longest(*steps):
        for step in (first, second):
            try:
                step.make()
            except errors.InvalidRequest:
                continue
    assert 'x' not in set().union(*seen)


def test_sync_follows_the_domain_and_leaves_what_is_by_hand():
    world = locked()
    world._write(PLAIN.uuid, lambda m: m.update(filter_tenant_id='x'))
    world.owners['sales-id'] = dataclasses.replace(
        SALES, projects=frozenset({'p2', 'p4'})
    )
    changes, failures = world.sync()
    assert [(c.action, c.subject) for c in changes] == [
        ('add project', 'p4'),
        ('remove project', 'p1'),
    ]
    assert not failures
    assert let_in(world.acme) == {'p2', 'p4', 'x', 'sales-id'}
    assert world.sync() == ([], [])


def test_a_domain_that_does_not_exist_keeps_its_tags():
    world = locked()
    before = world.acme
    del world.owners['sales-id']
    assert world.sync() == ([], [])
    assert world.acme == before
    assert list(projects.problems([before], {'sales-id': None})) == [
        'aggregate acme-hosts: is reserved for domain sales-id, which does '
        'not exist; sync leaves its tags as they are'
    ]


def test_a_changed_tag_of_a_domain_is_restored():
    world = locked()
    key = 'filter_tenant_id:domain:sales-id'
    world._write(PLAIN.uuid, lambda m: m.update({key: 'x'}))
    world.sync()
    assert let_in(world.acme) == {'p1', 'p2', 'sales-id'}


def test_sync_does_not_bring_back_what_is_unlocked_meanwhile():
    world = locked()
    world.owners['sales-id'] = dataclasses.replace(
        SALES, projects=frozenset({'p1', 'p2', 'p4'})
    )
    calls = itertools.count()

    def unlock():
        # Between the reading of the aggregates and the writing.
        if next(calls) == 3:
            world.groups[PLAIN.uuid] = PLAIN

    world.between = unlock
    world.sync()
    assert world.acme == PLAIN


class Broken(exception.ServiceUnreachable):
    """A call that a test breaks."""


@pytest.mark.parametrize('seed', range(150))
def test_at_each_moment_only_projects_of_the_domain_are_let_in(seed):
    """Projects come and go, and any call may fail, in a random history."""
    rng = random.Random(seed)
    world = locked()
    names = [f'p{number}' for number in range(6)]
    # Since the last sync without failure.
    ever, always = set(SALES.projects), set(SALES.projects)
    before = set(SALES.projects)

    def look():
        inside = let_in(world.acme, [*names, 'x'])
        assert inside <= ever
        assert always & before <= inside

    def change():
        current = set(world.owners['sales-id'].projects)
        current ^= {rng.choice(names)}
        ever.update(current)
        always.intersection_update(current)
        world.owners['sales-id'] = dataclasses.replace(
            SALES, projects=frozenset(current)
        )

    def fail():
        if rng.random() < 0.2:
            raise Broken('Nova or Keystone', None, 'is cut off.')

    world.observe = look
    for _ in range(12):
        change()
        world.fault = fail
        world.between = lambda: rng.random() < 0.2 and change()
        with contextlib.suppress(Broken):
            world.sync()
        look()
        world.fault = world.between = lambda: None
        assert not world.sync()[1]
        right = set(world.owners['sales-id'].projects)
        assert let_in(world.acme, [*names, 'x']) == right
        ever, always, before = set(right), set(right), set(right)
