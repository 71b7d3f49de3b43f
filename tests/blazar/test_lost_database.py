# SPDX-License-Identifier: Apache-2.0
"""No reservation is ended because it is missing in the database.

Blazar's database may be replaced by an empty one, by an old backup, or by that
of another Blazar.
"""

import datetime
import json

from blazar import context
from blazar.db import api as db_api
from blazar.db.sqlalchemy import facade_wrapper
import live
from live import OWNER
import pytest

from isolate_aggregates.reservations.blazar import database
from isolate_aggregates.reservations.blazar.exceptions import (
    ReservationNotKept,
)


@pytest.fixture
def replace_database(conf, tmp_path):
    """Return a function that gives Blazar another database."""
    from blazar.db.sqlalchemy import api as db_models

    def replace(name):
        url = f'sqlite:///{tmp_path}/{name}.sqlite'
        conf.set_override('connection', url, 'database')
        facade_wrapper._clear_engine()
        db_models.setup_db()

    return replace


@pytest.fixture
def command(program, tmp_path):
    """Return a function that runs it with the configuration of Blazar."""
    path = str(tmp_path / 'blazar.conf')
    return lambda action, *arguments, asks=False: program(
        *('blazar', action, '--blazar-config-file', path, *arguments),
        asks=asks,
    )


def listed(command):
    finished = command('list', '-f', 'json')
    assert (finished.code, finished.err) == (0, '')
    return json.loads(finished.out)['reservations']


def running(blazar, cloud):
    """Return an active lease, its reservation and a server."""
    lease, reservation = blazar.reserve(amount=2, affinity=True)
    blazar.pass_time()
    return lease, reservation, cloud.boot(OWNER, reservation)


def test_a_database_keeps_its_id(blazar, replace_database):
    first = database.database_id()
    assert database.database_id() == first
    replace_database('other')
    assert database.database_id() != first
    replace_database('blazar')
    assert database.database_id() == first


def test_another_database_ends_nothing(
    blazar, make_manager, cloud, replace_database, command, caplog
):
    lease, reservation, server = running(blazar, cloud)
    known = database.database_id()

    replace_database('other')
    other = live.Blazar(make_manager(), cloud)
    other.complete()
    other.complete()

    assert cloud.servers() == [server['id']]
    assert cloud.slots(reservation) == {'host1': (2, 0)}
    warnings = [r for r in caplog.records if known in r.getMessage()]
    assert len(warnings) == 1
    assert listed(command) == [
        {
            'id': reservation,
            'projects': [OWNER],
            'state': 'other',
            'database': known,
            'ended': None,
            'slots': 2,
            'servers': [server['id']],
            'hosts': {'host1': 2},
        }
    ]

    replace_database('blazar')
    [found] = listed(command)
    assert found['state'] == 'known'
    blazar.end(lease)


def test_an_earlier_state_of_the_database_ends_nothing(
    blazar, cloud, command, caplog
):
    lease, reservation, server = running(blazar, cloud)
    db_api.lease_destroy(lease)

    again = type(blazar.plugin)()
    again.complete()
    again.complete()

    assert cloud.servers() == [server['id']]
    warnings = [
        r
        for r in caplog.records
        if r.levelname == 'WARNING' and reservation in r.getMessage()
    ]
    assert len(warnings) == 1
    [found] = listed(command)
    assert found['state'] == 'unknown'

    cloud.hold_deletions(True)
    assert command('end', reservation, '--yes').code == 3
    [found] = listed(command)
    assert (found['state'], found['ended']['by']) == (
        'ending',
        'an operator',
    )
    cloud.hold_deletions(False)
    # Its Blazar completes what was written down.
    cloud.wait_until_gone()
    again.complete()
    assert cloud.left() == []


