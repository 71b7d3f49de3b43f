# SPDX-License-Identifier: Apache-2.0
"""No reservation is ended because it is missing in the database.

Blazar's database may be replaced by an empty one, by an old backup, or by that
of another Blazar.
"""

import shutil

from blazar import context
from blazar.db import api as db_api
from blazar.db.sqlalchemy import facade_wrapper
from blazar.manager import exceptions
import live
from live import OWNER, class_of
import pytest
import sqlalchemy as sa

from isolate_aggregates_reservations.blazar import rows
from isolate_aggregates_reservations.blazar.exceptions import (
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

    yield replace
    conf.clear_override('connection', 'database')
    facade_wrapper._clear_engine()


def running(blazar, cloud):
    """Return an active lease, its reservation and a server."""
    lease, reservation = blazar.reserve(amount=2, affinity=True)
    blazar.pass_time()
    return lease, reservation, cloud.boot(OWNER, reservation)


def test_a_database_keeps_its_id(blazar, replace_database):
    first = rows.database_id()
    assert rows.database_id() == first
    replace_database('other')
    assert rows.database_id() != first
    replace_database('blazar')
    assert rows.database_id() == first


def test_another_database_ends_nothing(
    blazar, make_manager, cloud, replace_database, caplog
):
    lease, reservation, server = running(blazar, cloud)
    owner = rows.database_id()

    replace_database('other')
    other = live.Blazar(make_manager(), cloud)
    other.complete()
    other.complete()

    assert cloud.servers() == [server['id']]
    assert cloud.slots(reservation) == {'host1': (2, 0)}
    warnings = [r for r in caplog.records if owner in r.getMessage()]
    assert len(warnings) == 1

    replace_database('blazar')
    blazar.end(lease)


def test_an_earlier_state_of_the_database_ends_nothing(blazar, cloud, caplog):
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
    end_by_hand(cloud, reservation)
    again.complete()
    assert cloud.left() == []


def end_by_hand(cloud, reservation):
    """End a reservation as the page about Blazar says."""
    flavor = f'compute/flavors/{reservation}'
    cloud.call(
        'POST',
        f'{flavor}/action',
        {'removeTenantAccess': {'tenant': OWNER}},
    )
    assert cloud.is_refused(OWNER, reservation)
    servers = cloud.call(
        'GET', f'compute/servers?all_tenants=1&flavor={reservation}'
    )
    for server in servers['servers']:
        cloud.delete(server)
    cloud.wait_until_gone()
    name = class_of(reservation)
    for host in cloud.slots(reservation):
        provider = cloud.providers()[f'blazar_{host}']
        cloud.call(
            'DELETE',
            f'placement/resource_providers/{provider}/inventories/{name}',
        )
    cloud.call('DELETE', f'placement/resource_classes/{name}')
    cloud.call('DELETE', flavor)


def test_a_database_that_lost_its_id_gets_it_back(blazar, cloud, caplog):
    lease, _, server = running(blazar, cloud)
    before = rows.database_id()
    with facade_wrapper.session_for_write() as session:
        rows._TABLE.drop(session.connection())
    # As blazar-manager does when it starts.
    vars(blazar.plugin).pop('backend')
    blazar.complete()
    assert before in caplog.text

    with facade_wrapper.session_for_write() as session:
        session.execute(
            sa.text('UPDATE isolate_aggregates_database SET id = :id'),
            {'id': before},
        )
    vars(blazar.plugin).pop('backend')

    assert cloud.servers() == [server['id']]
    blazar.end(lease)
    assert cloud.left() == []


def warnings_about(caplog, reservation):
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelname == 'WARNING' and reservation in record.getMessage()
    ]


def test_a_lost_lease_does_not_keep_others_from_being_completed(
    blazar, cloud, caplog
):
    leases = {}
    for _ in range(2):
        lease, reservation = blazar.reserve(amount=1)
        leases[reservation] = lease
    blazar.pass_time()
    # The lost one is looked at first.
    lost, kept = sorted(leases)
    before = {name: cloud.slots(name) for name in leases}
    with facade_wrapper.session_for_write() as session:
        session.execute(
            sa.text('DELETE FROM leases WHERE id = :id'), {'id': leases[lost]}
        )
    blazar.plugin.backend.publish(kept, {})
    assert cloud.slots(kept) == {}
    again = type(blazar.plugin)()

    for _ in range(2):
        again.complete()

    assert {name: cloud.slots(name) for name in leases} == before
    [warning] = warnings_about(caplog, lost)
    assert warning == (
        f'Reservation {lost} belongs to lease {leases[lost]}, which is not in '
        'the database of Blazar; restore the database, or end the reservation '
        'as an operator.'
    )
    end_by_hand(cloud, lost)
    blazar.end(leases[kept])


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


