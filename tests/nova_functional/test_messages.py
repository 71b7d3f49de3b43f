# SPDX-License-Identifier: Apache-2.0
"""The messages for users, and in the log of nova-scheduler."""

import json
import re

from base import IMAGE, ISOLATE, RESERVATIONS, CloudTest, OverApi, host_of

from isolate_aggregates import conf as ia_conf

FORGED = 'x\n1999-12-31 23:59:59.000 INFO nova FORGED\x1b[31m\x9b\u2028\u202e'
SHOWN = r'x\n1999-12-31 23:59:59.000 INFO nova FORGED\x1b[31m\x9b\u2028\u202e'
OWNER, STRANGER = 'a' * 32, 'b' * 32
LEASE = 'reservation:4d17d41a'


class MessagesTest(CloudTest):
    """host1 is licensed, host2 is reserved, and host3 is not locked."""

    REQUEST_FILTERS = ('isolate_aggregates', 'reservation_prefix')
    HOSTS = ('host1', 'host2', 'host3')
    OPTIONS = (
        ISOLATE,
        *RESERVATIONS,
        (ia_conf.GROUP, 'reservation_key_sources', ['image', 'hint']),
        (ia_conf.GROUP, 'decisions', 'narrowed'),
    )

    def setUp(self):
        super().setUp()
        self.licensed = self.aggregate(
            'licensed', ['host1'], {'trait:CUSTOM_LICENSED': 'required'}
        )
        self.lease = self.aggregate(
            'lease', ['host2'], {LEASE: 'true', 'blazar:owner': OWNER}
        )

    def lines_of(self, server, start):
        """Return the lines of the log about a server."""
        return [
            line
            for line in self.log().splitlines()
            if f'{start} server {server["id"]}' in line
        ]

    def records_of(self, server):
        """Return the records of a server."""
        return [
            json.loads(line.partition('[isolate_aggregates.decisions] ')[2])
            for line in self.log().splitlines()
            if '[isolate_aggregates.decisions]' in line
            and server['id'] in line
        ]

    def test_the_log_names_the_aggregates_closed_to_a_server(self):
        server = self.boot(self.flavor())
        assert host_of(server) == 'host3'
        [record] = self.records_of(server)
        assert record['result'] == 'placed'
        assert record['hosts'] == ['host3']
        assert [
            (each['cause'], [one['name'] for one in each['some']])
            for each in record['locks']
        ] == [
            ('missing-traits', ['licensed']),
            ('no-reservation-named', ['lease']),
        ]

    def test_nothing_is_logged_for_a_server_without_constraints(self):
        self.tag(self.licensed, {'trait:CUSTOM_LICENSED': None})
        self.tag(self.lease, {LEASE: None})
        server = self.boot(self.flavor())
        assert host_of(server) == 'host1'
        assert self.records_of(server) == []

    def test_users_cannot_tell_foreign_reservations_from_missing_ones(self):
        told = set()
        for key in (LEASE, 'reservation:none'):
            for claim in (
                {'hints': {key: 'true'}},
                {'image': self.image({key: 'true'})},
            ):
                server = self.boot(
                    self.flavor(), project=STRANGER, status='ERROR', **claim
                )
                message = self.told_of(server)
                told.add(re.sub(r'req-\S+', '', message))
                # An operator can.
                [line] = self.lines_of(server, 'Refused to schedule')
                assert re.search(r'req-\S+', message).group() in line
                assert ('does not own' in line) == (key == LEASE)
        [only] = told
        assert key not in only

    def test_no_tenant_can_forge_a_line_of_the_log(self):
        """By names, by image properties and by hints."""
        image = self.image({f'reservation:{FORGED}': '1'})
        self.glance.images[image]['name'] = FORGED
        flavor = self.flavor()
        for request in (
            {'hints': {f'reservation:{FORGED}': '1'}},
            {'image': image},
        ):
            server = self.boot(flavor, status='ERROR', **request)
            [line] = self.lines_of(server, 'Refused to schedule')
            assert f'reservation:{SHOWN}' in line
        # Its name is in the record.
        self.glance.images[image]['properties'] = {}
        server = self.boot(flavor, image=image)
        [record] = self.records_of(server)
        assert record['image']['name'] == FORGED

        ours = [
            line
            for line in self.log().split('\n')
            if 'isolate_aggregates' in line
        ]
        assert ours
        assert all(line.isprintable() for line in ours)
        assert not re.search('^1999-12-31', self.log(), re.MULTILINE)

    def test_the_reason_for_an_ended_reservation_is_only_in_the_log(self):
        reason = self.refusal_of(self.flavor({'reservation:9': '1'}))
        assert 'no aggregate has the metadata key reservation:9' in reason


class ToldWithoutAggregatesTest(OverApi, CloudTest):
    """The aggregates cannot be read from Nova's API."""

    OPTIONS = (ISOLATE,)

    def test_no_endpoint_is_shown_to_a_user(self):
        flavor = self.flavor()
        assert self.host_for(flavor, image=IMAGE) == 'host1'
        self.flags(token='wrong', group=ia_conf.GROUP)
        self.restart_scheduler()
        server = self.boot(flavor, status='ERROR')
        message = self.told_of(server)
        assert 'http' not in message
        assert 'Nova' not in message
        # refusal_of() reads the sentence and the log alike.
        reason = self.refusal_of(flavor)
        assert 'aggregates cannot be read' in reason
        assert 'http' in reason
