# SPDX-License-Identifier: Apache-2.0
"""Each moment of a change in which somebody gets in or is refused is named."""

import dataclasses
import gc

from audit_clouds import LICENSED, LOCK, configuration
from hypothesis import given
from hypothesis import strategies as st
import pytest
from thorough import examples

from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates_tools.answers import scope
from isolate_aggregates_tools.answers.deciding import Question, Questions
from isolate_aggregates_tools.answers.offers import Offers
from isolate_aggregates_tools.answers.requests import Requests
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.effect import access_bounds, gaps
from isolate_aggregates_tools.mirrored import chain
from isolate_aggregates_tools.repairs import commands, outcome
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_image,
    make_snapshot,
)

CONF = configuration(
    request_filters=['isolate_aggregates', 'isolate_tenants'],
    limit_tenants_to_placement_aggregate=True,
)
PIPELINE = chain.as_in_nova(CONF)
REQUESTS = Requests(SnapshotCloud(Snapshot('')), CONF)
FILTERS = Pipeline(loading.load(CONF))

H1, H2, H3 = (make_compute_node(f'h{n}', traits=[LICENSED]) for n in (1, 2, 3))
H4 = make_compute_node('h4')
OPEN = make_aggregate('win', {}, ['h1'], id=7)
WIN = make_aggregate('win', LOCK, ['h1'], id=7)
PLAIN, KEYED = make_flavor('plain'), make_flavor('keyed', LOCK)
CLOSE = commands.set_value(OPEN, f'trait:{LICENSED}', 'required')
[UNLOCK] = commands.unset(WIN, f'trait:{LICENSED}')
KEY = commands.set_value(PLAIN, f'trait:{LICENSED}', 'required')
[NO_KEY] = commands.unset(KEYED, f'trait:{LICENSED}')
[JOIN] = commands.add_hosts(OPEN, ['h2'])
[LEAVE] = commands.remove_hosts(OPEN, ['h1'])


def found(snapshot, *todo):
    return gaps.gaps(snapshot, todo, CONF, FILTERS)


def said(snapshot, *todo):
    return list(gaps.sentences(todo, found(snapshot, *todo)))


def cloud(aggregate, *flavors, **more):
    return make_snapshot(
        [aggregate], [H1, H2, H3, H4], flavors=flavors, **more
    )


@pytest.mark.parametrize(
    ('snapshot', 'todo'),
    [
        (cloud(OPEN, PLAIN), [KEY, CLOSE]),
        (cloud(WIN, KEYED), [UNLOCK, NO_KEY]),
        (cloud(OPEN, PLAIN), [LEAVE, commands.delete_aggregate(OPEN)]),
        (
            cloud(OPEN, PLAIN),
            [commands.create_aggregate('new', None), KEY, CLOSE],
        ),
        (cloud(OPEN, PLAIN), []),
    ],
    ids=['key before lock', 'unlock before key', 'delete', 'new', 'nothing'],
)
def test_a_safe_order_has_no_gap(snapshot, todo):
    assert found(snapshot, *todo) == ()


def test_a_host_between_two_locks_is_open():
    a, b = (
        make_aggregate(
            name, LOCK, hosts, id=number, availability_zone=f'z-{name}'
        )
        for name, hosts, number in (('a', ['h1'], 1), ('b', [], 2))
    )
    snapshot = make_snapshot([a, b], [H1, H2], flavors=[PLAIN, KEYED])
    [join] = commands.add_hosts(b, ['h1'])
    [leave] = commands.remove_hosts(a, ['h1'])
    assert said(snapshot, leave, join) == [
        'After command 1 (openstack aggregate remove host 1 h1), servers of '
        'flavor plain may use h1, which they may use neither before nor after '
        'the change.'
    ]


def test_the_gaps_of_the_given_order_are_named():
    [sentence] = said(cloud(OPEN, PLAIN), CLOSE, KEY)
    assert sentence.startswith('After command 1 (openstack aggregate set')
    assert 'servers of flavor plain may not use h1, which' in sentence


def test_each_moment_with_a_gap_is_named_also_while_many_hosts_move():
    other = make_aggregate('other', LOCK, id=8)
    locked = make_aggregate('win', LOCK, ['h1', 'h2', 'h3'], id=7)
    todo = (
        *commands.remove_hosts(locked, ['h1', 'h2']),
        *commands.add_hosts(other, ['h1', 'h2']),
        *commands.remove_hosts(locked, ['h3']),
    )
    snapshot = make_snapshot([locked, other], [H1, H2, H3], flavors=[PLAIN])
    own = found(snapshot, *todo)
    assert {(gap.step, gap.let_in) for gap in own} == {
        (1, frozenset({'h1'})),
        (2, frozenset({'h1', 'h2'})),
        (3, frozenset({'h2'})),
    }
    assert found(snapshot, *todo[2:4], *todo[:2], todo[4]) == ()