@pytest.fixture
def old_copy(blazar, make_manager, cloud, replace_database, tmp_path):
    """Return a function that makes a copy and one that uses it."""

    def copy():
        shutil.copy(tmp_path / 'blazar.sqlite', tmp_path / 'old.sqlite')

    def use():
        replace_database('old')
        again = live.Blazar(make_manager(), cloud)
        again.now = blazar.now
        return again

    return copy, use


def test_an_old_database_does_not_end_an_extended_lease(
    blazar, cloud, old_copy, caplog
):
    make_copy, use_copy = old_copy
    lease, reservation = blazar.reserve(amount=2, end=30)
    blazar.pass_time()
    make_copy()
    blazar.update(lease, end_date=blazar.at(600))
    server = cloud.boot(OWNER, reservation)

    restored = use_copy()
    restored.complete()
    assert 'lasts until' in caplog.text
    restored.pass_time(31)
    restored.complete()

    assert cloud.servers() == [server['id']]
    assert cloud.slots(reservation) == {'host1': (2, 0)}
    assert not cloud.is_refused(OWNER, reservation)
    assert restored.status(lease) == 'ERROR'
    # It ends at the time that was agreed.
    restored.pass_time(570)
    restored.complete()
    restored.complete_all()
    assert cloud.left() == []


def test_whoever_may_delete_a_lease_ends_it_with_an_old_database(
    blazar, cloud, old_copy
):
    make_copy, use_copy = old_copy
    lease, reservation = blazar.reserve(amount=2, end=30)
    blazar.pass_time()
    make_copy()
    blazar.update(lease, end_date=blazar.at(600))
    cloud.boot(OWNER, reservation)

    restored = use_copy()
    restored.pass_time(31)
    restored.end(lease)
    assert cloud.left() == []


def test_a_lease_can_be_extended_with_an_old_database(blazar, cloud, old_copy):
    make_copy, use_copy = old_copy
    lease, _ = blazar.reserve(amount=2, end=30)
    blazar.pass_time()
    make_copy()
    blazar.update(lease, end_date=blazar.at(600))

    restored = use_copy()
    restored.update(lease, end_date=blazar.at(600))
    restored.pass_time(31)
    assert restored.status(lease) == 'ACTIVE'
    restored.pass_time(570)
    assert restored.status(lease) == 'TERMINATED'
    restored.complete_all()
    assert cloud.left() == []


def test_a_shortened_lease_ends_early(blazar, cloud):
    lease, *_ = running(blazar, cloud)
    blazar.update(lease, end_date=blazar.at(600))
    blazar.update(lease, end_date=blazar.at(20))
    blazar.pass_time(20)
    blazar.complete_all()
    assert blazar.status(lease) == 'TERMINATED'
    assert cloud.left() == []


def test_a_refused_extension_is_not_recorded(blazar, cloud):
    lease, reservation = blazar.reserve(amount=1, end=30)
    # All capacity is taken from then on.
    other, _ = blazar.reserve(amount=6, vcpus=5, start=30, end=60)
    [before] = [
        mark
        for mark in blazar.plugin.backend.records()
        if mark.reservation == reservation
    ]
    grown = [{'id': reservation, 'amount': 6, 'vcpus': 5}]

    with pytest.raises(exceptions.NotEnoughHostsAvailable):
        blazar.update(lease, reservations=grown, end_date=blazar.at(60))

    assert before in blazar.plugin.backend.records()
    blazar.end(other)
    blazar.end(lease)


def test_the_end_of_a_flavor_reservation_is_recorded(blazar, cloud, old_copy):
    make_copy, use_copy = old_copy
    lease, reservation = blazar.reserve(
        amount=1,
        resource_type='flavor:instance',
        flavor_id=cloud.plain_flavor(),
        end=30,
    )
    blazar.pass_time()
    make_copy()
    blazar.update(lease, end_date=blazar.at(600))
    server = cloud.boot(OWNER, reservation)

    restored = use_copy()
    restored.pass_time(31)
    assert cloud.servers() == [server['id']]
    restored.end(lease)
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
