# SPDX-License-Identifier: Apache-2.0
"""Whatever call fails, nothing is left over and nothing is lost."""

from blazar import exceptions as blazar_exceptions
from blazar.db import api as db_api
from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import session
from live import OWNER
import pytest

BEFORE, AFTER, FROM_THEN_ON = 'before', 'after', 'from then on'
MODES = (AFTER, FROM_THEN_ON)


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

    def carry(self, found, url, *args, **kwargs):
        """Send a request, or fail before or after it."""
        if found is not self._owner or '/identity' in url:
            return self._send(found, url, *args, **kwargs)
        self._count += 1
        late = self._mode == FROM_THEN_ON and self._count > self._place
        hit = self._mode and (late or self._count == self._place)
        if hit and self._mode != AFTER:
            raise ks_exceptions.ConnectFailure('broken before')
        answer = self._send(found, url, *args, **kwargs)
        if hit:
            raise ks_exceptions.ConnectFailure('broken after')
        return answer


@pytest.fixture
def wire(blazar, monkeypatch):
    owner = blazar.plugin.backend._nova._client.client.session
    blazar.complete()
    return Wire(owner, monkeypatch)


def places(wire):
    """Yield the place of one call after the other, until none fails there."""
    place = 0
    wire.has_failed = True
    while wire.has_failed:
        place += 1
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
def test_a_start_that_fails_can_be_repeated_or_given_up(
    blazar, cloud, wire, mode
):
    for place in places(wire):
        lease, reservation = blazar.reserve(2, vcpus=5)
        wire.break_at(place, mode)
        blazar.pass_time()
        wire.mend()
        failed = wire.has_failed
        assert blazar.status(lease) == ('ERROR' if failed else 'ACTIVE')
        if failed and mode == AFTER:
            row = blazar.reservation(reservation)['resource_id']
            blazar.plugin.on_start(row)
        if not failed or mode == AFTER:
            assert cloud.slots(reservation) == {'host1': (2, 0)}
            assert not cloud.is_refused(OWNER, reservation)
        blazar.end(lease)
        assert cloud.left() == []


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
def test_more_slots_are_there_later(blazar, cloud, wire, mode):
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
