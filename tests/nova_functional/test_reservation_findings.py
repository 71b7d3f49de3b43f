# SPDX-License-Identifier: Apache-2.0
"""An audit finds what keeps reservations of a real Nova from being right."""

import datetime
import shlex

from base import host_of
from reservation_cloud import OWNER, ReservationTest

from isolate_aggregates_reservations import api as reservations

HOUR = datetime.timedelta(hours=1)
GPU = 'trait:CUSTOM_GPU_POOL'


class ReservationAuditTest(ReservationTest):
    """The findings are those of a running cloud, and so are the repairs."""

    def findings(self):
        """Audit the cloud; return its findings about reservations."""
        result = self.run_command('audit', '-f', 'json')
        findings = [
            finding
            for finding in result.document['findings']
            if finding['kind'].startswith('reservation-')
        ]
        assert not findings or result.code == 4
        return findings

    def repair(self, finding):
        """Run the repair of a finding as it is printed."""
        [repair] = finding['repairs']
        program, *words = shlex.split(repair['command'])
        assert program == 'isolate-aggregates'
        return self.run_command(*words)

    def test_slots_that_a_later_lock_closes(self):
        reservation = self.reserve('--amount', '1')
        [host] = self.slots(reservation)
        assert self.findings() == []
        self.give_trait(host, 'CUSTOM_GPU_POOL')
        self.aggregate('gpu', [host], {GPU: 'required'})
        [finding] = self.findings()
        assert finding['kind'] == 'reservation-closed'
        assert finding['subject'] == f'reservation {reservation}'
        assert f'has 1 slot on host {host}, which' in finding['problem']
        message = self.refusal_of(reservation)
        assert message.startswith('No valid host was found')
        assert self.repair(finding).code == 0
        [other] = self.slots(reservation)
        assert other != host
        assert self.host_for(reservation) == other
        assert self.findings() == []

    def test_an_end_that_nothing_carries_out(self):
        store = reservations.ReservationStore(self.connection())
        now = datetime.datetime.now(datetime.UTC)
        reservation = reservations.new(
            OWNER,
            1,
            reservations.Shape(vcpus=1, ram=64, disk=1),
            now - 2 * HOUR,
            now - HOUR,
        )
        reservations.create(store, reservation, now - 3 * HOUR)
        reservations.reconcile_all(store, now - 1.5 * HOUR)
        # It is over, and its owner can still boot.
        server = self.boot(reservation.id)
        assert host_of(server) in self.POOL
        [finding] = self.findings()
        assert finding['kind'] == 'reservation-not-reconciled'
        assert finding['subject'] == f'reservation {reservation.id}'
        self.repair(finding)
        self._wait_until_deleted(server)
        self.repair(finding)
        assert self.findings() == []
