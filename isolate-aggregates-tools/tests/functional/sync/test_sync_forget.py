# SPDX-License-Identifier: Apache-2.0
"""``sync --forget`` removes only what sync has added."""

import pytest
from sync_world import GOLD, LICENSED, uuid

from isolate_aggregates.aggregates import rollups
from isolate_aggregates_tools import marks
from isolate_aggregates_tools.operate.sync.plan import Part

BOTH = rollups.uuid_of(f'trait:{LICENSED}')
OTHERS = uuid(9, 'others')
MINE = {uuid(2, 'a'), uuid(2, 'b')}


@pytest.fixture(autouse=True)
def synced(world):
    """Two locked aggregates, and a host with unmarked traits."""
    world.add_host('h1', traits=[GOLD], aggregates=[OTHERS])
    world.add_host('h2')
    world.require('a', ['h1', 'h2'], LICENSED)
    world.require('b', ['h1'], LICENSED, GOLD)
    assert world.sync().is_complete
    assert BOTH in world.of('h1', 'aggregates') & world.of('h2', 'aggregates')


def test_forget_keeps_traits_and_removes_marks_and_rollups(world):
    result = world.sync(forget=True)
    assert result.is_complete
    assert sorted(f'{c.host}: {c.action}' for c in result.changes) == [
        'h1: remove mark',
        'h1: remove rollup',
        'h2: remove mark',
        'h2: remove rollup',
    ]
    assert world.of('h1', 'traits') == {GOLD, LICENSED}
    assert world.of('h2', 'traits') == {LICENSED}
    assert world.of('h1', 'aggregates') == {OTHERS, *MINE}
    assert world.custom_traits() == [GOLD, LICENSED]
    # Unmarked traits belong to others, who remove them themselves.
    world.require('a', ['h1', 'h2'])
    world.sync()
    assert world.of('h2', 'traits') == {LICENSED}


def test_an_unmarked_rollup_is_not_treated_as_ours(world):
    world.direct.send('DELETE', f'/traits/{marks.of_rollup(BOTH)}')
    world.sync(forget=True)
    assert BOTH in world.of('h1', 'aggregates')


def test_a_part_can_be_disabled(world):
    world.sync([Part.ROLLUPS], forget=True)
    assert marks.of_trait(LICENSED) in world.of('h2', 'traits')
    assert BOTH not in world.of('h2', 'aggregates')
    world.sync([Part.TRAITS], forget=True)
    assert world.of('h2', 'traits') == {LICENSED}


def test_tags_that_change_during_the_run_restore_no_marks(world):
    def retag(method, url):
        if method == 'PUT':
            world.wire.meddle = None
            world.require('c', ['h2'], GOLD)

    world.wire.meddle = retag
    assert world.sync(forget=True).is_complete
    assert world.custom_traits() == [GOLD, LICENSED]
