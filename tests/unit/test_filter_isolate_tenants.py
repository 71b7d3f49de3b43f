# SPDX-License-Identifier: Apache-2.0
"""The filter isolate_tenants."""

from cases import cases
import pytest

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.isolate_tenants import IsolateTenants
from isolate_aggregates.request import Flavor
from isolate_aggregates.testing import PlainRequest

OPEN = Aggregate('uuid-open', 'open', {'tenant_id': 'a'})
ONE = Aggregate('uuid-one', 'one', {'filter_tenant_id': 'a'})
LIST = Aggregate('uuid-list', 'list', {'filter_tenant_id': 'a, b ,c'})
KEYS = Aggregate(
    'uuid-keys', 'keys', {'filter_tenant_id': 'a', 'filter_tenant_id2': 'd'}
)
EMPTY = Aggregate('uuid-empty', 'empty', {'filter_tenant_id': ''})
INDEX = AggregateIndex([OPEN, ONE, LIST, KEYS, EMPTY])


def conclusions(project):
    request = PlainRequest(Flavor('f'), project_id=project)
    return list(IsolateTenants()(request, INDEX))


@cases(
    ('project', 'closed'),
    {
        'named everywhere': ('a', (EMPTY,)),
        'one of a list': ('b', (ONE, KEYS, EMPTY)),
        'a second key': ('d', (ONE, LIST, EMPTY)),
        'named nowhere': ('x', (ONE, LIST, KEYS, EMPTY)),
        'an empty project': ('', (ONE, LIST, KEYS, EMPTY)),
        'no project': (None, (ONE, LIST, KEYS, EMPTY)),
        'not a list': ('a, b ,c', (ONE, LIST, KEYS, EMPTY)),
    },
)
def test_an_aggregate_that_names_projects_is_closed_to_the_others(
    project, closed
):
    [conclusion] = conclusions(project)
    assert conclusion.aggregates == closed


@pytest.mark.parametrize(
    'metadata',
    [
        {'filter_tenant_id': 'a', 'owner': 'x'},
        {'filter_tenant_id': 'a', 'filter_tenant': 'x'},
    ],
)
def test_other_metadata_names_no_projects(metadata):
    request = PlainRequest(Flavor('f'), project_id='x')
    index = AggregateIndex([Aggregate('uuid', 'one', metadata)])
    [constraint] = IsolateTenants()(request, index)
    assert constraint.cause.kind == 'other-projects'


def test_empty_entries_of_a_list_are_not_projects():
    request = PlainRequest(Flavor('f'), project_id='')
    sloppy = Aggregate('uuid', 'one', {'filter_tenant_id': 'a, ,b,'})
    [constraint] = IsolateTenants()(request, AggregateIndex([sloppy]))
    assert constraint.aggregates == (sloppy,)


def test_without_closed_aggregates_there_is_no_constraint():
    request = PlainRequest(Flavor('f'), project_id='a')
    assert list(IsolateTenants()(request, AggregateIndex([ONE, OPEN]))) == []


def test_locks_are_sorted_by_project():
    locks = IsolateTenants().locks(INDEX)
    assert [(one.name, one.aggregates) for one in locks] == [
        ('filter_tenant_id=', (EMPTY,)),
        ('filter_tenant_id=a', (ONE,)),
        ('filter_tenant_id=a,b,c', (LIST,)),
        ('filter_tenant_id=a,d', (KEYS,)),
    ]


def test_an_unknown_project_is_reported():
    index = AggregateIndex(
        [Aggregate('uuid', 'one', {'filter_tenant_id1': 'a'})]
    )
    [constraint] = IsolateTenants()(PlainRequest(Flavor('f')), index)
    assert constraint.reason == (
        'aggregate one: reserved for the projects in filter_tenant_id; the '
        'request has no project'
    )


def test_the_reason_names_project_and_aggregates():
    [conclusion] = conclusions('b')
    assert conclusion.reason == (
        'aggregates empty, keys, one: reserved for the projects in '
        'filter_tenant_id; project b is not one of them'
    )
