# SPDX-License-Identifier: Apache-2.0
"""What a record says about the conclusions of the request filters."""

import gc
import json
import weakref

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.decision import decide
from isolate_aggregates.filters.constraints import (
    Cause,
    Forbid,
    LazyForbid,
    Refuse,
    Require,
)
from isolate_aggregates.filters.contract import RequestFilter
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.isolate_tenants import IsolateTenants
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.filters.reservation_prefix import ReservationPrefix
from isolate_aggregates.record import closing, line_of, of_decision
from isolate_aggregates.testing import make_flavor, make_request

LICENSED = Aggregate(
    'u1', 'licensed', {'trait:A': 'required', 'trait:B': 'required'}
)
LEASE = Aggregate('u2', 'lease', {'reservation:1': 'true', 'x': 'y'})
THEIRS = Aggregate('u3', 'theirs', {'filter_tenant_id2': 'p1, p2'})
KEPT = ['reservation:1=true']
INDEX = AggregateIndex([LICENSED, LEASE, THEIRS])
FILTERS = {
    'isolate_aggregates': IsolateAggregates(),
    'reservation_prefix': ReservationPrefix(
        forbidden_prefixes=('reservation:',)
    ),
    'isolate_tenants': IsolateTenants(),
}


def decided(filters, index=INDEX, **request):
    return decide(make_request(**request), index, Pipeline(filters))


def of(*constraints, index=INDEX):
    """Return the decision of a filter that yields some constraints."""

    class Filter(RequestFilter):
        def __call__(self, request, aggregates):
            return constraints

    return decided({'mine': Filter()}, index)


def test_each_lock_is_named_that_the_request_does_not_open():
    request = {
        'flavor': make_flavor(extra_specs={'trait:A': 'required'}),
        'project_id': 'p3',
    }
    assert of_decision(decided(FILTERS, **request))['locks'] == [
        {
            'filter': 'isolate_aggregates',
            'cause': 'missing-traits',
            'aggregates': 1,
            'some': [
                {
                    'uuid': 'u1',
                    'name': 'licensed',
                    'locks': ['trait:B=required'],
                }
            ],
        },
        {
            'filter': 'reservation_prefix',
            'cause': 'no-reservation-named',
            'aggregates': 1,
            'some': [
                {
                    'uuid': 'u2',
                    'name': 'lease',
                    'locks': KEPT,
                }
            ],
        },
        {
            'filter': 'isolate_tenants',
            'cause': 'other-projects',
            'aggregates': 1,
            'some': [
                {
                    'uuid': 'u3',
                    'name': 'theirs',
                    'locks': ['filter_tenant_id2=p1, p2'],
                }
            ],
        },
    ]


def test_what_closes_a_host_is_only_what_it_is_in():
    decision = decided(FILTERS, project_id='p1')
    assert closing(decision, frozenset({'u2', 'u3'})) == [
        {
            'filter': 'reservation_prefix',
            'uuid': 'u2',
            'name': 'lease',
            'locks': KEPT,
        }
    ]


def test_a_host_in_none_of_the_required_aggregates_is_closed():
    decision = of(Require((LICENSED, LEASE), Cause('k', 'x')))
    assert closing(decision, frozenset({'u3'})) == [
        {'filter': 'mine', 'in_none_of': ['licensed', 'lease']}
    ]
    assert closing(decision, frozenset({'u2'})) == []


def test_of_many_aggregates_five_are_named_and_all_are_counted():
    many = tuple(Aggregate(f'u{n}', f'n{n}') for n in range(9))
    index = AggregateIndex(many)
    for constraint in (
        Forbid(many, Cause('k', 'x')),
        LazyForbid(
            frozenset(each.uuid for each in many),
            lambda: [Forbid((each,), Cause('k', 'x')) for each in many],
        ),
    ):
        [entry] = of_decision(of(constraint, index=index))['locks']
        assert entry['aggregates'] == 9
        assert [each['name'] for each in entry['some']] == [
            'n0', 'n1', 'n2', 'n3', 'n4',
        ]  # fmt: skip


