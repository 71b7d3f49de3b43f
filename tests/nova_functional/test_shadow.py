# SPDX-License-Identifier: Apache-2.0
"""Filters in shadow decide, and nothing else happens."""

import json
import time

from base import (
    CONF,
    ISOLATE,
    LOCK,
    RESERVATIONS,
    ShorteningCloudTest,
    host_of,
)
import jsonschema
from nova.scheduler import request_filter
from nova.scheduler.client import report
from record_schema import SCHEMA
import uninstalling

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.nova import records

OWNER, STRANGER = 'a' * 32, 'b' * 32
TRAIT = 'CUSTOM_LICENSED_WINDOWS'
LEASE = 'reservation:4d17d41a'
OURS = 'IsolatedAggregatesFilter'


class Shadow(ShorteningCloudTest):
    """host1 is licensed, host2 reserved, host3 is of a tenant."""

    REQUEST_FILTERS = (
        'isolate_aggregates',
        'reservation_prefix',
        'isolate_tenants',
    )
    HOSTS = ('host1', 'host2', 'host3')
    OPTIONS = (
        ISOLATE,
        *RESERVATIONS,
        (ia_conf.GROUP, 'mode', 'shadow'),
        (ia_conf.GROUP, 'decisions', 'none'),
    )

    def setUp(self):
        super().setUp()
        self.flags(instances=500, cores=-1, ram=-1, group='quota')
        self.aggregate('licensed', ['host1'], {LOCK: 'required'})
        self.aggregate(
            'lease', ['host2'], {LEASE: 'true', 'blazar:owner': OWNER}
        )
        self.aggregate('theirs', ['host3'], {'filter_tenant_id': OWNER})
        self.give_trait('host1', TRAIT)
        self.queries = []
        get = report.SchedulerReportClient.get

        def watched(client, url, **kwargs):
            if url.startswith('/allocation_candidates'):
                self.queries.append(url)
            return get(client, url, **kwargs)

        self.stub_out(
            'nova.scheduler.client.report.SchedulerReportClient.get', watched
        )
        plain = self.flavor()
        self.requests = [
            {'flavor': plain},
            {'flavor': plain, 'project': OWNER},
            {'flavor': self.flavor({f'trait:{TRAIT}': 'required'})},
            {'flavor': self.flavor({LEASE: 'true'})},
            {'flavor': self.flavor({'reservation:none': 'true'})},
            {
                'flavor': self._create_flavor(
                    vcpu=99, memory_mb=64, disk=1, ephemeral=0
                ),
                'status': 'ERROR',
            },
        ]

    def made(self):
        """Make each server for itself, and return the ids and hosts."""
        found = []
        for request in self.requests:
            server = self.boot(**request)
            found.append((server['id'], host_of(server)))
            self._delete_server(server)
        return found

    def records(self):
        found = [
            json.loads(line[line.index('{') :])
            for line in self.log().splitlines()
            if '[isolate_aggregates.decisions]' in line
            and '"isolate-aggregates/decision/1"' in line
        ]
        for record in found:
            jsonschema.validate(record, SCHEMA)
        return {record['server']: record['shadow'] for record in found}

    def settled(self, number):
        until = time.monotonic() + 60
        while len(self.records()) < number and time.monotonic() < until:
            time.sleep(0.1)
        return self.records()

    def switch(self, mode, with_package=True):
        uninstalling.uninstall()
        available = ['nova.scheduler.filters.all_filters']
        enabled = [
            name
            for name in CONF.filter_scheduler.enabled_filters
            if name != OURS
        ]
        self.flags(
            available_filters=[*available, self.AVAILABLE]
            if with_package
            else available,
            enabled_filters=[*enabled, OURS] if with_package else enabled,
            group='filter_scheduler',
        )
        self.flags(mode=mode, group=ia_conf.GROUP)
        self.restart_scheduler()

    def test_nothing_changes_and_what_would_is_foretold(self):
        filters = [*request_filter.ALL_REQUEST_FILTERS]
        in_shadow, queries = self.made(), self.queries[:]
        # host1 has what its flavor requires, also without the filters.
        told = self.settled(3)

        self.switch('shadow', with_package=False)
        assert filters == request_filter.ALL_REQUEST_FILTERS
        del self.queries[:]
        without = self.made()
        assert [host for _, host in in_shadow] == [host for _, host in without]
        assert queries == self.queries

        self.switch('enforce')
        for request, (server, host) in zip(
            self.requests, in_shadow, strict=True
        ):
            effect = told.get(server, {'effect': 'none'})['effect']
            is_placed = host and effect in ('none', 'other_host')
            after = self.boot(
                **{**request, 'status': 'ACTIVE' if is_placed else 'ERROR'}
            )
            assert (host_of(after) == host) == (effect == 'none'), effect
            self._delete_server(after)

        effects = [
            told.get(server, {}).get('effect') for server, _ in in_shadow
        ]
        # In-tree isolation keeps the first ones from host1 already.
        assert effects == [
            'no_host', 'other_host', None, None, 'refused', None,
        ]  # fmt: skip
        [first, *_] = [told[server] for server, _ in in_shadow[:1]]
        assert first['would_exclude'] == {
            'host2': [
                {
                    'filter': 'reservation_prefix',
                    'uuid': first['would_exclude']['host2'][0]['uuid'],
                    'name': 'lease',
                    'locks': [f'{LEASE}=true'],
                }
            ]
        }

    def test_filters_that_fail_change_nothing(self):
        def broken():
            raise RuntimeError('no database')

        records._recorder.shadow._runner._cache._read = broken
        server = self.boot(self.flavor())
        assert host_of(server) == 'host2'
        assert self.settled(1)[server['id']]['effect'] == 'failed'


class SingleShadow(ShorteningCloudTest):
    """One filter is in shadow, and another one has an effect."""

    REQUEST_FILTERS = ('isolate_aggregates', 'isolate_tenants')
    HOSTS = ('host1', 'host2')
    OPTIONS = (ISOLATE, (ia_conf.GROUP, 'shadow_filters', ['isolate_tenants']))

    def test_the_others_have_their_effect(self):
        self.aggregate('licensed', ['host1'], {LOCK: 'required'})
        self.aggregate('theirs', ['host2'], {'filter_tenant_id': OWNER})
        server = self.boot(self.flavor(), project=STRANGER)
        assert host_of(server) == 'host2'
        until = time.monotonic() + 60
        found = []
        while not found and time.monotonic() < until:
            found = [
                json.loads(line[line.index('{') :])
                for line in self.log().splitlines()
                if '[isolate_aggregates.decisions]' in line
                and server['id'] in line
            ]
            time.sleep(0.1)
        [record] = found
        assert record['shadow']['effect'] == 'no_host'
        assert [each['filter'] for each in record['locks']] == [
            'isolate_aggregates'
        ]
        assert [each['filter'] for each in record['shadow']['locks']] == [
            'isolate_tenants'
        ]