@pytest.mark.parametrize('most', [access_bounds._MOST_ASKERS, 0])
def test_a_gap_for_an_image_or_project_names_it(monkeypatch, most):
    # Of too many servers, those with both an image and a project are left out.
    monkeypatch.setattr(access_bounds, '_MOST_ASKERS', most)
    image = make_image('windows', LOCK)
    snapshot = make_snapshot([WIN], [H1], images=[image])
    [lose] = commands.unset(image, f'trait:{LICENSED}')
    again = commands.set_value(image, f'trait:{LICENSED}', 'required')
    [sentence] = said(snapshot, lose, again)
    assert (
        'servers of any flavor without extra specs with image windows may not'
        in sentence
    )


def test_an_image_that_stays_as_it_is_is_asked_about():
    image = make_image('windows', LOCK)
    snapshot = make_snapshot([WIN], [H1], images=[image])
    lock = commands.set_value(WIN, 'trait:CUSTOM_OTHER', 'required')
    [unlock] = commands.unset(WIN, 'trait:CUSTOM_OTHER')
    # Servers without the image may not use the host at any time.
    [sentence] = said(snapshot, lock, unlock)
    assert 'with image windows may not use h1' in sentence


def test_a_project_that_is_named_only_in_between_is_asked_about():
    first, last = (
        commands.set_value(OPEN, 'filter_tenant_id', project)
        for project in ('p1', 'p2')
    )
    # Neither loses the hosts of the other.
    sentences = said(cloud(OPEN, PLAIN), first, last)
    assert [each.partition('), ')[2] for each in sentences] == [
        'servers of flavor plain in project p1 may not use h[2-4], which they '
        'may use before and after the change.',
        'servers of flavor plain in project p2 may not use h1, which they may '
        'use before and after the change.',
    ]


@pytest.mark.parametrize(('most', 'is_found'), [(4, True), (3, False)])
def test_of_too_many_servers_those_with_an_image_and_a_project_are_left_out(
    monkeypatch, most, is_found
):
    # Any flavor, with or without the image and the project, makes four.
    monkeypatch.setattr(access_bounds, '_MOST_ASKERS', most)
    image = make_image('windows', LOCK)
    own = make_aggregate('win', {**LOCK, 'filter_tenant_id': 'p1'}, ['h1'])
    snapshot = make_snapshot([own], [H1], images=[image])
    [lose] = commands.unset(image, f'trait:{LICENSED}')
    again = commands.set_value(image, f'trait:{LICENSED}', 'required')
    assert bool(found(snapshot, lose, again)) is is_found
    # With a project alone, they are asked about.
    own = make_aggregate('own', {'filter_tenant_id': 'p1'}, ['h1'])
    snapshot = make_snapshot([own], [H1], images=[image])
    give, back = (
        commands.set_value(own, 'filter_tenant_id', name)
        for name in ('p2', 'p1')
    )
    gaps_found = found(snapshot, give, back)
    assert 'p1' in {gap.asker.project for gap in gaps_found}


def test_a_project_that_no_command_names_is_asked_about():
    licensed = make_aggregate('a', {'filter_tenant_id': 'p2'}, ['h1'], id=1)
    other = make_aggregate('b', {}, ['h1'], id=2)
    snapshot = make_snapshot([licensed, other], [H1], flavors=[PLAIN])
    [leave] = commands.remove_hosts(other, ['h1'])
    give = commands.set_value(other, 'filter_tenant_id', 'p1')
    assert found(snapshot, leave, give) == ()
    # It is for both, and so for neither.
    [gap] = said(snapshot, give, leave)
    assert 'in project p2 may not use h1' in gap or 'p1' in gap


def test_a_flavor_stands_for_those_that_need_more_disk_in_all():
    small = make_flavor('small', {'a': 'b'}, disk=15)
    large = dataclasses.replace(small, name='large', disk=10, ephemeral=10)
    snapshot = cloud(OPEN, large, small)
    asked = access_bounds._flavors(snapshot, [snapshot])
    assert asked['small'] == ('large', 'small')
    assert 'large' not in asked


def test_many_hosts_join_once_their_servers_have_the_key():
    hosts = [f'h{number}' for number in range(40)]
    nodes = [make_compute_node(host, traits=[LICENSED]) for host in hosts]
    empty = make_aggregate('win', {}, id=7)
    snapshot = make_snapshot([empty], nodes, flavors=[PLAIN, make_flavor('x')])
    join = commands.add_hosts(empty, hosts)
    assert found(snapshot, CLOSE, KEY, *join) == ()


# Against the plainest way to compare.

TRAITS = [LICENSED, 'CUSTOM_B']
AGGREGATES = ['a', 'b']
HOSTS = ['h1', 'h2']


def tags():
    return st.fixed_dictionaries(
        {},
        optional={
            **{f'trait:{trait}': st.just('required') for trait in TRAITS},
            'filter_tenant_id': st.sampled_from(['p1', 'p2']),
        },
    )


