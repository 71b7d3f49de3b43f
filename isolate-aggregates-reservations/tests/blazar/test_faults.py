# SPDX-License-Identifier: Apache-2.0
"""Whatever call fails, nothing is left over and nothing is lost."""

import datetime
import threading

from blazar import exceptions as blazar_exceptions
from blazar.db import api as db_api
from blazar.manager import exceptions as manager_exceptions
from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import session
from live import OWNER
from oslo_db import exception as db_exceptions
from oslo_utils import timeutils
import pytest
from thorough import every

from isolate_aggregates_reservations.blazar import exceptions, rows
from isolate_aggregates_reservations.reservation import Shape

BEFORE, AFTER, FROM_THEN_ON = 'before', 'after', 'from then on'
MODES = (AFTER, FROM_THEN_ON)
# An ordinary run breaks every tenth call, one with THOROUGH=1 each.
EVERY = every(10)


class Wire:
    """Carries the calls of one session, and breaks on demand.

    :param owner: The session whose calls it carries.
    """

    def __init__(self, owner, monkeypatch):
        self._owner = owner
        self._send = session.Session._send_request
        self._place, self._mode = 0, None
        self._count = 0
        self.has_failed = False
        monkeypatch.setattr(
            session.Session,
            '_send_request',
            lambda found, *args, **kwargs: self.carry(found, *args, **kwargs),
        )

    def break_at(self, place, mode):
        """Let the call at a place fail, counted from now on."""
        self._place, self._mode, self._count = place, mode, 0

    def mend(self):
        """Let all calls through."""
        self.has_failed = self._count >= self._place
        self._mode = None

    def carry(self, session, url, *args, **kwargs):
        """Send a request, or fail before or after it."""
        if session is not self._owner or '/identity' in url:
            return self._send(session, url, *args, **kwargs)
        self._count += 1
        late = self._mode == FROM_THEN_ON and self._count > self._place
        hit = self._mode and (late or self._count == self._place)
        if hit and self._mode != AFTER:
            raise ks_exceptions.ConnectFailure('broken before')
        answer = self._send(session, url, *args, **kwargs)
        if hit:
            raise ks_exceptions.ConnectFailure('broken after')
        return answer


@pytest.fixture
def wire(blazar, monkeypatch):
    owner = blazar.plugin.backend._nova._client.client.session
    blazar.complete()
    return Wire(owner, monkeypatch)


def places(wire):
    """Yield the places of calls in turn, until none fails there."""
    place = 1 - EVERY
    wire.has_failed = True
    while wire.has_failed:
        place += EVERY
        yield place
    assert place > 3, 'nothing was called'


@pytest.mark.parametrize('mode', [BEFORE, *MODES])
def test_a_lease_that_cannot_be_created_leaves_nothing(
    blazar, cloud, wire, mode
):
    for place in places(wire):
        wire.break_at(place, mode)
        try:
            lease, _ = blazar.reserve(amount=2)
        except blazar_exceptions.BlazarException:
            wire.mend()
            assert wire.has_failed
            assert db_api.lease_list() == []
        else:
            wire.mend()
            blazar.end(lease)
        blazar.complete()
        assert cloud.left() == []


@pytest.mark.parametrize('mode', MODES)
def test_a_start_that_fails_is_completed_later(blazar, cloud, wire, mode):
    for place in places(wire):
        lease, reservation = blazar.reserve(2, vcpus=5)
        wire.break_at(place, mode)
        blazar.pass_time()
        assert blazar.status(lease) == 'ACTIVE'
        wire.mend()
        is_reported = [
            blazar.reservation(reservation)['missing_resources'],
            db_api.lease_get(lease)['degraded'],
        ]
        assert is_reported == [wire.has_failed] * 2

        blazar.complete()

        assert cloud.slots(reservation) == {'host1': (2, 0)}
        assert not cloud.is_refused(OWNER, reservation)
        assert not blazar.reservation(reservation)['missing_resources']
        assert not db_api.lease_get(lease)['degraded']
        blazar.end(lease)
        assert cloud.left() == []


def test_a_start_that_failed_is_completed_by_the_next_process(
    blazar, cloud, wire
):
    lease, reservation = blazar.reserve(2)
    wire.break_at(1, FROM_THEN_ON)
    blazar.pass_time()
    wire.mend()
    assert cloud.slots(reservation) == {}

    type(blazar.plugin)().complete()

    assert cloud.slots(reservation) == {'host1': (2, 0)}
    assert not cloud.is_refused(OWNER, reservation)
    blazar.end(lease)


def test_a_start_that_failed_is_not_completed_after_the_end(
    blazar, cloud, wire
):
    lease, reservation = blazar.reserve(2, end=30)
    wire.break_at(1, FROM_THEN_ON)
    blazar.pass_time()
    wire.mend()
    # Blazar has not ended it yet.
    blazar.now += datetime.timedelta(minutes=30)
    timeutils.set_time_override(blazar.now)

    blazar.complete()

    assert blazar.status(lease) == 'ACTIVE'
    assert cloud.slots(reservation) == {}
    assert cloud.is_refused(OWNER, reservation)
    blazar.pass_time()
    assert blazar.status(lease) == 'TERMINATED'
    blazar.complete_all()
    assert cloud.left() == []


def test_a_lease_that_cannot_be_started_is_in_error(blazar, cloud):
    """It would not be right to do it later either."""
    lease, reservation = blazar.reserve(2)
    blazar.plugin.backend.mark_end(reservation, 'an operator')

    blazar.pass_time()

    assert blazar.status(lease) == 'ERROR'
    assert cloud.slots(reservation) == {}
    blazar.end(lease)


