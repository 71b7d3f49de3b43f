# SPDX-License-Identifier: Apache-2.0
"""Explanations agree with a real Placement.

Each example is a random cloud in a real Placement in this process, and a
random request with conclusions of filters. Every statement of the explanation
is verified by queries to Placement without some of the requirements.

A dropped amount is replaced by a placeholder resource class of which there is
always enough; the cloud in Placement has these classes too. The known bugs of
Placement are patched, as in ``test_simulator_differential``.

With ``THOROUGH=1`` there are ten times as many clouds.
"""

import copy
import dataclasses
import itertools

from hypothesis import event, given, reject
from hypothesis import strategies as st
import placement_repairs
import placement_rows
import pytest
import random_clouds
from thorough import examples

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.filters.constraints import (
    Destination,
    Forbid,
    Refuse,
    Require,
)
from isolate_aggregates_tools import nova_candidates, ranges
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.embedded import embedded_client
from isolate_aggregates_tools.explain import explain
from isolate_aggregates_tools.explain import groups as host_groups
from isolate_aggregates_tools.explain.requirements import FromNode
from isolate_aggregates_tools.explain.splitting import DividedRequest
from isolate_aggregates_tools.placement.group import (
    RequestGroup,
    ResourceRequest,
)
from isolate_aggregates_tools.placement.provider import Inventory
from isolate_aggregates_tools.request import constraints
from isolate_aggregates_tools.request.constraints import (
    ForbidRootTrait,
    InTree,
)

# The most sets of requirements to try when searching for smaller remedies.
MOST_SETS = 30

AGGREGATES = {
    uuid: Aggregate(uuid, f'aggregate-{number}')
    for number, uuid in enumerate(random_clouds.AGGREGATES)
}


@st.composite
def clouds(draw):
    """A cloud whose trees are compute nodes, unless they share.

    A candidate does not name its host. If only whole trees share, the host is
    the one whose resources it uses.
    """
    return tuple(
        dataclasses.replace(
            provider,
            traits=provider.traits - {random_clouds.SHARES},
        )
        if provider.parent
        else dataclasses.replace(
            provider, host=None if provider.is_sharing else provider.name
        )
        for provider in draw(random_clouds.clouds())
    )


traits = random_clouds.TRAITS
aggregates = random_clouds.some(random_clouds.AGGREGATES, 1)


@st.composite
def groups(draw, suffix, uuids):
    """A request group with a few conditions."""
    wishes = draw(
        random_clouds.some(
            ['required', 'any', 'forbidden', 'in', 'outside', 'tree'], 0, 1
        )
    )
    classes = draw(random_clouds.some(random_clouds.CLASSES, 1, 2))
    group = RequestGroup(
        suffix,
        {rc: draw(st.sampled_from([1, 1, 1, 2, 3, 15])) for rc in classes},
    )
    required = draw(random_clouds.some(traits, 1))
    if 'required' in wishes:
        group.required_traits.update(required)
    if 'forbidden' in wishes:
        group.forbidden_traits.add(draw(st.sampled_from(traits)))
    if 'any' in wishes:
        group.any_traits.append(frozenset(draw(random_clouds.some(traits, 2))))
    if 'in' in wishes:
        group.aggregates.append(frozenset(draw(aggregates)))
    if 'outside' in wishes:
        group.forbidden_aggregates.update(draw(aggregates))
    # For the group without a suffix, only filters restrict the tree.
    if suffix and 'tree' in wishes:
        group.in_tree = draw(st.sampled_from(uuids))
    return group


@st.composite
def requests(draw, uuids):
    """A request as the sum of up to three groups."""
    suffixes = draw(
        st.sampled_from(
            [[''], [''], [''], ['', '1'], ['1', '2'], ['', '1', '2']]
        )
    )
    request = ResourceRequest(
        {suffix: draw(groups(suffix, uuids)) for suffix in suffixes},
        group_policy=draw(st.sampled_from(['none', 'isolate'])),
    )
    if '2' in suffixes and draw(st.booleans()):
        request.same_subtree.append(frozenset({'1', '2'}))
    request.root_required.update(
        draw(random_clouds.plainly((), [(trait,) for trait in traits], 9))
    )
    return request


