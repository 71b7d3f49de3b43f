# SPDX-License-Identifier: Apache-2.0
"""What the page on ledgers shows works on a real Nova."""

from page_cloud import PageTest


class LedgerPageTest(PageTest):
    """A cloud with the aggregate of the page."""

    RUNNER = 'tests/nova_functional/test_ledger_page.py'

    def test_the_commands_of_the_page_work(self):
        self.aggregate('windows', ['host1'])
        self.play('admin/ledger.rst')
        [aggregate] = self.live_cloud().aggregates()
        assert aggregate.metadata == {
            'ledger:sockets': '2',
            'ledger:cores': '32',
        }
