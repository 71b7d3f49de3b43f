# SPDX-License-Identifier: Apache-2.0
"""What the page "Day 2" shows is what happens on a real Nova and Placement."""

import importlib.util
import pathlib
import sys

from base import IMAGE
from day_two import CommandTest

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / 'doc' / 'source' / 'admin' / 'day-two.rst'


def load(path):
    """Return a module of the other tests."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


docs = load(ROOT / 'tests' / 'unit' / 'test_docs.py')


class DayTwoPageTest(CommandTest):
    """The cloud of the page."""

    HOSTS = ('win-1', 'win-2', 'win-3', 'win-4', 'linux-1')

    def test_the_page_is_true(self):
        number = self.aggregate('win-hosts', ['win-1', 'win-2'])
        # There is an m1.small already.
        self._create_flavor(
            name='win.small', vcpu=1, memory_mb=2048, disk=20, ephemeral=0
        )
        image = self.glance.show(None, IMAGE)
        del image['id']
        self.glance.create(None, {**image, 'name': 'windows-2022'})
        shown = [
            command
            for block in docs.blocks(PAGE)
            if block.language == 'console'
            for command in block.commands()
        ]
        assert len(shown) > 12
        for words, expected in shown:
            if words[:3] == ['openstack', 'aggregate', 'add']:
                if words[-1] in ('win-3', 'win-4'):
                    self.admin_api.add_host_to_aggregate(number, words[-1])
            elif words[0] == 'isolate-aggregates':
                assert words[1:3] == ['--os-cloud', 'mycloud']
                finished = self.run_command(*words[3:])
                real = finished.err + finished.out
                assert docs.agrees(expected, real), f'{words}\n{real}'
