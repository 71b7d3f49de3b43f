# SPDX-License-Identifier: Apache-2.0
"""Chosen hosts, a warning before the end, and what is not used."""

import json

from agreement import agreed
import pytest
from reservation_world import HOUR, NOW, PROJECT, typed

from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import errors, names
from isolate_aggregates_reservations.commands import times
from isolate_aggregates_tools import errors as tools_errors

ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
SHAPE = reservations.Shape(4, 64)
NEEDS = {'VCPU': 4, 'MEMORY_MB': 64}

pytestmark = pytest.mark.usefixtures('two_hosts')


def reserve(world, amount=1, end=NOW + 10 * HOUR, **settings):
    reservation = reservations.new(
        PROJECT, amount, SHAPE, NOW, end, None, ID, **settings
    )
    return reservations.create(world.store, reservation, NOW)


def until(world):
    """Return until when the users of the flavor can boot servers."""
    return world.nova.flavors[ID]['extra_specs'].get(names.BOOT_UNTIL)


def test_slots_are_on_the_chosen_hosts_only(world):
    assert set(reserve(world, 2, only_on=['h2']).hosts) == {'h2'}
    with pytest.raises(errors.ReservationError, match='room for 2 on h2'):
        reservations.update(world.store, ID, NOW, amount=3)
    world.fail_host('h2')
    [status] = reservations.repair(world.store, NOW, ID)
    assert set(status.hosts) == {'h2'}


def test_a_chosen_host_must_be_one_for_reservations(world):
    with pytest.raises(
        tools_errors.InvalidRequest, match='h9 is not a host for'
    ):
        reserve(world, only_on=['h9'])
    assert world.nova.flavors == {}


def test_a_chosen_host_may_be_renamed(world):
    reserve(world, only_on=['h1'])
    world.rename_host('h1', 'h1.example.org')
    status = reservations.update(world.store, ID, NOW, amount=2)
    assert status.problems == ()
    # Its slots are lost, for example with a backup.
    path = f'/resource_providers/{world.child("h1")}/inventories'
    now = world.direct.get(path)
    del now['inventories'][names.resource_class(ID)]
    world.direct.send('PUT', path, now)
    [status] = reservations.reconcile_all(world.store, NOW + HOUR)
    assert status.problems == ()
    assert world.slots() == {('blazar_h1', ID): (2, 2)}


def test_a_chosen_host_that_is_none_any_more_is_named(world):
    reserve(world, only_on=['h1', 'h2'])
    [slots] = world.slots()
    [other] = {'h1', 'h2'} - {names.host_of(slots[0])}
    reservations.disable_host(world.store, other)
    [status] = reservations.reconcile_all(world.store, NOW + HOUR)
    [problem] = status.problems
    assert problem.startswith(f'host {other} for which it was created is no ')
    assert f'reservation host set --enable {other}' in problem
    assert world.slots() == {slots: (1, 1)}


def test_before_the_end_no_more_servers_are_booted(world):
    reserve(world, warn_before=2 * HOUR)
    assert world.boot('s', 'h1', ID, NEEDS)
    assert until(world) == '2027-03-01T20:00:00+00:00'
    reservations.reconcile_all(world.store, NOW + 7 * HOUR)
    assert world.nova.access[ID] == {PROJECT}
    for hour in (8, 9):
        [status] = reservations.reconcile_all(world.store, NOW + hour * HOUR)
        assert world.nova.access[ID] == set()
        # Servers go on, and can be moved.
        assert world.slots() == {('blazar_h1', ID): (1, 1)}
        assert status.problems == ()
    reservations.update(world.store, ID, NOW + 9 * HOUR, end=NOW + 20 * HOUR)
    assert world.nova.access[ID] == {PROJECT}
    assert until(world) == '2027-03-02T06:00:00+00:00'
    reservations.update(world.store, ID, NOW + 9 * HOUR, end=None)
    assert until(world) == 'never'


def test_a_warning_can_be_changed(world):
    reserve(world)
    assert until(world) is None
    for hours, expected in ((3, '19'), (0, '22')):
        reservations.update(world.store, ID, NOW, warn_before=hours * HOUR)
        assert until(world) == f'2027-03-01T{expected}:00:00+00:00'
    planned = reservations.update(
        world.store, ID, NOW, warn_before=HOUR, dry_run=True
    ).planned
    assert planned == ('warn_before: 0s -> 3600s',)
    reservations.reconcile_all(world.store, NOW + 9 * HOUR)
    assert world.nova.access[ID] == {PROJECT}


def test_a_list_tells_since_when_a_reservation_is_unused(world):
    def unused_since(hour):
        reservations.reconcile_all(world.store, NOW + hour * HOUR)
        since = world.store.read().reservation(ID).unused_since
        return since and (since - NOW) // HOUR

    reserve(world)
    assert unused_since(1) == 0
    assert world.boot('s', 'h1', ID, NEEDS)
    assert unused_since(2) is None
    world.nova.finish(next(iter(world.nova.servers)))
    assert unused_since(3) == 3
    assert unused_since(4) == 3


@pytest.mark.usefixtures('operated')
def test_wishes_are_options(world, run):
    def command(*arguments):
        result = typed(run, *agreed(('reservation', *arguments)))
        assert (result.code, result.err) == (0, '')
        return result.out

    made = json.loads(
        command(
            *('create', '--id', ID, '--project', PROJECT, '--end', '1d'),
            *('--vcpus', '4', '--ram', '64', '--host', 'h2'),
            *('--warn-before', '2h', '--share', 'f' * 32, '-f', 'json'),
        )
    )
    assert made['only_on'] == ['h2']
    assert made['warn_before'] == '7200s'
    assert made['shared'] == ['f' * 32]
    assert list(made['hosts']) == ['h2']
    assert made['unused_since']
    command('set', ID, '--warn-before', '3h', '--unshare', 'f' * 32)
    listed = json.loads(command('list', '-f', 'json'))
    [entry] = listed['reservations']
    assert (entry['warn_before'], entry['shared']) == ('10800s', [])
    assert 'Unused Since' in command('list')
    assert until(world) == times.text(times.moment(entry['end']) - 3 * HOUR)
