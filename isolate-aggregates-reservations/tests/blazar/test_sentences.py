# SPDX-License-Identifier: Apache-2.0
"""What the plugin refuses or warns of says what to do, and that ends it.

A row begins with the places where its sentences are made; the last test finds
them all.
"""

import datetime
import types

from blazar import context
from blazar.db import api as db_api
from blazar.db.sqlalchemy import facade_wrapper
from blazar.manager import exceptions as manager_exceptions
from live import OWNER
import pytest
from sentences_made import places, told, watched
import sqlalchemy as sa
from test_lost_database import end_by_hand

from isolate_aggregates_reservations.blazar import exceptions, instance_plugin

LATER = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
PLUGIN = instance_plugin.PlacementInstancePlugin
REFUSED = (
    manager_exceptions.NotEnoughHostsAvailable,
    *(exceptions.ReservationNotKept, exceptions.UnknownResourceProperty),
)


def known():
    names = [each.__name__ for each in REFUSED]
    return places('blazar', *names, '_warn_once')


@pytest.fixture
def made(monkeypatch):
    """The places whose sentences were made since the test began."""
    found = set()
    for each in (*told(), *REFUSED):
        monkeypatch.setattr(
            each, '__init__', watched(each.__init__, known(), found)
        )
    monkeypatch.setattr(
        PLUGIN, '_warn_once', watched(PLUGIN._warn_once, known(), found)
    )
    return found


@pytest.fixture
def world(blazar, cloud, caplog):
    """A running lease with a server, which nothing that is said ends."""
    lease, reservation = blazar.reserve(amount=2, affinity=True)
    blazar.pass_time()
    found = types.SimpleNamespace(
        blazar=blazar,
        cloud=cloud,
        lease=lease,
        reservation=reservation,
        server=cloud.boot(OWNER, reservation)['id'],
        plugin=blazar.plugin,
        backend=blazar.plugin.backend,
        database=blazar.plugin.backend.database,
        log=caplog,
    )
    yield found
    if found.lease:
        blazar.end(found.lease)


def execute(text, **values):
    with facade_wrapper.session_for_write() as session:
        session.execute(sa.text(text), values)


def nothing(world):
    pass


def complete(world):
    """Look at everything as a new process does; raise what it warns of."""
    world.log.clear()
    PLUGIN._past_warnings.clear()
    again = PLUGIN()
    again.backend.database = world.backend.database
    for _ in range(2):
        again.complete()
    warnings = [
        record.getMessage()
        for record in world.log.records
        if record.levelname == 'WARNING' and record.name.startswith('isolate')
    ]
    # Each is told once.
    assert len({*warnings}) == len(warnings)
    if warnings:
        raise AssertionError(warnings)


def start(world):
    resource = world.blazar.reservation(world.reservation)['resource_id']
    world.plugin.on_start(resource)


def end(world):
    resource = world.blazar.reservation(world.reservation)['resource_id']
    world.plugin.on_end(resource)


def end_by_hand_unseen(world):
    world.backend.mark_end(world.reservation, 'an operator')


def delete_lease(world):
    world.blazar.end(world.lease)
    world.lease = None


def create_another(world):
    delete_lease(world)
    world.lease, world.reservation = world.blazar.reserve(amount=2)
    world.blazar.pass_time()
    assert world.blazar.status(world.lease) == 'ACTIVE'


def be_another_blazar(world):
    world.backend.database = 'another'


def have_the_database(world):
    world.backend.database = world.database


def publish_nowhere(world):
    world.backend.publish(world.reservation, {'host1': 2, 'nowhere': 0})


def nova_compute_runs(world):
    world.cloud.call(
        'POST', 'placement/resource_providers', {'name': 'nowhere'}
    )


def extend_elsewhere(world):
    """Have a database from before the lease was extended."""
    world.backend.agree(world.reservation, LATER)


def extend(world):
    world.blazar.update(world.lease, end_date=f'{LATER:%Y-%m-%d %H:%M}')


def reserve_too_much(world):
    world.blazar.reserve(amount=99)


def reserve_less(world):
    world.blazar.delete(world.blazar.reserve(amount=1)[0])
    world.blazar.complete()


def grow_to(amount):
    def grow(world):
        grown = [{'id': world.reservation, 'amount': amount}]
        world.blazar.update(world.lease, reservations=grown)

    return grow


grow_less = grow_to(3)


def reserve_gpu(world):
    lease, _ = world.blazar.reserve(
        1, resource_properties='["==", "$gpu", "a100"]'
    )
    world.blazar.delete(lease)
    world.blazar.complete()


