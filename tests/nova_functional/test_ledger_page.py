# SPDX-License-Identifier: Apache-2.0
"""What the page on ledgers shows works on a real Nova."""

from base import host_of
from page_cloud import PageTest

from isolate_aggregates_tools.ledger import chain

LOCK = 'trait:CUSTOM_LICENSED_WINDOWS'


class LedgerPageTest(PageTest):
    """A cloud with the aggregate of the page."""

    RUNNER = 'tests/nova_functional/test_ledger_page.py'

    def test_the_commands_of_the_page_work(self):
        self.give_trait('host1', LOCK.removeprefix('trait:'))
        self.aggregate('windows', ['host1'], {LOCK: 'required'})
        server = self.boot(self.flavor({LOCK: 'required'}))
        assert host_of(server) == 'host1'
        folder = str(self.config.parent)
        self.play(
            'admin/ledger.rst',
            typed_values={'/var/lib/isolate-aggregates': folder},
        )
        path = f'{folder}/ledger.jsonl'
        lines = list(chain.lines(chain.files(path)[0]))
        # One of each program; none of them has left the file locked.
        assert len(lines) == 2
        assert {
            placement['host']
            for line in lines
            for placement in line.document['servers'].values()
        } == {'host1'}
        document = self.run_command(
            *('ledger', '--lock', LOCK, '--file', path, '-f', 'json'),
            *('--since', '2026-01-01'),
        ).document
        [stay] = document['stays']
        assert (stay['server'], stay['host']) == (server['id'], 'host1')
        # As tagged at last.
        assert document['peaks']['cores']['number'] == 32
        assert document['peaks']['sockets']['number'] == 2
