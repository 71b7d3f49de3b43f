# SPDX-License-Identifier: Apache-2.0
"""The migration from a fork of Nova with a filter for Blazar to ours.

What the fork does is done here by a function of our own, after what its
source says; ``doc/source/admin/forked-filter.rst`` names it.
"""

from base import CONF, CloudTest, host_of
from nova import exception, objects
from nova.scheduler import request_filter
from oslo_config import cfg
import pytest
import uninstalling

OWNER, GUEST, STRANGER = 'a' * 32, 'b' * 32, 'c' * 32
LEASE = '4d17d41a-lease'
HINT = {'reservation': LEASE}

NOVA = 'nova.scheduler.filters.all_filters'
OURS = 'isolate_aggregates.nova.all_filters'
BLAZARS = 'blazarnova.scheduler.filters.blazar_filter.BlazarFilter'

SWITCHES = [
    cfg.BoolOpt('use_blazar_reservation_prefilter', default=False),
    cfg.BoolOpt('blazar_reservation_required', default=False),
]


def blazar_reservation_filter(context, request_spec):
    """Require an aggregate that the hint names and the project owns."""
    if not CONF.scheduler.use_blazar_reservation_prefilter:
        return False
    named = (request_spec.scheduler_hints or {}).get('reservation')
    if not named:
        if CONF.scheduler.blazar_reservation_required:
            raise exception.RequestFilterFailed(reason='the fork: no hint')
        return False
    owned = objects.AggregateList.get_by_metadata(
        context, key='blazar:owner', value=request_spec.project_id
    )
    found = [aggregate.uuid for aggregate in owned if aggregate.name in named]
    if not found:
        raise exception.RequestFilterFailed(reason='the fork: not owned')
    destination = request_spec.requested_destination or objects.Destination()
    destination.require_aggregates(found[:1])
    request_spec.requested_destination = destination
    return True


class ForkedFilterTest(CloudTest):
    """A cloud of the fork, with a free pool, a lease and a host for all."""

    HOSTS = ('host1', 'host2', 'host3')
    REQUEST_FILTERS = ('blazar_reservation',)

    def setUp(self):
        CONF.register_opts(SWITCHES, 'scheduler')
        self.addCleanup(CONF.unregister_opts, SWITCHES, 'scheduler')
        request_filter.ALL_REQUEST_FILTERS.insert(0, blazar_reservation_filter)
        self.addCleanup(self.leave_the_fork)
        super().setUp()
        # Each step boots some.
        self.flags(instances=-1, cores=-1, ram=-1, group='quota')
        self.enabled = [
            name
            for name in CONF.filter_scheduler.enabled_filters
            if name != 'IsolatedAggregatesFilter'
        ]
        self.aggregate('freepool', ['host1'])
        self.aggregate(
            LEASE,
            ['host2'],
            {'blazar:owner': OWNER, GUEST: 'blazar:tenant'},
            zone=f'blazar_{LEASE}',
        )
        self.plain = self.flavor()

    def leave_the_fork(self):
        """Have a Nova without its filter."""
        if blazar_reservation_filter in request_filter.ALL_REQUEST_FILTERS:
            request_filter.ALL_REQUEST_FILTERS.remove(
                blazar_reservation_filter
            )

    def configure(self, forked, ours, host_filters, required=False):
        """Restart nova-scheduler with some of the filters."""
        uninstalling.uninstall()
        if forked is not None:
            self.flags(
                use_blazar_reservation_prefilter=forked,
                blazar_reservation_required=forked and required,
                group='scheduler',
            )
        self.flags(
            reservation_required=ours and required, group='isolate_aggregates'
        )
        self.flags(
            available_filters=[NOVA, BLAZARS, *([OURS] if ours else [])],
            enabled_filters=[*self.enabled, *host_filters],
            group='filter_scheduler',
        )
        self.restart_scheduler()

    def check(self, guest):
        """See that users get the hosts they always got.

        :param guest: Whether projects that were granted a lease may use it.
        """
        owners = self.boot(self.plain, hints=HINT, project=OWNER)
        assert host_of(owners) == 'host2'
        for project in (OWNER, STRANGER):
            assert self.host_for(self.plain, project=project) == 'host3'
        for project, hint in ((STRANGER, LEASE), (OWNER, 'none-such')):
            hints = {'reservation': hint}
            assert self.refusal_of(self.plain, hints=hints, project=project)
        if guest:
            host = self.host_for(self.plain, hints=HINT, project=GUEST)
            assert host == 'host2'
        else:
            assert self.refusal_of(self.plain, hints=HINT, project=GUEST)
        return owners

    @pytest.mark.slow
    def test_the_steps_of_the_page_work(self):
        both = ['BlazarFilter', 'IsolatedAggregatesFilter']
        # Where it starts.
        self.configure(forked=True, ours=False, host_filters=['BlazarFilter'])
        server = self.check(guest=False)
        # 1: both filters, ours and the fork's.
        self.configure(forked=True, ours=True, host_filters=both)
        self.check(guest=False)
        # 2: the fork's is off.
        self.configure(forked=False, ours=True, host_filters=both)
        self.check(guest=True)
        # 3: without BlazarFilter.
        self.configure(
            forked=False, ours=True, host_filters=['IsolatedAggregatesFilter']
        )
        self.check(guest=True)
        # 4: a Nova without the fork.
        self.leave_the_fork()
        CONF.clear_override('use_blazar_reservation_prefilter', 'scheduler')
        self.configure(
            forked=None, ours=True, host_filters=['IsolatedAggregatesFilter']
        )
        self.check(guest=True)
        # Servers that were there before stay.
        assert host_of(self.api.get_server(server['id'])) == 'host2'

    def test_a_cloud_that_requires_reservations_still_does(self):
        """But for flavors of instance reservations, which give no hint."""
        of_instances = self.flavor({'resources:CUSTOM_RESERVATION_4D17': '1'})
        self._create_resource_class('CUSTOM_RESERVATION_4D17')
        self.configure(True, False, ['BlazarFilter'], required=True)
        assert 'the fork: no hint' in self.refusal_of(self.plain)
        assert 'the fork: no hint' in self.refusal_of(of_instances)

        self.configure(
            False, True, ['IsolatedAggregatesFilter'], required=True
        )
        assert self.refusal_of(self.plain) == (
            'every server needs a reservation in this cloud; give the '
            'scheduler hint reservation=<id>'
        )
        # No host has slots; it is not refused before.
        message = self.refusal_of(of_instances)
        assert message.startswith('No valid host was found')
        host = self.host_for(self.plain, hints=HINT, project=OWNER)
        assert host == 'host2'