def keys():
    return st.fixed_dictionaries(
        {}, optional={f'trait:{t}': st.just('required') for t in TRAITS}
    )


def some(values):
    return st.sets(st.sampled_from(values)).map(sorted)


@st.composite
def worlds(draw):
    snapshot = make_snapshot(
        [
            make_aggregate(name, draw(tags()), draw(some(HOSTS)), id=number)
            for number, name in enumerate(AGGREGATES, 1)
        ],
        [make_compute_node(host, traits=draw(some(TRAITS))) for host in HOSTS],
        flavors=[make_flavor(name, draw(keys())) for name in ('f', 'g')],
        images=[make_image('i', draw(keys()))],
        traits=TRAITS,
    )
    todo = draw(
        st.lists(
            st.one_of(
                st.sampled_from(snapshot.aggregates).flatmap(
                    lambda one: st.one_of(
                        tags().flatmap(lambda new: changes(one, new)),
                        st.sampled_from(HOSTS).map(
                            lambda host: moved(one, host)
                        ),
                    )
                ),
                st.sampled_from(snapshot.flavors).flatmap(
                    lambda one: st.sampled_from(TRAITS).map(
                        lambda trait: turned(one, f'trait:{trait}')
                    )
                ),
                st.sampled_from(TRAITS).map(
                    lambda trait: turned(snapshot.images[0], f'trait:{trait}')
                ),
            ),
            min_size=2,
            max_size=5,
            unique=True,
        )
    )
    return snapshot, tuple(todo)


def changes(aggregate, new):
    """One tag that is set or removed."""
    return st.sampled_from(
        [
            *(commands.set_value(aggregate, k, v) for k, v in new.items()),
            *commands.unset(aggregate, *aggregate.metadata),
            commands.set_value(aggregate, 'note', 'x'),
        ]
    )


def moved(aggregate, host):
    if host in aggregate.hosts:
        return commands.remove_hosts(aggregate, [host])[0]
    return commands.add_hosts(aggregate, [host])[0]


def turned(thing, key):
    """A key of a flavor or image that is added or removed."""
    is_image = hasattr(thing, 'properties')
    values = thing.properties if is_image else thing.extra_specs
    if key in values:
        return commands.unset(thing, key)[0]
    return commands.set_value(thing, key, 'required')


def hosts(snapshot, projects, answers):
    """Who may use what, asked in the plainest way.

    :param answers: Those for clouds that were asked about before.
    """
    key = repr(snapshot)
    if key not in answers:
        answers[key] = asked(snapshot, projects)
    return answers[key]


def asked(snapshot, projects):
    questions = Questions(snapshot, PIPELINE, REQUESTS)
    offers = Offers(snapshot)
    return {
        (flavor.name, image and image.name, project): offers.hosts(
            questions.of(flavor, image, project)
        )
        for flavor in scope.flavors(snapshot)
        for image in (None, *snapshot.images)
        for project in (None, *projects)
    }


def cost(snapshot, todo, answers):
    """The servers that are let in and refused."""
    projects = [p for p in ('p1', 'p2') if p in repr((snapshot, todo))]
    before, steps = hosts(snapshot, projects, answers), []
    last = snapshot
    for last in outcome.outcomes(snapshot, todo, FILTERS):
        steps.append(hosts(last, projects, answers))
    after = steps[-1]
    let_in = sum(
        len(step[who] - before[who] - after[who])
        for step in steps
        for who in step
    )
    refused = sum(
        len((before[who] & after[who]) - step[who])
        for step in steps
        for who in step
    )
    return let_in, refused


@given(worlds())
@examples(60)
def test_each_gap_is_found(world):
    snapshot, todo = world
    assert bool(found(snapshot, *todo)) == (cost(snapshot, todo, {}) != (0, 0))


def test_what_is_computed_in_between_is_not_kept():
    """Thousands of clouds in between would fill the memory otherwise."""
    before = cloud(OPEN, PLAIN)
    between = dataclasses.replace(before, aggregates=(WIN,))
    bounds = access_bounds.Bounds(
        before, [between, before], PIPELINE, REQUESTS
    )
    state = bounds.after(bounds.start, between)
    assert [*bounds.violations(state)]
    assert 'index' not in vars(between)


def test_what_is_asked_in_between_is_not_kept():
    snapshot = cloud(OPEN, PLAIN)
    bounds = access_bounds.Bounds(snapshot, [snapshot], PIPELINE, REQUESTS)
    state, counts = bounds.start, []
    for number in range(4):
        tagged = dataclasses.replace(OPEN, metadata={'number': str(number)})
        between = dataclasses.replace(snapshot, aggregates=(tagged,))
        state = bounds.after(state, between)
        gc.collect()
        counts.append(
            sum(isinstance(each, Question) for each in gc.get_objects())
        )
    assert counts[1:] == [counts[0]] * 3
