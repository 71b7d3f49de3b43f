# SPDX-License-Identifier: Apache-2.0
"""For which aggregates a rollup may stand, and how often that is asked."""

from collections.abc import Callable
import gc
from typing import Any
import weakref

from http_fakes import AT_ONCE, PLACEMENT, client
import pytest
import requests_mock

from isolate_aggregates import exception
from isolate_aggregates.aggregates.rollups import Rollup
from isolate_aggregates.placement import group
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.placement.provider import Provider
from isolate_aggregates.query_limit import PlacementMembers, SnapshotMembers

A, B, C, D, E = (f'0000000{n}-0000-4000-8000-000000000000' for n in range(5))
ROLLUP = 'ffffffff-0000-4000-8000-000000000000'
ALL = Rollup('trait:CUSTOM_A', ROLLUP, frozenset([A, B, C, D, E]))
AT_MOST_TWO = group.forbidden_length(1) + group.forbidden_length(2)


class FakePlacement:
    """Resource providers and the aggregates they are members of."""

    def __init__(self, http: requests_mock.Mocker) -> None:
        self.members: dict[str, set[str]] = {}
        # The aggregates of each list that was asked for.
        self.asked: list[list[str]] = []
        self.asked_of: list[str] = []
        http.get(requests_mock.ANY, json=self._aggregates)
        http.get(f'{PLACEMENT}/resource_providers', json=self._providers)

    def _providers(self, request: Any, context: Any) -> dict[str, Any]:
        wanted, unwanted = (p.split(':')[1] for p in request.qs['member_of'])
        self.asked.append(wanted.split(','))
        return {
            'resource_providers': [
                {
                    'uuid': uuid,
                    'name': uuid,
                    'generation': 0,
                    'parent_provider_uuid': None,
                    'root_provider_uuid': uuid,
                }
                for uuid, aggregates in self.members.items()
                if aggregates & set(wanted.split(','))
                and unwanted not in aggregates
            ]
        }

    def _aggregates(self, request: Any, context: Any) -> dict[str, Any]:
        uuid = request.path.split('/')[2]
        self.asked_of.append(uuid)
        return {
            'aggregates': sorted(self.members[uuid]),
            'resource_provider_generation': 0,
        }


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def placement(http: requests_mock.Mocker) -> FakePlacement:
    return FakePlacement(http)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def know(clock: Clock) -> Callable[..., PlacementMembers]:
    """Make what asks Placement."""
    connection = PlacementClient(client(PLACEMENT), AT_ONCE)

    def make(max_length: int = 1_000) -> PlacementMembers:
        return PlacementMembers(
            lambda: connection, lambda: {A: frozenset('h')}, max_length, clock
        )

    return make


def test_a_rollup_stands_for_aggregates_whose_members_it_has(placement, know):
    placement.members = {
        'in-both': {A, B, ROLLUP},
        'straggler': {B, C},
        'elsewhere': {'other'},
    }
    assert know().covered(ALL) == {A, D, E}
    assert placement.asked_of == ['straggler']


@pytest.mark.parametrize(
    ('stragglers', 'covered'), [(20, {B, C, D, E}), (21, frozenset())]
)
def test_with_many_stragglers_none_is_looked_at(
    placement, know, stragglers, covered
):
    placement.members = {f'p{n}': {A} for n in range(stragglers)}
    assert know().covered(ALL) == covered
    assert len(placement.asked_of) == (stragglers if covered else 0)


def test_many_stragglers_in_some_aggregates_spoil_only_those(placement, know):
    placement.members = {f'p{n}': {A} for n in range(21)} | {'q': {D}}
    assert know(AT_MOST_TWO).covered(ALL) == {C, E}


@pytest.mark.parametrize(
    ('max_length', 'asked'),
    [
        (AT_MOST_TWO, [[A, B], [C, D], [E]]),
        (AT_MOST_TWO - 1, [[A], [B], [C], [D], [E]]),
        # Shorter is not possible.
        (1, [[A], [B], [C], [D], [E]]),
    ],
)
def test_no_query_is_longer_than_it_may_be(placement, know, max_length, asked):
    know(max_length).covered(ALL)
    assert placement.asked == asked


@pytest.mark.parametrize(
    ('members', 'lasts'),
    [
        pytest.param({'p': {A, ROLLUP}}, 30, id='whole'),
        pytest.param({'p': {A}}, 5, id='somebody may be mending it'),
    ],
)
def test_an_answer_is_used_for_a_while(placement, know, clock, members, lasts):
    placement.members = members
    known = know()
    first = known.covered(ALL)
    clock.now += lasts - 0.1
    placement.members = {'p': {B}}
    assert known.covered(ALL) == first
    assert len(placement.asked) == 1
    clock.now += 0.1
    assert known.covered(ALL) == {A, C, D, E}


def test_answers_about_several_rollups_are_kept_until_they_are_old(
    placement, know, clock
):
    known = know()
    other = Rollup('trait:CUSTOM_B', B, frozenset([C, D]))
    known.covered(ALL)
    known.covered(other)
    known.covered(ALL)
    assert len(placement.asked) == 2

    # The rollup of a lock that is no more.
    gone = weakref.ref(other)
    del other
    clock.now += 30
    known.covered(ALL)
    gc.collect()
    assert gone() is None


def test_what_placement_cannot_tell_is_an_error(know, http):
    http.get(requests_mock.ANY, status_code=500)
    with pytest.raises(exception.ServiceError):
        know().covered(ALL)


def test_hosts_are_those_of_the_aggregates(know):
    assert know().hosts() == {A: {'h'}}


def test_a_snapshot_tells_the_same():
    known = SnapshotMembers(
        [
            Provider('1', 'in-both', aggregates=frozenset([A, B, ROLLUP])),
            Provider('2', 'straggler', aggregates=frozenset([B, C])),
            Provider('3', 'elsewhere', aggregates=frozenset(['other'])),
        ],
        {A: frozenset('h')},
    )
    assert known.covered(ALL) == {A, D, E}
    assert known.hosts() == {A: {'h'}}
