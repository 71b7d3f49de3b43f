# SPDX-License-Identifier: Apache-2.0
"""Repairs are tried on a copy of the cloud before they are shown."""

from collections import Counter
import dataclasses
import os
import random

from audit_clouds import LICENSED, LOCK, PREFIXES, configuration
import pytest

from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates_tools.advice import request_repairs, trial
from isolate_aggregates_tools.advice.effects import Effects
from isolate_aggregates_tools.answers.deciding import Questions
from isolate_aggregates_tools.answers.offers import Offers
from isolate_aggregates_tools.audit import AuditedCloud, audit
from isolate_aggregates_tools.repairs import commands, outcome
from isolate_aggregates_tools.repairs.repair import Repair
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_image,
    make_snapshot,
)

CONF = configuration(
    request_filters=[
        'isolate_aggregates',
        'isolate_tenants',
        'reservation_prefix',
        'aggregate_instance_extra_specs',
    ],
    trait_sources=['flavor', 'image'],
    **{option: ['reservation:'] for option in PREFIXES},
)
CLOUDS = int(os.environ.get('RANDOM_CLOUDS', '20'))
SPECS = (
    {},
    LOCK,
    {f'trait:{LICENSED}': 'Required'},
    {'trait:CUSTOM_LICENCED_WINDOWS': 'required'},
    {'trait:CUSTOM_B': 'required'},
    {**LOCK, 'trait:CUSTOM_B': 'required'},
    {'trait:CUSTOM_B': 'forbidden'},
    {'trait:CUSTOM_NONE': 'forbidden'},
    {'resources:VGPU': '3'},
    {'hw:tpm_version': '2.0'},
    {'trait_A:CUSTOM_B': 'required'},
    {LICENSED: 'required'},
    {'trait:CUSTOM_BEE': 'required'},
    {'resource:VGPU': '1'},
    {'aggregate_instance_extra_specs:ssd': 'true'},
    {'aggregate_instance_extra_spec:ssd': 'true'},
    {'aggregate_instance_extra_specs:ssd': 'True', **LOCK},
    {'reservation:5a4d5af1-1c0a-4a51-9b3d-ffb8d7fb9b11': 'x'},
)
TAGS = (
    {},
    LOCK,
    {f'trait:{LICENSED}': 'true'},
    {'trait:CUSTOM_B': 'required'},
    {f'trait_{LICENSED}': 'required'},
    {'filter_tenant_id': 'p1'},
    {'Filter_tenant_id': 'p1'},
    {'filter-tenant-id': 'p1'},
    {'filter_project_id2': 'p2'},
    {LICENSED: 'required'},
    {'trait:CUSTOM_BEE': 'required', 'ssd': 'True'},
    {'ssd': 'true'},
    {'ssd': 'true', **LOCK},
    {'aggregate_instance_extra_specs:ssd': 'true'},
    {'reservation:5a4d5af1-1c0a-4a51-9b3d-ffb8d7fb9b12': 'x'},
)


def random_cloud(number):
    """Return a small cloud that is set up badly."""
    chance = random.Random(number)
    hosts = [f'h{n}' for n in range(chance.randint(1, 4))]
    aggregates = [
        make_aggregate(
            f'a{n}',
            chance.choice(TAGS),
            chance.sample(hosts, chance.randint(0, len(hosts))),
            id=n,
        )
        for n in range(1, chance.randint(2, 4))
    ]
    nodes = [
        make_compute_node(
            host,
            inventories={
                'VCPU': 4,
                **({'VGPU': 2} if chance.random() < 0.3 else {}),
            },
            traits=[
                trait
                for trait in (LICENSED, 'CUSTOM_B')
                if chance.random() < 0.4
            ],
        )
        for host in hosts
    ]
    flavors = [
        make_flavor(
            f'f{n}',
            chance.choice(SPECS),
            vcpus=chance.choice((1, 1, 1, 5)),
            ram=0,
            disk=0,
        )
        for n in range(chance.randint(1, 4))
    ]
    images = [make_image('plain'), make_image('keyed', LOCK)]
    return AuditedCloud.of(
        make_snapshot(
            aggregates,
            nodes,
            flavors=flavors,
            images=images[: chance.randint(1, 2)],
        ),
        CONF,
    )


def after(cloud, repairs):
    """Return the cloud after repairs."""
    todo = dict.fromkeys(c for repair in repairs for c in repair.commands)
    # As an operator who does all that is printed.
    ordered = sorted(todo, key=lambda each: (each,) == commands.SYNC)
    states = outcome.outcomes(
        cloud.snapshot, tuple(ordered), Pipeline(cloud.filters)
    )
    *_, snapshot = cloud.snapshot, *states
    return dataclasses.replace(cloud, snapshot=snapshot)


def hosts_of(cloud, projects=(None,), in_use=False):
    """Return the hosts of each flavor, with each image, in projects."""
    pipeline = Pipeline((*cloud.running, *cloud.mirrors))
    questions = Questions(cloud.snapshot, pipeline, cloud.requests)
    offers = Offers(cloud.snapshot, in_use)
    return {
        (flavor.name, image and image.name, project): offers.hosts(
            questions.of(flavor, image, project)
        )
        for flavor in cloud.snapshot.flavors
        for image in (None, *cloud.snapshot.images)
        for project in projects
    }


