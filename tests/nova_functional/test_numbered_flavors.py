# SPDX-License-Identifier: Apache-2.0
"""Flavors that take all resources in request groups with a suffix.

Nova adds aggregates to the group without one, and Placement rejects a group
without resources.
"""

from base import ISOLATE, NEUTRAL, CloudTest, host_of

NUMBERED = {
    **{f'resources:{name}': '0' for name in ('VCPU', 'MEMORY_MB', 'DISK_GB')},
    'resources1:VCPU': '1',
    'resources1:MEMORY_MB': '64',
}
LOCK = {'trait:CUSTOM_LICENSED_WINDOWS': 'required'}


class NumberedTest(CloudTest):
    OPTIONS = (ISOLATE,)

    def test_it_boots_while_no_aggregate_is_locked(self):
        server = self.boot(self.flavor(NUMBERED))
        assert host_of(server) == 'host1'

    def test_it_is_refused_with_the_reason_while_one_is(self):
        self.aggregate('win', ['host1'], LOCK)
        server = self.boot(self.flavor(NUMBERED), status='ERROR')
        assert NEUTRAL in self.told_of(server)
        assert (
            'so there is no group to which required or forbidden aggregates '
            'can be added; request at least one resource without a suffix'
        ) in self.log()
        assert 'status: 400' not in self.log()
        # One resource is enough, also if it is not that of the flavor.
        mixed = {**NUMBERED, 'resources:DISK_GB': '1'}
        assert host_of(self.boot(self.flavor(mixed))) == 'host2'