def members(uuids):
    return tuple(AGGREGATES[uuid] for uuid in uuids)


@st.composite
def destinations(draw, uuids, request):
    """What filters may have concluded."""
    of_requests = st.one_of(
        st.builds(ForbidRootTrait, st.sampled_from(traits), st.just('no')),
        random_clouds.plainly(None, [Refuse('refused')], 9),
    )
    of_groups = st.one_of(
        st.builds(Forbid, aggregates.map(members), st.just('locked')),
        st.builds(Forbid, aggregates.map(members), st.just('locked too')),
        st.builds(Require, aggregates.map(members), st.just('reserved')),
        st.builds(InTree, st.sampled_from(uuids), st.just('wanted')),
    )
    kinds = [of_requests, of_groups] if '' in request.groups else [of_requests]
    destination = Destination()
    for constraint in draw(st.lists(st.one_of(kinds), max_size=2)):
        if constraint:
            destination.add(constraint, 'a_filter')
    return destination


@st.composite
def worlds(draw):
    """A cloud and a request that makes sense."""
    cloud = draw(clouds())
    uuids = [provider.uuid for provider in cloud]
    request = draw(requests(uuids))
    destination = draw(destinations(uuids, request))
    try:
        DividedRequest(request, destination.conclusions)
    except exception.BadQuery:
        reject()
    return cloud, request, destination


def with_waived(cloud, divided):
    """Give providers the placeholder classes for dropped amounts."""
    roots = {}
    for provider in cloud:
        roots[provider.uuid] = roots.get(provider.parent, provider.uuid)
    inventories = {p.uuid: dict(p.inventories) for p in cloud}
    for amount in divided.amounts:
        classes = {amount.resource_class}
        if amount.suffix:
            classes |= divided.classes[amount.suffix]
        givers = {p.uuid for p in cloud if classes & p.inventories.keys()}
        trees = {roots[uuid] for uuid in givers}
        givers |= set(roots.values()) - trees
        for uuid in givers:
            inventories[uuid][amount.waived] = Inventory(1_000_000)
    return [
        dataclasses.replace(p, inventories=inventories[p.uuid]) for p in cloud
    ]


class Judge:
    """A real Placement that returns the hosts it offers.

    :param placement: The Placement, with the cloud in it.
    :param cloud: The cloud.
    :param divided: The request as the sum of its requirements.
    """

    def __init__(self, placement, cloud, divided):
        self._placement = placement
        self._divided = divided
        self._known = {}
        self.hosts = frozenset(p.uuid for p in cloud if p.host)

    def asked(self, request, destination):
        """Return the hosts that are offered for what a cloud would ask."""
        request = copy.deepcopy(request)
        try:
            constraints.add(destination, request)
        except exception.RequestRefused:
            return frozenset()
        return self._ask(request)[1]

    def offered(self, dropped=()):
        """Return the hosts that are offered without some requirements."""
        try:
            request = self._divided.without(dropped)
        except exception.RequestRefused:
            return frozenset()
        return self._ask(request)[0]

    def usable(self, dropped=()):
        """Return those of them that Nova does not skip."""
        try:
            request = self._divided.without(dropped)
        except exception.RequestRefused:
            return frozenset()
        return self._ask(request)[1]

    def _ask(self, request):
        query = request.to_querystring()
        if query not in self._known:
            answer = self._placement.allocation_candidates(request)
            candidates = answer.by_root(request)
            usable = {
                root
                for root, offers in candidates.items()
                if any(root in offer for offer in offers)
            }
            self._known[query] = (
                self.hosts & candidates.keys(),
                self.hosts & usable,
            )
        return self._known[query]

    def offered_with(self, places):
        """Return the hosts that are offered with only some requirements."""
        places = set(map(id, places))
        return self.offered(
            [c for c in self._divided.requirements if id(c) not in places]
        )


@pytest.fixture(scope='module')
def placement():
    with embedded_client() as client, placement_repairs.repaired():
        for trait in random_clouds.CUSTOM_TRAITS:
            client.send('PUT', f'/traits/{trait}')
        for resource_class in random_clouds.CUSTOM_CLASSES:
            client.send('PUT', f'/resource_classes/{resource_class}')
        yield client


