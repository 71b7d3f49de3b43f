# SPDX-License-Identifier: Apache-2.0
"""What the page "Reservations" shows happens on a real Nova and Placement."""

from reservation_cloud import ReservationTest
from test_day_two_page import ROOT, docs

PAGE = ROOT / 'doc' / 'source' / 'admin' / 'reservations.rst'


class PageTest(ReservationTest):
    """The cloud of the page."""

    HOSTS = POOL = ('host1', 'host2')

    def test_the_page_is_true(self):
        self.done('host', 'disable', *self.HOSTS)
        shown = [
            command
            for block in docs.blocks(PAGE)
            if block.language == 'console'
            for command in block.commands()
            if command[0][1:3] == ['--os-cloud', 'mycloud']
        ]
        assert len(shown) > 8
        for words, expected in shown:
            finished = self.run_command(*words[3:])
            real = finished.err + finished.out
            assert docs.agrees(expected, real), f'{words}\n{real}'
