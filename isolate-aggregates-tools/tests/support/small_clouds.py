# SPDX-License-Identifier: Apache-2.0
"""Small clouds for testing filters."""

from function_filter import FunctionFilter

from isolate_aggregates.filters.constraints import Forbid
from isolate_aggregates_tools import testing
from isolate_aggregates_tools.placement.provider import Inventory

LOCKED = testing.make_aggregate(
    'locked', {'trait:CUSTOM_KEY': 'required'}, ['cn1']
)
OPEN = testing.make_aggregate('open', hosts=['cn1', 'cn2'])
TWO = testing.make_snapshot(
    [LOCKED, OPEN],
    [testing.make_compute_node('cn1'), testing.make_compute_node('cn2')],
)

# A tree with an aggregate on a lower level, and one that shares its disks.
RACK = testing.make_aggregate('rack', hosts=['cn3', 'cn4'])
NESTED = testing.make_snapshot(
    [RACK],
    [
        testing.make_tree(
            testing.make_compute_node('cn3', inventories={}),
            testing.make_tree(
                testing.make_provider(
                    'numa0',
                    inventories={'VCPU': 4, 'MEMORY_MB': 4096},
                    usages={'VCPU': 1},
                    traits=['HW_CPU_X86_AVX'],
                    aggregates=['11111111-1111-4111-8111-111111111111'],
                ),
                testing.make_provider('nic', inventories={'CUSTOM_VF': 2}),
            ),
            testing.make_provider(
                'numa1',
                inventories={'VCPU': Inventory(4, reserved=1), 'MEMORY_MB': 9},
                traits=['HW_CPU_X86_AVX', 'CUSTOM_B', 'CUSTOM_A'],
            ),
        ),
        testing.make_compute_node(
            'cn4',
            inventories={
                'VCPU': Inventory(
                    8, 2, min_unit=1, max_unit=4, allocation_ratio=1.5
                ),
                'MEMORY_MB': 4096,
            },
            traits=['COMPUTE_STATUS_DISABLED'],
        ),
        testing.make_provider(
            'disks',
            inventories={'DISK_GB': 1000},
            traits=['MISC_SHARES_VIA_AGGREGATE'],
            aggregates=[RACK],
        ),
    ],
)


@FunctionFilter
def forbid_locked(request, aggregates):
    yield Forbid(aggregates.with_key('trait:CUSTOM_KEY'), 'is locked')
