# SPDX-License-Identifier: Apache-2.0
"""The aggregates that a rollup covers, according to Placement."""

from collections.abc import Callable

from http_fakes import AT_ONCE, PLACEMENT, client, placement_with
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


def load(http: requests_mock.Mocker, members: dict[str, set[str]]) -> None:
    """Mock a Placement; these are the aggregates of each provider."""
    placement_with(
        http,
        *(
            Provider(name, name, aggregates=frozenset(aggregates))
            for name, aggregates in members.items()
        ),
    )


def queries(http: requests_mock.Mocker) -> list[list[str]]:
    """Return the aggregates in each query."""
    return [
        request.qs['member_of'][0].removeprefix('in:').split(',')
        for request in http.request_history
        if request.path == '/resource_providers'
    ]


def providers_read(http: requests_mock.Mocker) -> list[str]:
    """Return the providers whose aggregates were read."""
    return [
        request.path.split('/')[2]
        for request in http.request_history
        if request.path.endswith('/aggregates')
    ]


@pytest.fixture
def covered() -> Callable[..., frozenset[str]]:
    """Return the aggregates that the rollup covers."""
    connection = PlacementClient(client(PLACEMENT), AT_ONCE)

    def ask(max_length: int = 1_000) -> frozenset[str]:
        members = PlacementMembers(lambda: connection, max_length)
        coverage = members.coverage(ALL)
        # It is verified once, and there is nothing to wait for.
        assert members.coverage(ALL) is coverage
        assert not members.wait(members.use([ALL]))
        assert coverage.verified == coverage.possible
        return coverage.verified

    return ask


def test_a_rollup_covers_aggregates_whose_members_it_has(http, covered):
    load(
        http,
        {
            'in-both': {A, B, ROLLUP},
            'straggler': {B, C},
            'elsewhere': {'other'},
        },
    )
    assert covered() == {A, D, E}
    assert providers_read(http) == ['straggler']
    assert len(queries(http)) == 1


@pytest.mark.parametrize(
    ('stragglers', 'coverage'), [(20, {B, C, D, E}), (21, frozenset())]
)
def test_many_stragglers_are_not_read(http, covered, stragglers, coverage):
    load(http, {f'p{n}': {A} for n in range(stragglers)})
    assert covered() == coverage
    assert len(providers_read(http)) == (stragglers if coverage else 0)


def test_many_stragglers_leave_other_aggregates_covered(http, covered):
    load(http, {f'p{n}': {A} for n in range(21)} | {'q': {D}})
    assert covered(AT_MOST_TWO) == {C, E}


@pytest.mark.parametrize(
    ('max_length', 'expected'),
    [
        (AT_MOST_TWO, [[A, B], [C, D], [E]]),
        (AT_MOST_TWO - 1, [[A], [B], [C], [D], [E]]),
        # Shorter is not possible.
        (1, [[A], [B], [C], [D], [E]]),
    ],
)
def test_no_query_exceeds_the_limit(http, covered, max_length, expected):
    load(http, {})
    covered(max_length)
    assert queries(http) == expected


def test_a_failing_placement_is_an_error(covered, http):
    http.get(requests_mock.ANY, status_code=500)
    with pytest.raises(exception.ServiceError):
        covered()


def test_a_snapshot_gives_the_same_coverage():
    members = SnapshotMembers(
        [
            Provider('1', 'in-both', aggregates=frozenset([A, B, ROLLUP])),
            Provider('2', 'straggler', aggregates=frozenset([B, C])),
            Provider('3', 'elsewhere', aggregates=frozenset(['other'])),
        ]
    )
    coverage = members.coverage(ALL)
    assert coverage.verified == coverage.possible == {A, D, E}