def add_gpu(world):
    [host, *_] = db_api.host_list()
    with context.BlazarContext():
        world.blazar.manager.plugins['physical:host'].update_computehost(
            host['id'], {'gpu': 'a100'}
        )


def lose_lease(world):
    execute('DELETE FROM leases WHERE id = :id', id=world.lease)


def lose_everything(world):
    db_api.lease_destroy(world.lease)


def end_as_an_operator(world):
    end_by_hand(world.cloud, world.reservation)
    world.lease = None


def lose_slots(world):
    world.rows = db_api.host_allocation_get_all_by_values(
        reservation_id=world.reservation
    )
    execute('DELETE FROM computehost_allocations')


def restore_slots(world):
    for row in world.rows:
        names = ('id', 'compute_host_id', 'reservation_id')
        db_api.host_allocation_create({name: row[name] for name in names})


SAID = [
    (
        'backend.Backend.prepare 1, exceptions.translated 1',
        end_by_hand_unseen,
        start,
        'has already been ended',
        'delete its lease, and create another',
        create_another,
    ),
    (
        'backend.Backend._own 1',
        be_another_blazar,
        start,
        'belongs to another Blazar according to its flavor',
        'start this one with the database that it was created with',
        have_the_database,
    ),
    (
        'backend.Backend._with_provider 1',
        nothing,
        publish_nowhere,
        "no resource provider with the name or id 'nowhere' in Placement",
        'it is there once its nova-compute runs',
        nova_compute_runs,
    ),
    (
        'instance_plugin.PlacementInstancePlugin.on_end 1, '
        'instance_plugin.PlacementInstancePlugin._check_end 1',
        extend_elsewhere,
        end,
        'lasts until 2100-01-01 00:00 UTC according to its flavor',
        'delete it to end it now',
        delete_lease,
    ),
    (
        'instance_plugin.PlacementInstancePlugin._has_ended 2, '
        'instance_plugin.PlacementInstancePlugin._has_ended 3',
        extend_elsewhere,
        complete,
        'lasts until 2100-01-01 00:00 UTC according to its flavor',
        'restore a newer database, extend the lease',
        extend,
    ),
    (
        'planning.SlotPlanning.allocation_candidates 1',
        nothing,
        reserve_too_much,
        # Blazar's own sentence.
        'Not enough hosts available',
        '',
        reserve_less,
    ),
    (
        'planning.SlotPlanning.pickup_hosts 1',
        nothing,
        grow_to(99),
        'Not enough hosts available',
        '',
        grow_less,
    ),
    (
        'planning.SlotPlanning._assign 1',
        nothing,
        reserve_gpu,
        'No host has a resource property gpu, which the requirements '
        '["==", "$gpu", "a100"] name',
        'run openstack reservation host set --extra gpu=VALUE',
        add_gpu,
    ),
    (
        'rows.lease_of 1, '
        'instance_plugin.PlacementInstancePlugin._has_ended 1',
        lose_lease,
        complete,
        'which is not in the database of Blazar',
        'restore the database, or end the reservation as an operator',
        end_as_an_operator,
    ),
    (
        'rows.lost_slots 1, '
        'instance_plugin.PlacementInstancePlugin._write_or_postpone 1',
        lose_slots,
        complete,
        'has slots in Placement, but no allocation in the database of Blazar',
        'restore the database',
        restore_slots,
    ),
    (
        'instance_plugin.PlacementInstancePlugin._is_due 1',
        be_another_blazar,
        complete,
        'Nova has reservations of a Blazar whose database is ',
        'this Blazar ignores them',
        have_the_database,
    ),
    (
        'instance_plugin.PlacementInstancePlugin._is_due 2',
        lose_everything,
        complete,
        'is not in the database of this Blazar. It is left unchanged',
        'check that the database is the right one',
        end_as_an_operator,
    ),
]

# These take the place of what was refused.
INSTEAD = (delete_lease, reserve_less, grow_less)


@pytest.mark.parametrize(
    ('place', 'happen', 'act', 'sentence', 'mending', 'mend'), SAID
)
def test_what_a_sentence_names_ends_it(
    world, made, place, happen, act, sentence, mending, mend
):
    happen(world)
    before = world.cloud.slots(world.reservation)
    with pytest.raises((Exception, AssertionError)) as caught:
        act(world)
    assert sentence in str(caught.value)
    assert mending in str(caught.value)
    assert made >= {*place.split(', ')}
    # What is refused or warned of ends nothing.
    assert world.cloud.servers() == [world.server]
    assert world.cloud.slots(world.reservation) == before
    mend(world)
    if mend not in INSTEAD:
        act(world)


def test_there_is_a_row_for_each_sentence():
    covered = {place for row in SAID for place in row[0].split(', ')}
    assert set(known().values()) == covered