PROJECTS = (None, 'p1', 'p2')


def synced(cloud):
    """Return the cloud after sync."""
    return dataclasses.replace(
        cloud,
        snapshot=outcome.synced(cloud.snapshot, Pipeline(cloud.filters)),
    )


def gained(before, now):
    """Return who has which hosts now, and had them not before."""
    return {asker: now.get(asker, frozenset()) - had
            for asker, had in before.items()}  # fmt: skip


def check_named(cloud, repairs, together):
    """Check that all who are let in are named of one of the repairs."""
    worlds = (lambda one: one, synced)
    named = {}
    effects = Effects.of(cloud)
    for repair in repairs:
        compared = effects.compared(repair.commands)
        for asker, hosts in (*compared.gains.items(), *repair.together):
            key = asker.flavor, asker.image, asker.project
            named[key] = named.get(key, frozenset()) | hosts
    for world in worlds:
        before = hosts_of(world(cloud), PROJECTS)
        more = gained(before, hosts_of(world(together), PROJECTS))
        for (flavor, image, project), hosts in more.items():
            said = frozenset().union(
                *(
                    named.get((flavor, some_image, some_project), frozenset())
                    for some_image in (None, image)
                    for some_project in (None, project)
                )
            )
            assert hosts <= said, (flavor, image, project)


def check_nobody_stranded(cloud, together):
    """Check that all who had hosts have one, if sync leaves them one."""
    now = hosts_of(together)
    # Sync carries out what the tags say, whoever loses a host by it.
    later = hosts_of(synced(cloud))
    for asker, hosts in hosts_of(cloud).items():
        if hosts and later[asker]:
            assert now.get(asker, True) or hosts_of(synced(together))[asker]


def check_taken(cloud, repair):
    """Check that Nova refuses no step of a repair."""
    assert not list(
        outcome.refused_steps(
            cloud.snapshot, repair.commands, Pipeline(cloud.filters)
        )
    )


@pytest.mark.parametrize('number', range(CLOUDS))
def test_all_first_repairs_of_the_audit_hold_together(number):
    cloud = random_cloud(number)
    findings = trial.held(cloud, audit(cloud), Effects.of(cloud))
    first = [each.repairs[0] for each in findings if each.repairs]
    repaired = after(cloud, first)
    left = {(each.kind, each.subject) for each in audit(repaired)}
    for each in findings:
        todo = each.repairs[0].commands if each.repairs else ()
        if todo and todo != commands.SYNC:
            assert (each.kind, each.subject) not in left
            check_taken(cloud, each.repairs[0])
        for part in request_repairs.parts(todo) if len(todo) > 1 else ():
            # Without it the problem is there, or somebody gains less.
            rest = [c for c in todo if c not in part]
            if rest:
                without = after(cloud, [Repair(tuple(rest))])
                assert (
                    (each.kind, each.subject)
                    in {(f.kind, f.subject) for f in audit(without)}
                ) or hosts_of(without, PROJECTS) != hosts_of(
                    after(cloud, each.repairs[:1]), PROJECTS
                )
    check_nobody_stranded(cloud, repaired)
    check_named(cloud, first, repaired)


@pytest.mark.parametrize('number', range(CLOUDS))
def test_each_repair_of_the_audit_holds_alone(number):
    """An operator chooses one of them."""
    cloud = random_cloud(number)
    findings = audit(cloud)
    before = Counter((one.kind, one.subject) for one in findings)
    for each in trial.held(cloud, findings, Effects.of(cloud)):
        about = each.kind, each.subject
        for repair in each.repairs:
            if not repair.commands or repair.commands == commands.SYNC:
                continue
            repaired = after(cloud, [repair])
            left = Counter((one.kind, one.subject) for one in audit(repaired))
            assert left[about] < before[about]
            check_taken(cloud, repair)
            check_nobody_stranded(cloud, repaired)


@pytest.mark.parametrize('number', range(CLOUDS))
def test_many_repairs_hold_alone_too(number, monkeypatch):
    """What needs one other repair is found without trying each."""
    monkeypatch.setattr(trial, '_MOST_ALONE', 0)
    test_each_repair_of_the_audit_holds_alone(number)


@pytest.mark.parametrize('number', [12, 112, 125])
def test_a_repair_needs_no_other_one(number):
    """Parts were left out that only the repairs of others replaced."""
    test_each_repair_of_the_audit_holds_alone(number)


