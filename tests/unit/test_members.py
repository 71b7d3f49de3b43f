# SPDX-License-Identifier: Apache-2.0
"""The aggregates that a rollup covers, according to Placement."""

from collections.abc import Callable
from typing import Any

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
        # The aggregates in each query.
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


@pytest.fixture
def placement(http: requests_mock.Mocker) -> FakePlacement:
    return FakePlacement(http)


@pytest.fixture
def covered() -> Callable[..., frozenset[str]]:
    """Return the aggregates that the rollup covers."""
    connection = PlacementClient(client(PLACEMENT), AT_ONCE)

    def ask(max_length: int = 1_000) -> frozenset[str]:
        known = PlacementMembers(lambda: connection, max_length)
        found = known.coverage(ALL)
        # It is verified once, and there is nothing to wait for.
        assert known.coverage(ALL) is found
        assert not known.wait(known.use([ALL]))
        assert found.verified == found.possible
        return found.verified

    return ask


def test_a_rollup_covers_aggregates_whose_members_it_has(placement, covered):
    placement.members = {
        'in-both': {A, B, ROLLUP},
        'straggler': {B, C},
        'elsewhere': {'other'},
    }
    assert covered() == {A, D, E}
    assert placement.asked_of == ['straggler']
    assert len(placement.asked) == 1


@pytest.mark.parametrize(
    ('stragglers', 'found'), [(20, {B, C, D, E}), (21, frozenset())]
)
def test_many_stragglers_are_not_read(placement, covered, stragglers, found):
    placement.members = {f'p{n}': {A} for n in range(stragglers)}
    assert covered() == found
    assert len(placement.asked_of) == (stragglers if found else 0)


def test_many_stragglers_leave_other_aggregates_covered(placement, covered):
    placement.members = {f'p{n}': {A} for n in range(21)} | {'q': {D}}
    assert covered(AT_MOST_TWO) == {C, E}


@pytest.mark.parametrize(
    ('max_length', 'asked'),
    [
        (AT_MOST_TWO, [[A, B], [C, D], [E]]),
        (AT_MOST_TWO - 1, [[A], [B], [C], [D], [E]]),
        # Shorter is not possible.
        (1, [[A], [B], [C], [D], [E]]),
    ],
)
def test_no_query_exceeds_the_limit(placement, covered, max_length, asked):
    covered(max_length)
    assert placement.asked == asked


def test_a_failing_placement_is_an_error(covered, http):
    http.get(requests_mock.ANY, status_code=500)
    with pytest.raises(exception.ServiceError):
        covered()


def test_a_snapshot_gives_the_same_coverage():
    known = SnapshotMembers(
        [
            Provider('1', 'in-both', aggregates=frozenset([A, B, ROLLUP])),
            Provider('2', 'straggler', aggregates=frozenset([B, C])),
            Provider('3', 'elsewhere', aggregates=frozenset(['other'])),
        ]
    )
    found = known.coverage(ALL)
    assert found.verified == found.possible == {A, D, E}
