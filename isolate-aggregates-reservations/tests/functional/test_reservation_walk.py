# SPDX-License-Identifier: Apache-2.0
"""How often somebody who follows a command goes from one module to another.

Each function counts once, at its first call. A stay is a run of such functions
in one module.
"""

import itertools
import pathlib
import sys

import pytest
from reservation_world import HOUR, NOW, PROJECT

from isolate_aggregates_reservations import api as reservations

WING = pathlib.Path(reservations.__file__).parent
ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
# What Python makes of expressions has no name to look for.
NAMELESS = '<'


def create(store):
    shape = reservations.Shape(1, 64)
    reservations.create(
        store,
        reservations.new(
            PROJECT, 2, shape, NOW - HOUR, NOW + HOUR, reservation_id=ID
        ),
        NOW,
    )


def update(store):
    reservations.update(store, ID, NOW, amount=3)


def end(store):
    reservations.end(store, ID, NOW)


def walked(command):
    """Return the modules of the functions that a command calls, in order."""
    called = {}

    def see(frame, event, _):
        code = frame.f_code
        path = pathlib.Path(code.co_filename)
        if (
            event == 'call'
            and WING in path.parents
            and not code.co_name.startswith(NAMELESS)
        ):
            called.setdefault((path, code.co_firstlineno), path.stem)

    sys.setprofile(see)
    try:
        command()
    finally:
        sys.setprofile(None)
    return list(called.values())


@pytest.mark.usefixtures('one_host')
def test_a_command_goes_through_few_modules(world):
    """These are hardly more than the present numbers, which may only fall."""
    for command, stays, rooms in (
        # With history: the warning counts from when it was agreed on.
        (create, 112, 22),
        (update, 108, 22),
        (end, 79, 19),
    ):
        modules = walked(lambda command=command: command(world.store))
        found = sum(1 for _ in itertools.groupby(modules))
        assert found <= stays
        assert len(set(modules)) <= rooms