def test_repairs_that_strand_servers_together_take_few_audits(monkeypatch):
    """A flavor with the keys to two hosts would have none."""
    traits = [f'CUSTOM_LICENSE_{number}' for number in range(16)]
    cloud = AuditedCloud.of(
        make_snapshot(
            [
                make_aggregate(f'a{n}', {f'trait:{t}': 'required'}, [f'h{n}'])
                for n, t in enumerate(traits)
            ],
            [
                make_compute_node('open'),
                *(
                    make_compute_node(f'h{n}', traits=[t])
                    for n, t in enumerate(traits)
                ),
            ],
            flavors=[make_flavor('license')],
        ),
        CONF,
    )
    findings = audit(cloud)
    [*given] = [each.repairs[0].commands for each in findings]
    assert len(given) == 16
    audits = []
    monkeypatch.setattr(
        trial, 'audit', lambda *some: audits.append(some) or audit(*some)
    )
    tried = trial.held(cloud, findings, Effects.of(cloud))
    held = [each.repairs[0].commands for each in tried]
    assert held[0] == given[0]
    assert not set(held[1:]) & set(given)
    assert len(audits) < 8


@pytest.mark.parametrize('number', range(CLOUDS))
def test_repairs_compared_together_do_what_each_does_alone(number):
    chance = random.Random(number)
    hosts = [f'h{n}' for n in range(7)]
    aggregates = [
        make_aggregate(
            f'a{n}',
            {**chance.choice(TAGS), **chance.choice(TAGS)},
            chance.sample(hosts, chance.randint(1, 2)),
            id=n,
        )
        for n in range(1, 7)
    ]
    # A host may have no compute node, and one has two.
    missing = chance.randint(0, 1)
    nodes = [
        make_compute_node(host, traits=chance.choice(([LICENSED], [])))
        for host in hosts[missing:]
    ]
    second = make_compute_node('h6-second')
    snapshot = make_snapshot(
        aggregates,
        (*nodes, dataclasses.replace(second, host='h6')),
        flavors=[make_flavor('f1'), make_flavor('f2', chance.choice(SPECS))],
        images=[make_image('keyed', LOCK)],
        mirror=not missing,
    )
    repairs = [
        commands.unset(aggregate, key)
        for aggregate in aggregates
        for key in aggregate.metadata
    ]
    repairs += [
        (commands.set_value(aggregate, *tag),)
        for aggregate in aggregates
        for tag in (('trait:CUSTOM_B', 'required'), ('filter_tenant_id', 'p3'))
    ]
    chance.shuffle(repairs)
    alone, together = (
        Effects.of(AuditedCloud.of(snapshot, CONF)) for _ in '12'
    )
    together.compare(repairs[::2])
    together.compare(repairs[1::2])
    for todo in repairs:
        assert together.compared(todo) == alone.compared(todo)


@pytest.mark.parametrize('number', range(CLOUDS))
def test_each_repair_of_an_explanation_holds(number):
    cloud = random_cloud(number)
    for flavor in cloud.snapshot.flavors:
        for image in (None, *cloud.snapshot.images):
            request = cloud.requests.new(flavor, image, 'p1')
            asker = flavor.name, image and image.name, 'p1'
            if hosts_of(cloud, ['p1'], in_use=True)[asker]:
                continue
            repairs = request_repairs.mendings(Effects.of(cloud), request)
            # It has a repair, or says that there is none.
            assert repairs
            for repair in repairs:
                if repair.commands:
                    check_explained(cloud, asker, repair)


def check_explained(cloud, asker, repair):
    """Check a repair of an explanation."""
    repaired = after(cloud, [repair])
    assert hosts_of(repaired, ['p1'], in_use=True)[asker]
    check_taken(cloud, repair)
    check_nobody_stranded(cloud, repaired)
    check_named(cloud, [repair], repaired)
    for part in request_repairs.parts(repair.commands):
        rest = tuple(c for c in repair.commands if c not in part)
        without = after(cloud, [Repair(rest)])
        assert not hosts_of(without, ['p1'], in_use=True)[asker]


def left(cloud):
    """Return the cloud after its first host has left all aggregates."""
    first, *others = cloud.snapshot.providers
    first = dataclasses.replace(first, aggregates=frozenset())
    return dataclasses.replace(
        cloud,
        snapshot=dataclasses.replace(
            cloud.snapshot, providers=(first, *others)
        ),
    )


@pytest.mark.parametrize('number', range(CLOUDS))
def test_offers_after_a_change_are_those_of_the_changed_cloud(number):
    cloud = random_cloud(number)
    known = Offers(cloud.snapshot)
    pipeline = Pipeline((*cloud.running, *cloud.mirrors))
    for change in (lambda one: one, left, synced, synced):
        cloud = change(cloud)
        questions = Questions(cloud.snapshot, pipeline, cloud.requests)
        known = Offers(cloud.snapshot, before=known)
        asked = [
            questions.of(flavor, image, project)
            for flavor in cloud.snapshot.flavors
            for image in (None, *cloud.snapshot.images)
            for project in PROJECTS
        ]
        offers = Offers(cloud.snapshot)
        assert [*map(known.hosts, asked)] == [*map(offers.hosts, asked)]
    # As is taken for granted of the cloud after sync.
    copied = dataclasses.replace(cloud.snapshot)
    assert not outcome.planned(copied, Pipeline(cloud.filters)).pending
