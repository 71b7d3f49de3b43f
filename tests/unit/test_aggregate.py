# SPDX-License-Identifier: Apache-2.0
"""The projects that may use the aggregate of a reservation."""

from cases import cases

from isolate_aggregates.aggregates.aggregate import Aggregate, grants

OWNER = 'blazar:owner'


@cases(
    ('metadata', 'project', 'granted'),
    {
        'owner': ({OWNER: 'p1'}, 'p1', True),
        'named': ({OWNER: 'p1', 'p2': 'True'}, 'p2', True),
        'another project': ({OWNER: 'p1'}, 'p2', False),
        'empty value': ({OWNER: 'p1', 'p2': ''}, 'p2', False),
        'neither has an id': ({OWNER: ''}, '', False),
        'no owner and no project': ({}, None, False),
    },
)
def test_a_reservation_opens_to_its_owner_and_named_projects(
    metadata, project, granted
):
    aggregate = Aggregate('u', 'lease', metadata)
    assert grants(aggregate, project, OWNER) is granted
