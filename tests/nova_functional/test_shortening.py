# SPDX-License-Identifier: Apache-2.0
"""A query that would be too long is shortened, and the same is kept out."""

from urllib import parse
import uuid

from base import (
    CONF,
    IMAGE,
    ISOLATE,
    LOCK,
    ROLLUP,
    ShorteningCloudTest,
    host_of,
)
from nova import context as nova_context
from nova import objects
from nova.scheduler import request_filter
from nova.scheduler.client import report
from oslo_utils import uuidutils
import pytest

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import query_limit
from isolate_aggregates.nova import adapter

# Four uuids besides the resources, and no more.
SHORT = 300


class ShorteningTest(ShorteningCloudTest):
    """Twelve isolated aggregates, and room for four."""

    HOSTS = ('host1', 'host2', 'host3')
    OPTIONS = (
        ISOLATE,
        (ia_conf.GROUP, 'max_query_length', SHORT),
    )

    def setUp(self):
        super().setUp()
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

    def forbidden(self):
        """Return the aggregates that the last query forbade."""
        _, _, query = self.queries[-1].partition('?')
        [forbidden] = parse.parse_qs(query)['member_of']
        return forbidden.removeprefix('!in:').split(',')

    @pytest.mark.smoke
    def test_a_rollup_stands_for_all_aggregates(self):
        self.licensed(['host1', 'host2'], 5)
        self.roll_up('host1', 'host2')
        assert self.host_for(self.plain) == 'host3'
        assert ROLLUP in self.forbidden()
        # What room is left is not wasted.
        assert len(self.forbidden()) == 4
        licensed = self.flavor({LOCK: 'required'})
        self.give_trait('host2', LOCK.partition(':')[2])
        assert self.host_for(licensed) == 'host2'

    def test_a_host_that_just_joined_is_excluded(self):
        number = self.licensed(['host1'])[0]
        self.roll_up('host1')
        assert self.host_for(self.plain) == 'host2'

        # The rollup lacks it.
        self.admin_api.add_host_to_aggregate(number, 'host2')
        assert self.host_for(self.plain) == 'host3'
        assert ROLLUP in self.queries[-1]

    def test_a_host_that_just_joined_in_placement_only_is_excluded(self):
        self.licensed(['host1'])
        self.roll_up('host1')
        assert self.host_for(self.plain) == 'host2'

        aggregates = self.admin_api.api_get('/os-aggregates').body[
            'aggregates'
        ]
        self.put_aggregates(
            self._get_provider_uuid_by_host('host2'), [aggregates[0]['uuid']]
        )
        assert self.host_for(self.plain) == 'host3'
        assert ROLLUP in self.queries[-1]
        assert self.host_for_an_old_conductor() == 'host3'

    def host_for_an_old_conductor(self):
        """Return the host if nova-conductor does not tell the server."""
        context = nova_context.get_admin_context()
        spec = objects.RequestSpec.from_components(
            context,
            uuidutils.generate_uuid(),
            image={'id': IMAGE, 'properties': {}},
            flavor=objects.Flavor.get_by_flavor_id(context, self.plain),
            numa_topology=None,
            pci_requests=None,
            filter_properties={},
            instance_group=None,
            availability_zone=None,
        )
        [[selection]] = self.scheduler_service.manager.select_destinations(
            context, spec_obj=spec, return_objects=True
        )
        return selection.service_host

    def test_a_forced_host_that_just_joined_is_refused(self):
        """Nova asks no host filter about it."""
        number = self.licensed(['host1'])[0]
        self.roll_up('host1')
        assert self.host_for(self.plain) == 'host2'
        assert ROLLUP in self.queries[-1]

        self.admin_api.add_host_to_aggregate(number, 'host2')
        assert host_of(self.forced_to('host2', 'ERROR')) is None
        assert host_of(self.forced_to('host3', 'ACTIVE')) == 'host3'
        assert ROLLUP in self.queries[-1]

    def forced_to(self, host, status):
        """Boot a server on a host as an administrator and return it."""
        server = self._build_server(
            image_uuid=IMAGE,
            flavor_id=self.plain,
            networks='none',
            az=f'nova:{host}',
        )
        made = self.admin_api.post_server({'server': server})
        return self._wait_for_state_change(made, status)

    def test_aggregates_added_by_other_filters_are_counted(self):
        self.licensed(['host1'], 5)
        self.roll_up('host1')
        others = [str(uuid.UUID(int=number)) for number in (1, 2)]

        def third_party(context, spec):
            spec.requested_destination = objects.Destination(
                forbidden_aggregates=set(others)
            )

        # What makes the query fit is the last one until now.
        request_filter.ALL_REQUEST_FILTERS.append(third_party)
        self.addCleanup(request_filter.ALL_REQUEST_FILTERS.remove, third_party)
        assert self.host_for(self.plain) == 'host2'
        assert {*others, ROLLUP} <= {*self.forbidden()}
        assert len(self.queries[-1].partition('?')[2]) <= SHORT

    def test_the_length_is_that_of_the_query_nova_sends(self):
        lengths = []
        length = adapter.query_length

        def watched(spec):
            lengths.append(length(spec))
            return lengths[-1]

        self.stub_out(f'{adapter.__name__}.query_length', watched)
        self.licensed(['host1'], 1)
        assert self.host_for(self.plain) == 'host2'
        self.forced_to('host3', 'ACTIVE')
        assert [len(url.partition('?')[2]) for url in self.queries] == [
            each + query_limit.forbidden_length(1) for each in lengths
        ]
        assert lengths[1] > lengths[0]

    def test_what_does_not_fit_is_left_to_the_host_filter(self):
        self.licensed(['host1'], 4)
        assert self.host_for(self.plain) == 'host2'
        for number in range(4):
            self.aggregate(
                f'other-{number}', ['host2'], {f'{LOCK}_{number}': 'required'}
            )
        assert self.host_for(self.plain) == 'host3'
        assert len(self.forbidden()) == 4

    def test_without_the_host_filter_nothing_is_shortened(self):
        enabled = CONF.filter_scheduler.enabled_filters
        self.flags(enabled_filters=enabled[:-1], group='filter_scheduler')
        self.restart_scheduler()
        self.licensed(['host1'])
        self.roll_up('host1')
        assert 'IsolatedAggregatesFilter' in self.refusal_of(self.plain)
        assert self.queries == []