@pytest.fixture
def explained(placement):
    """Explain a request; return the explanation and its judge."""

    def explain_and_load(cloud, request, destination):
        snapshot = Snapshot(
            'test',
            aggregates=tuple(AGGREGATES.values()),
            providers=cloud,
            traits=frozenset(random_clouds.CUSTOM_TRAITS),
        )
        explanation = explain(snapshot, request, destination)
        divided = explanation.divided
        placement_rows.load(with_waived(cloud, divided))
        return explanation, Judge(placement, cloud, divided)

    return explain_and_load


@examples(20)
@given(world=worlds())
def test_a_host_has_reasons_if_and_only_if_placement_does_not_offer_it(
    explained, world
):
    explanation, judge = explained(*world)
    candidates = judge.asked(*world[1:])
    skipped = judge.offered() - candidates
    assert judge.usable() == candidates
    event('candidates' if candidates else 'no candidates')
    assert {v.provider for v in explanation.verdicts} == judge.hosts
    for verdict in explanation.verdicts:
        assert bool(verdict.reasons) == (verdict.provider not in candidates)
        assert verdict.is_candidate == (verdict.provider in candidates)
        if verdict.provider in skipped:
            event('Nova skips a host')
            assert [r.text for r in verdict.reasons] == [
                nova_candidates.SKIPPED
            ]
        else:
            check_reasons(verdict, judge)
    for group in host_groups.hosts(explanation.verdicts):
        assert group.reasons == spelled_out(group)
    for count in explanation.counts:
        if isinstance(count.cause[0], FromNode):
            assert count.excludes == count.only == skipped
            continue
        freed = judge.usable(count.cause) - candidates
        if len(count.cause) == 1:
            assert count.only == freed
        else:
            event('several requirements exclude a host only together')
            assert count.only <= freed


def spelled_out(group):
    """Fold the reasons of all hosts of a group without abbreviation."""
    texts = {}
    for verdict in group.verdicts:
        for reason in verdict.reasons:
            kind = host_groups.kind_of(reason.cause)
            texts.setdefault(kind, []).append(reason.text)
    return tuple(
        text for found in texts.values() for text in ranges.alike(found)
    )


def check_reasons(verdict, judge):
    """Each reason excludes the host, is minimal, and none is missing."""
    named = [c for reason in verdict.reasons for c in reason.cause]
    assert verdict.provider in judge.offered(named)
    for reason in verdict.reasons:
        assert reason.text
        assert verdict.provider not in judge.offered_with(reason.cause)
        for needless in reason.cause:
            rest = [c for c in reason.cause if c is not needless]
            assert verdict.provider in judge.offered_with(rest)


@examples(6)
@given(world=worlds())
def test_the_counts_and_remedies_are_right_and_complete(explained, world):
    explanation, judge = explained(*world)
    requirements = explanation.divided.requirements
    for requirement, count in zip(
        requirements, explanation.counts, strict=False
    ):
        assert count.cause == (requirement,)
        excluded = judge.hosts - judge.offered_with([requirement])
        assert count.excludes == excluded
    places = {id(c): place for place, c in enumerate(requirements)}
    remedies = {
        frozenset(places[id(requirement)] for requirement in remedy)
        for remedy in explanation.remedies
    }
    if judge.usable() or not judge.hosts:
        assert not remedies
        return

    def helps(dropped):
        return bool(judge.usable([requirements[place] for place in dropped]))

    if judge.offered():
        # What a host has whose candidates Nova skips may be more than what is
        # asked for here: its reason says what would help.
        event('Nova skips all hosts')
        assert all(map(helps, remedies))
        return
    if not remedies:
        assert not helps(places.values())
        return
    [size] = {len(remedy) for remedy in remedies}
    event(f'a remedy of {size}')
    assert all(map(helps, remedies))
    for tried in range(1, size + 1):
        sets = list(itertools.combinations(places.values(), tried))
        if len(sets) > MOST_SETS:
            event('not all smaller sets are tried')
            break
        helping = {frozenset(dropped) for dropped in sets if helps(dropped)}
        assert helping == (remedies if tried == size else set())
