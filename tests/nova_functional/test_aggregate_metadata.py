# SPDX-License-Identifier: Apache-2.0
"""Flavors go where the metadata of aggregates is what they require."""

from urllib import parse

from base import CONF, IMAGE, CloudTest, ShorteningCloudTest, host_of
from nova.scheduler.client import report
import pytest

from isolate_aggregates import conf as ia_conf

SCOPE = 'aggregate_instance_extra_specs:'
HOST_FILTER = 'AggregateInstanceExtraSpecsFilter'
# Room for the resources, and for no aggregate.
SHORT = 130


class Flavors:
    """Three hosts, of which the preferred one is in no aggregate."""

    HOSTS = ('host1', 'host2', 'host3')
    REQUEST_FILTERS = ('aggregate_instance_extra_specs',)

    def setUp(self):
        super().setUp()
        self.aggregate('ssd', ['host2', 'host3'], {'ssd': 'true'})
        self.aggregate('gpus', ['host3'], {'gpus': '4, 2'})

        self.ssd = self.flavor({SCOPE + 'ssd': 'true'})
        self.both = self.flavor({'ssd': '<in> ru', SCOPE + 'gpus': '>= 2'})


class BeforePlacementTest(Flavors, CloudTest):
    """Nova's host filter is off; the request filter needs no help."""

    # Placement returns one host, no matter what a host filter does with it.
    OPTIONS = (('scheduler', 'max_placement_results', 1),)

    @pytest.mark.smoke
    def test_placement_returns_hosts_that_a_flavor_wants(self):
        assert HOST_FILTER not in CONF.filter_scheduler.enabled_filters
        assert self.host_for(self.ssd) in ('host2', 'host3')
        assert self.host_for(self.both) == 'host3'
        reason = self.refusal_of(self.flavor({SCOPE + 'ssd': 'false'}))
        assert 'no aggregate has metadata that matches ssd=false' in reason
        reason = self.refusal_of(self.flavor({'gpus': '>= many'}))
        assert 'many is not a number' in reason

    def test_the_host_filter_alone_can_miss_the_required_hosts(self):
        """Of two flavors for different hosts one gets none at least."""
        self.aggregate('hdd', ['host1'], {'ssd': 'false'})
        hdd = self.flavor({SCOPE + 'ssd': 'false'})
        assert self.host_for(hdd) == 'host1'
        assert self.host_for(self.both) == 'host3'
        self.flags(request_filters=[], group=ia_conf.GROUP)
        self.flags(
            enabled_filters=[
                *CONF.filter_scheduler.enabled_filters,
                HOST_FILTER,
            ],
            group='filter_scheduler',
        )
        self.restart_scheduler()
        assert 'ERROR' in (self.end_of(self.both), self.end_of(hdd))

    def end_of(self, flavor):
        """Boot a server and return its status in the end."""
        server = self._build_server(flavor_id=flavor, networks='none')
        made = self.admin_api.post_server({'server': server})
        self._wait_for_server_parameter(made, {'OS-EXT-STS:task_state': None})
        return self.admin_api.get_server(made['id'])['status']


class TooLongTest(Flavors, ShorteningCloudTest):
    """Required aggregates do not fit into the query; Nova's filter is on."""

    OPTIONS = ((ia_conf.GROUP, 'max_query_length', SHORT),)

    def setUp(self):
        super().setUp()
        self.flags(
            enabled_filters=[
                *CONF.filter_scheduler.enabled_filters,
                HOST_FILTER,
            ],
            group='filter_scheduler',
        )
        self.restart_scheduler()
        self.queries = []
        get = report.SchedulerReportClient.get

        def watched(client, url, **kwargs):
            if url.startswith('/allocation_candidates'):
                _, _, query = url.partition('?')
                self.queries.append(parse.parse_qs(query))
            return get(client, url, **kwargs)

        self.stub_out(
            'nova.scheduler.client.report.SchedulerReportClient.get', watched
        )

    def test_requirements_that_do_not_fit_are_left_to_the_host_filter(self):
        assert self.host_for(self.both) == 'host3'
        assert 'member_of' not in self.queries[-1]
        assert 'to IsolatedAggregatesFilter' in self.log()
        # If there is space, the query has all of them.
        self.flags(max_query_length=4000, group=ia_conf.GROUP)
        self.restart_scheduler()
        assert self.host_for(self.both) == 'host3'
        assert len(self.queries[-1]['member_of']) == 2

    def test_a_forced_host_leaves_no_requirement_to_a_host_filter(self):
        server = self._build_server(
            image_uuid=IMAGE,
            flavor_id=self.both,
            networks='none',
            az='nova:host1',
        )
        made = self.admin_api.post_server({'server': server})
        ended = self._wait_for_state_change(made, 'ERROR')
        assert host_of(ended) is None
        assert 'cannot be left to host filters on a forced host' in self.log()
        assert self.queries == []
