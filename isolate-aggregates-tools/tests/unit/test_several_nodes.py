# SPDX-License-Identifier: Apache-2.0
"""Nova changes one node of a compute service that has several.

It adds and removes the first one in Placement
(``nova.compute.api.AggregateAPI.add_host_to_aggregate``).
"""

from audit_clouds import LICENSED, LOCK, configuration
import pytest

from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates_tools.effect import effect
from isolate_aggregates_tools.repairs import commands, outcome
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_snapshot,
)

CONF = configuration()
NODES = ('node-1', 'node-2', 'node-3')


@pytest.fixture
def filters():
    return Pipeline(loading.load(CONF))


def cloud(hosts=()):
    """Return a cloud with one bare metal service."""
    return make_snapshot(
        [make_aggregate('lic', LOCK, hosts=hosts)],
        [
            make_compute_node(
                name,
                host='ironic',
                inventories={'VCPU': 1},
                traits=[LICENSED],
            )
            for name in NODES
        ],
        flavors=[make_flavor('bm', vcpus=1, ram=0, disk=0)],
    )


def members(snapshot):
    """Return the nodes in the aggregate in Placement."""
    return [each.name for each in snapshot.providers if each.aggregates]


def test_one_node_joins_and_sync_adds_the_others(filters):
    before = cloud()
    steps = commands.add_hosts(before.aggregates[0], ['ironic'])
    after = outcome.after(before, steps, filters)
    assert members(after) == ['node-1']
    found = effect(before, after, CONF)
    [flavor] = found.flavors
    assert flavor.slots == (3, 2)
    assert [
        each.problem
        for each in found.new_findings
        if each.kind == 'not-in-placement'
    ] == [
        'does not have ironic (nodes node-2, node-3) in Placement until sync '
        'adds them, as Nova adds only one node of a compute service'
    ]
    after = outcome.after(before, (*steps, *commands.SYNC), filters)
    assert members(after) == [*NODES]
    assert 'not-in-placement' not in {
        each.kind for each in effect(before, after, CONF).new_findings
    }


def test_one_node_leaves(filters):
    before = cloud(['ironic'])
    assert members(before) == [*NODES]
    steps = commands.remove_hosts(before.aggregates[0], ['ironic'])
    after = outcome.after(before, steps, filters)
    assert members(after) == ['node-2', 'node-3']