def test_equal_locks_are_computed_once_for_a_snapshot():
    made = []

    def make():
        made.append(1)
        return [Forbid((LICENSED,), Cause('k', 'x'))]

    uuids, groups = frozenset({'u1'}), ((LICENSED,),)
    index = AggregateIndex([LICENSED])
    for _ in range(3):
        decision = of(LazyForbid(uuids, make, groups), index=index)
        assert of_decision(decision)['locks']
    assert len(made) == 1


def test_a_line_has_all_of_a_record_and_begins_with_its_schema():
    decision = of(
        Forbid((LICENSED,), Cause('k', 'x')),
        Require((LEASE, THEIRS), Cause('k"\n', 'x')),
    )
    found = of_decision(decision)
    record = {'schema': 's/1', **found, 'project': 'ü"\n', 'hosts': ['h']}
    line = line_of(record)
    assert json.loads(line) == record
    assert line.startswith('{"schema":"s/1"')
    assert line.isascii()
    assert '\n' not in line
    assert record['locks'] == found['locks']
    assert line_of({'schema': 's/1'}) == '{"schema":"s/1"}'


def test_the_json_of_equal_locks_is_made_once_for_a_snapshot():
    """Of several groups, too, which are one entry."""
    index = AggregateIndex([LICENSED, LEASE])
    groups = ((LICENSED,), (LEASE,))
    uuids = frozenset({'u1', 'u2'})
    parts = [
        of_decision(
            of(
                LazyForbid(
                    uuids,
                    lambda: [Forbid(each, Cause('k', 'x')) for each in groups],
                    groups,
                ),
                index=index,
            )
        )['locks']
        for _ in range(2)
    ]
    assert [len(part) for part in parts] == [1, 1]
    assert parts[0][0] is parts[1][0]
    assert parts[0][0].json is parts[1][0].json


def test_equal_conclusions_are_one_entry_and_change_none_of_them():
    one, two = (
        LazyForbid(
            frozenset({each.uuid}),
            lambda each=each: [Forbid((each,), Cause('k', 'x', ('trait:A',)))],
            ((each,),),
        )
        for each in (LICENSED, LEASE)
    )
    index = AggregateIndex([LICENSED, LEASE])
    for _ in range(2):
        [entry] = of_decision(of(one, two, index=index))['locks']
        assert entry['aggregates'] == 2
        assert [each['name'] for each in entry['some']] == [
            'licensed', 'lease',
        ]  # fmt: skip
    [entry] = of_decision(of(one, index=index))['locks']
    assert entry['aggregates'] == 1


def test_what_is_kept_of_a_snapshot_leads_back_to_no_request():
    """A filter of another package may have a cause that holds it."""

    class Holding:
        kind = 'held'
        locks = ('trait:A',)

        def __init__(self, request):
            self.request = request

    index = AggregateIndex([LICENSED])
    groups = ((LICENSED,),)
    request = make_request()
    constraint = LazyForbid(
        frozenset({'u1'}),
        lambda held=request: [Forbid((LICENSED,), Holding(held))],
        groups,
    )
    [lock] = of_decision(of(constraint, index=index))['locks']
    assert (lock['cause'], lock['some'][0]['locks']) == (
        'held',
        ['trait:A=required'],
    )
    is_alive = weakref.ref(request)
    del request, constraint
    gc.collect()
    assert is_alive() is None


def test_refusals_and_texts_are_limited():
    decision = of(*(Refuse(Cause('k', 'x' * 999)) for _ in range(9)))
    refusals = of_decision(decision)['refusals']
    assert len(refusals) == 5
    assert {len(each['reason']) for each in refusals} == {255}


def test_a_request_without_constraints_has_no_conclusions():
    assert of_decision(of()) == {}
