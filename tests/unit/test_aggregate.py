# SPDX-License-Identifier: Apache-2.0
"""The projects that may use the aggregate of a reservation."""

import pytest

from isolate_aggregates.aggregates.aggregate import Aggregate, grants

OWNER = 'blazar:owner'


@pytest.mark.parametrize(
    ('metadata', 'project', 'granted'),
    [
        pytest.param({OWNER: 'p1'}, 'p1', True, id='owner'),
        pytest.param({OWNER: 'p1', 'p2': 'True'}, 'p2', True, id='named'),
        pytest.param({OWNER: 'p1'}, 'p2', False, id='another project'),
        pytest.param({OWNER: 'p1', 'p2': ''}, 'p2', False, id='empty value'),
        pytest.param({OWNER: ''}, '', False, id='neither has an id'),
        pytest.param({}, None, False, id='no owner and no project'),
    ],
)
def test_a_reservation_opens_to_its_owner_and_named_projects(
    metadata, project, granted
):
    aggregate = Aggregate('u', 'lease', metadata)
    assert grants(aggregate, project, OWNER) is granted
