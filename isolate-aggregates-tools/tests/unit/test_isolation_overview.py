# SPDX-License-Identifier: Apache-2.0
"""What is behind a lock: hosts, and what their provider trees have."""

from isolate_aggregates.aggregates import Aggregate, Lock
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.locks.overview import (
    overview,
    usage_by_host,
)
from isolate_aggregates_tools.locks.usage import Usage
from isolate_aggregates_tools.placement.provider import Inventory, Provider

LEFT = Aggregate('uuid-left', 'left', hosts=frozenset({'cn2', 'cn1'}))
RIGHT = Aggregate('uuid-right', 'right', hosts=frozenset({'cn2', 'metal'}))
GONE = Aggregate('uuid-gone', 'gone', hosts=frozenset({'gone'}))
EMPTY = Aggregate('uuid-empty', 'empty')

ONE = Inventory(1)
CLOUD = Snapshot(
    origin='test',
    aggregates=(LEFT, RIGHT, GONE, EMPTY),
    providers=(
        Provider(
            'uuid-cn1',
            'cn1',
            host='cn1',
            inventories={
                'VCPU': Inventory(10, reserved=2, allocation_ratio=1.6),
                'DISK_GB': Inventory(100),
            },
            usages={'VCPU': 3},
        ),
        Provider(
            'uuid-numa',
            'numa',
            parent='uuid-cn1',
            inventories={'VCPU': Inventory(5)},
            usages={'VCPU': 1},
        ),
        Provider(
            'uuid-vf',
            'vf',
            parent='uuid-numa',
            inventories={'SRIOV_NET_VF': Inventory(8)},
        ),
        Provider(
            'uuid-cn2', 'cn2', host='cn2', inventories={'VCPU': Inventory(20)}
        ),
        Provider('uuid-n1', 'n1', host='metal', inventories={'CUSTOM_M': ONE}),
        Provider('uuid-n2', 'n2', host='metal', inventories={'CUSTOM_M': ONE}),
        Provider('uuid-nfs', 'nfs', inventories={'DISK_GB': Inventory(9000)}),
        Provider(
            'uuid-cn3', 'cn3', host='cn3', inventories={'VCPU': Inventory(40)}
        ),
    ),
)


def lock(*aggregates):
    return Lock('trait:', 'trait:CUSTOM_A', aggregates)


def test_a_lock_has_the_trees_of_the_hosts_of_its_aggregates():
    [found] = overview(CLOUD, [lock(LEFT)])
    assert found.lock == lock(LEFT)
    assert found.hosts == ('cn1', 'cn2')
    # (10 - 2) * 1.6 is 12.8, of which Placement gives 12.
    assert found.capacity == {
        'DISK_GB': Usage(free=100, used=0),
        'SRIOV_NET_VF': Usage(free=8, used=0),
        'VCPU': Usage(free=12 + 5 + 20 - 4, used=3 + 1),
    }
    assert found.capacity['VCPU'].total == 37


def test_a_host_in_several_aggregates_of_a_lock_counts_once():
    [found] = overview(CLOUD, [lock(LEFT, RIGHT)])
    assert found.hosts == ('cn1', 'cn2', 'metal')
    assert found.capacity['VCPU'] == Usage(free=33, used=4)
    assert found.capacity['CUSTOM_M'] == Usage(free=2, used=0)


def test_a_host_behind_several_locks_counts_for_each():
    left, right = overview(CLOUD, [lock(LEFT), lock(RIGHT)])
    assert left.capacity['VCPU'].total == 37
    assert right.capacity['VCPU'].total == 20


def test_hosts_that_placement_does_not_know_have_no_capacity():
    gone, empty = overview(CLOUD, [lock(GONE), lock(EMPTY)])
    assert (gone.hosts, gone.capacity) == (('gone',), {})
    assert (empty.hosts, empty.capacity) == ((), {})


def test_shared_resources_belong_to_no_host():
    assert usage_by_host(CLOUD).keys() == {'cn1', 'cn2', 'cn3', 'metal'}
    assert usage_by_host(CLOUD)['cn2'] == {'VCPU': Usage(free=20, used=0)}


def test_dedicated_cpus_behind_a_lock_are_in_the_table(run, write_cloud):
    path = write_cloud("""\
settings: {scheduler: {enable_isolated_aggregate_filtering: true}}
aggregates:
- {name: pinned, metadata: {'trait:CUSTOM_PINNED': required}, hosts: [p1]}
providers:
- {name: p1, inventories: {PCPU: 30, VCPU: 4}, usages: {PCPU: 10},
   traits: [CUSTOM_PINNED]}
""")
    result = run('lock', 'list', '--snapshot', str(path))
    heads, row = (
        [cell.strip() for cell in line.strip('|').split('|')]
        for line in result.out.splitlines()
        if line.startswith('|')
    )
    cells = dict(zip(heads, row, strict=True))
    assert cells['PCPU'] == '20 of 30 free'
    assert cells['VCPU'] == '4 of 4 free'