def test_a_reservation_known_to_blazar_ends_with_its_lease(
    blazar, cloud, command
):
    """It would create the flavor again, and give its project access."""
    lease, reservation, server = running(blazar, cloud)

    finished = command('end', reservation, '--yes')

    assert (finished.code, finished.err) == (
        1,
        f'Blazar knows reservation {reservation}; delete its lease.\n',
    )
    assert cloud.servers() == [server['id']]
    blazar.end(lease)


def test_a_reservation_adopted_during_the_prompt_is_not_ended(
    blazar, cloud, command, answer
):
    lost, reservation, server = running(blazar, cloud)
    db_api.lease_destroy(lost)
    until = f'{(blazar.now + datetime.timedelta(minutes=30)).isoformat()}Z'
    answer(
        'y\n', lambda: command('adopt', reservation, '--yes', '--end', until)
    )

    finished = command('end', reservation, asks=True)

    assert finished.code == 1
    assert f'Blazar knows reservation {reservation}' in finished.err
    assert cloud.servers() == [server['id']]
    blazar.end(blazar.reservation(reservation)['lease_id'])


def test_a_reservation_that_was_lost_is_adopted(blazar, cloud, command):
    lost, reservation, server = running(blazar, cloud)
    db_api.lease_destroy(lost)

    assert command('adopt', reservation, '--yes').code == 2
    end = blazar.now + datetime.timedelta(minutes=30)
    until = f'{end.isoformat()}Z'
    finished = command('adopt', reservation, '--yes', '--end', until)
    assert (finished.code, finished.err) == (0, '')

    [found] = listed(command)
    assert found['state'] == 'known'
    assert blazar.slots(reservation) == {'host1': 2}
    found = blazar.reservation(reservation)
    assert (found['status'], found['amount']) == ('active', 2)
    blazar.complete()
    assert cloud.servers() == [server['id']]
    # The lease that it got counts, and ends it.
    blazar.pass_time(30)
    blazar.complete_all()
    assert blazar.status(found['lease_id']) == 'TERMINATED'
    assert cloud.left() == []


def test_a_database_that_lost_its_id_adopts_its_reservations(
    blazar, cloud, command
):
    lease, reservation, server = running(blazar, cloud)
    with facade_wrapper.session_for_write() as session:
        database._TABLE.drop(session.connection())
    # As blazar-manager does when it starts.
    vars(blazar.plugin).pop('backend')

    [found] = listed(command)
    assert found['state'] == 'other'
    finished = command('adopt', reservation, '--yes')
    assert (finished.code, finished.err) == (0, '')
    [found] = listed(command)
    assert found['state'] == 'known'
    assert cloud.servers() == [server['id']]
    blazar.end(lease)
    assert cloud.left() == []


def test_a_copied_database_cannot_end_its_reservations(blazar, cloud):
    """It has a copy of the rows, but not of the id."""
    lease, _, server = running(blazar, cloud)
    backend = blazar.plugin.backend
    blazar.plugin.backend = type(blazar.plugin)().backend
    blazar.plugin.backend.database = 'another'

    with pytest.raises(ReservationNotKept, match='belongs to another Blazar'):
        blazar.delete(lease)

    assert cloud.servers() == [server['id']]
    # Nothing was lost, and the operation can be repeated.
    blazar.plugin.backend = backend
    blazar.end(lease)
    assert cloud.left() == []


def test_a_lease_is_not_forgotten_before_its_end_is_written_down(
    blazar, cloud
):
    lease, reservation, _ = running(blazar, cloud)
    cloud.hold_deletions(True)
    with context.BlazarContext(user_name='jane'):
        blazar.manager.delete_lease(lease_id=lease)
    [found] = blazar.plugin.backend.records()
    assert found.end.by == f'lease {lease} was deleted by jane'
    assert blazar.reservation(reservation) is None
    cloud.hold_deletions(False)
    cloud.wait_until_gone()
    type(blazar.plugin)().complete()
    assert cloud.left() == []


def test_a_missing_configuration_file_is_named(program, conf):
    finished = program('blazar', 'list', '--blazar-config-file', '/none')
    assert finished.code == 1
    assert '/none' in finished.err
