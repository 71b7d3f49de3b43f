# SPDX-License-Identifier: Apache-2.0
"""The filter isolate_tenants."""

import pytest

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.isolate_tenants import IsolateTenants
from isolate_aggregates.request import Flavor, Request

OPEN = Aggregate('uuid-open', 'open', {'tenant_id': 'a'})
ONE = Aggregate('uuid-one', 'one', {'filter_tenant_id': 'a'})
LIST = Aggregate('uuid-list', 'list', {'filter_tenant_id': 'a, b ,c'})
KEYS = Aggregate(
    'uuid-keys', 'keys', {'filter_tenant_id': 'a', 'filter_tenant_id2': 'd'}
)
EMPTY = Aggregate('uuid-empty', 'empty', {'filter_tenant_id': ''})
INDEX = AggregateIndex([OPEN, ONE, LIST, KEYS, EMPTY])


def conclusions(project):
    request = Request(Flavor('f'), project_id=project)
    return list(IsolateTenants()(request, INDEX))


@pytest.mark.parametrize(
    ('project', 'closed'),
    [
        pytest.param('a', (EMPTY,), id='named everywhere'),
        pytest.param('b', (ONE, KEYS, EMPTY), id='one of a list'),
        pytest.param('d', (ONE, LIST, EMPTY), id='a second key'),
        pytest.param('x', (ONE, LIST, KEYS, EMPTY), id='named nowhere'),
        pytest.param('', (ONE, LIST, KEYS, EMPTY), id='an empty project'),
        pytest.param(None, (ONE, LIST, KEYS, EMPTY), id='no project'),
        pytest.param('a, b ,c', (ONE, LIST, KEYS, EMPTY), id='not a list'),
    ],
)
def test_an_aggregate_that_names_projects_is_closed_to_the_others(
    project, closed
):
    [found] = conclusions(project)
    assert found.aggregates == closed


def test_the_reason_names_project_and_aggregates():
    [found] = conclusions('b')
    assert found.reason == (
        'aggregates empty, keys, one: kept for other projects; project b is '
        'not among those named by filter_tenant_id'
    )
