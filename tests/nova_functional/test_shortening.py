# SPDX-License-Identifier: Apache-2.0
"""A query that would be too long is shortened and keeps the same out."""

from urllib import parse

from base import CONF, CloudTest
from keystoneauth1 import loading
from nova.scheduler.client import report
import pytest

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.aggregates import rollups

LOCK = 'trait:CUSTOM_LICENSED_WINDOWS'
ROLLUP = rollups.uuid_of(LOCK)
# Four uuids and no more.
SHORT = 200


class ShorteningTest(CloudTest):
    """Twelve isolated aggregates, and room for four."""

    HOSTS = ('host1', 'host2', 'host3')
    OPTIONS = (
        ('scheduler', 'enable_isolated_aggregate_filtering', True),
        (ia_conf.GROUP, 'max_query_length', SHORT),
    )

    def setUp(self):
        super().setUp()
        CONF.register_opts(
            loading.get_auth_plugin_conf_options('admin_token'), 'placement'
        )
        # As nova-scheduler reaches Placement; Nova's fixture goes around it.
        self.flags(
            auth_type='admin_token',
            token='admin',
            endpoint=self.placement.fixture.endpoint,
            endpoint_override=self.placement.fixture.endpoint,
            group='placement',
        )
        self.queries = []
        get = report.SchedulerReportClient.get

        def watched(client, url, **kwargs):
            if url.startswith('/allocation_candidates'):
                self.queries.append(url)
            return get(client, url, **kwargs)

        self.stub_out(
            'nova.scheduler.client.report.SchedulerReportClient.get', watched
        )
        self.plain = self.flavor()

    def licensed(self, hosts, number=12):
        """Make aggregates that are all locked alike."""
        return [
            self.aggregate(f'{hosts}-{i}', hosts, {LOCK: 'required'})
            for i in range(number)
        ]

    def roll_up(self, *hosts):
        """Put hosts into the rollup, as ``sync`` does."""
        for host in hosts:
            provider = self._get_provider_uuid_by_host(host)
            members = self._get_provider_aggregates(provider)
            self.put_aggregates(provider, [*members, ROLLUP])

    def put_aggregates(self, provider, uuids):
        """Replace the aggregates of a provider."""
        path = f'/resource_providers/{provider}'
        generation = self.placement.get(path, version='1.19').body[
            'generation'
        ]
        answer = self.placement.put(
            f'{path}/aggregates',
            {
                'aggregates': uuids,
                'resource_provider_generation': generation,
            },
            version='1.19',
        )
        assert answer.status == 200, answer.body

    def forbidden(self):
        """Return what the last query forbade."""
        _, _, query = self.queries[-1].partition('?')
        return parse.parse_qs(query)['member_of']

    @pytest.mark.smoke
    def test_a_rollup_stands_for_all_aggregates(self):
        self.licensed(['host1', 'host2'])
        self.roll_up('host1', 'host2')
        assert self.host_for(self.plain) == 'host3'
        assert self.forbidden() == [f'!in:{ROLLUP}']
        licensed = self.flavor({LOCK: 'required'})
        self.give_trait('host2', LOCK.partition(':')[2])
        assert self.host_for(licensed) == 'host2'

    def test_without_a_rollup_aggregates_that_add_no_hosts_are_left_out(self):
        self.licensed(['host1'])
        self.licensed(['host1', 'host2'], 1)
        assert self.host_for(self.plain) == 'host3'
        [forbidden] = self.forbidden()
        assert ROLLUP not in forbidden
        assert forbidden.count(',') == 0

    def test_a_host_that_a_rollup_lacks_is_kept_out(self):
        self.licensed(['host1'], 11)
        self.aggregate('late', ['host1', 'host2'], {LOCK: 'required'})
        self.roll_up('host1')
        assert self.host_for(self.plain) == 'host3'
        assert ROLLUP in self.queries[-1]

    def test_a_host_that_joined_a_moment_ago_is_kept_out(self):
        number = self.licensed(['host1'])[0]
        self.roll_up('host1')
        assert self.host_for(self.plain) == 'host2'

        # The rollup lacks it, and what is known of the rollup is not old.
        self.admin_api.add_host_to_aggregate(number, 'host2')
        assert self.host_for(self.plain) == 'host3'
        assert ROLLUP in self.queries[-1]

    def test_what_can_not_be_shortened_is_refused(self):
        self.flags(max_query_length=60, group=ia_conf.GROUP)
        self.restart_scheduler()
        self.licensed(['host1'], 1)
        assert self.host_for(self.plain) == 'host2'
        self.licensed(['host2'], 1)
        assert 'max_query_length = 60' in self.refusal_of(self.plain)
        assert len(self.queries) == 1