def test_a_start_is_completed_after_a_fault_of_the_database(
    blazar, cloud, wire, monkeypatch
):
    lease, reservation = blazar.reserve(2)
    wire.break_at(1, FROM_THEN_ON)
    blazar.pass_time()
    wire.mend()
    assert cloud.slots(reservation) == {}

    def broken(session):
        raise db_exceptions.DBConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(rows, 'current', broken)
        with pytest.raises(db_exceptions.DBConnectionError):
            blazar.plugin.complete()
    blazar.plugin.complete()

    assert cloud.slots(reservation)
    blazar.end(lease)


@pytest.mark.parametrize('is_other', [False, True])
def test_a_lease_that_ends_while_it_is_started_stays_ended(
    blazar, cloud, wire, monkeypatch, is_other
):
    """Another thread waits; another process does not."""
    lease, reservation = blazar.reserve(2)
    wire.break_at(1, FROM_THEN_ON)
    blazar.pass_time()
    wire.mend()
    backend = blazar.plugin.backend
    ending = threading.Thread(target=blazar.delete, args=[lease])
    publish = backend.publish

    def end_first(*args):
        if is_other:
            db_api.lease_update(lease, {'status': 'TERMINATING'})
            backend.mark_end(reservation, 'another process')
            assert backend.finish(reservation) is None
            end = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
            backend.prepare(reservation, Shape(1, 64, 1), end)
        else:
            ending.start()
        return publish(*args)

    monkeypatch.setattr(backend, 'publish', end_first)
    blazar.complete()

    if is_other:
        monkeypatch.undo()
        assert cloud.left() == []
        db_api.lease_update(lease, {'status': 'ACTIVE'})
        blazar.end(lease)
    else:
        ending.join()
        assert db_api.lease_list() == []
        blazar.complete()


@pytest.mark.parametrize('mode', MODES)
def test_an_end_is_completed_later(blazar, cloud, wire, mode):
    for place in places(wire):
        lease, reservation = blazar.reserve(2, vcpus=5, end=30)
        blazar.pass_time()
        wire.break_at(place, mode)
        blazar.pass_time(30)
        blazar.complete()
        wire.mend()

        assert blazar.status(lease) == 'TERMINATED'
        blazar.complete()
        assert cloud.left() == []
        assert blazar.slots(reservation) == {}


@pytest.mark.parametrize('mode', MODES)
def test_added_slots_are_completed_later(blazar, cloud, wire, mode):
    for place in places(wire):
        lease, reservation = blazar.reserve(1, vcpus=5)
        blazar.pass_time()
        wire.break_at(place, mode)
        grown = [{'id': reservation, 'amount': 3}]
        blazar.update(lease, reservations=grown)
        wire.mend()
        blazar.complete()

        assert blazar.status(lease) == 'ACTIVE'
        slots = cloud.slots(reservation)
        assert slots == {'host1': (2, 0), 'host2': (1, 0)}
        blazar.end(lease)


@pytest.mark.parametrize('mode', MODES)
def test_moved_slots_are_there_later(blazar, cloud, wire, mode):
    for place in places(wire):
        lease, reservation = blazar.reserve(2, vcpus=5)
        blazar.pass_time()
        cloud.force_down('host1')
        wire.break_at(place, mode)
        blazar.look_at_hosts()
        blazar.complete()
        wire.mend()
        blazar.complete()

        assert cloud.slots(reservation) == {'host2': (2, 0)}
        blazar.end(lease)
        cloud.force_down('host1', down=False)
        blazar.look_at_hosts()


def test_a_resource_property_that_no_host_has_is_named(blazar, cloud):
    with pytest.raises(exceptions.UnknownResourceProperty) as caught:
        blazar.reserve(1, resource_properties='["==", "$gpu", "a100"]')
    assert str(caught.value) == (
        'No host has a resource property gpu, which the requirements '
        '["==", "$gpu", "a100"] name; run openstack reservation host set '
        '--extra gpu=VALUE with one that has it, or change the requirements'
    )
    assert caught.value.code == 400
    assert cloud.left() == []


@pytest.mark.parametrize('starts', ['planned', 'running'])
def test_a_refused_change_leaves_the_lease_as_it_was(blazar, cloud, starts):
    """Blazar sets the status ERROR, unless it knows the very type."""
    lease, reservation = blazar.reserve(
        1, start=10 if starts == 'planned' else 0
    )
    blazar.pass_time()
    before = blazar.status(lease)
    backend = blazar.plugin.backend
    blazar.plugin.backend = type(blazar.plugin)().backend
    blazar.plugin.backend.database = 'another'
    with pytest.raises(
        manager_exceptions.CantUpdateParameter, match='another Blazar'
    ):
        blazar.update(lease, end_date=blazar.at(300))
    blazar.plugin.backend = backend
    assert blazar.status(lease) == before
    blazar.pass_time(10)
    cloud.delete(cloud.boot(OWNER, reservation))
    cloud.wait_until_gone()
    blazar.end(lease)
    assert cloud.left() == []


def test_a_missing_key_is_named(blazar, cloud):
    with pytest.raises(manager_exceptions.MissingParameter, match='vcpus'):
        blazar._lease(
            {'resource_type': 'virtual:instance', 'amount': 1},
            *(0, 60, OWNER),
        )
    assert cloud.left() == []
