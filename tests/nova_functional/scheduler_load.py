# SPDX-License-Identifier: Apache-2.0
"""A nova-scheduler that serves requests of every kind, one after the other.

All is real: Nova's ``select_destinations`` with its databases and host
filters, the request filters of this package, and Placement. Only what takes
most of the time and is not looked at is saved: Placement's candidates are
remembered by query, and nothing is claimed.
"""

import itertools

from base import (
    ISOLATE,
    LOCK,
    OTHER_IMAGE,
    RESERVATIONS,
    ShorteningCloudTest,
)
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models
from nova.scheduler import request_filter
from nova.scheduler.client import report
import oslo_messaging
import sqlalchemy as sa

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.filters import RequestFilter
from isolate_aggregates.filters.constraints import (
    Forbid,
    LazyForbid,
)
from isolate_aggregates.filters.pipeline import LoadedFilter
from isolate_aggregates.nova import registration

OWNER, STRANGER = 'a' * 32, 'b' * 32
LEASE = 'reservation:lease'
FILTERS = (
    'isolate_aggregates',
    'reservation_prefix',
    'blazar_reservation',
    'isolate_tenants',
    'aggregate_instance_extra_specs',
)
# Bytes, for about eight aggregates. Most requests are kept out of more.
LIMIT = 460
# Requests between two changes of the aggregates.
UNCHANGED = 10
# The most answers of Placement that are remembered.
MOST_ANSWERS = 1000


class Closures(RequestFilter):
    """A filter of another package, whose reasons hold what they can."""

    def __call__(self, request, aggregates):
        class Cause:
            held = request, aggregates

            def __str__(self):
                return f'flavor {self.held[0].flavor.name} is no reason'

        tagged = aggregates.with_key('spare')
        yield LazyForbid(
            frozenset(one.uuid for one in tagged),
            lambda: [Forbid((one,), Cause()) for one in tagged if request],
        )


class Raising(RequestFilter):
    """A filter of another package that fails on a hint."""

    def __call__(self, request, aggregates):
        if 'raise' in request.scheduler_hints:
            error = ValueError('broken')
            error.held = request, aggregates
            raise error
        return ()


def interrupting(context, spec):
    """Fail as one of Nova's own request filters, on a hint."""
    if 'interrupt' in (spec.scheduler_hints or {}):
        raise nova_exception.RequestFilterFailed(reason='not ours')
    return False


class SchedulerLoad(ShorteningCloudTest):
    """The cloud, and the requests.

    Of five hosts, one is licensed, two are reserved, and one is for a project.
    """

    HOSTS = ('host1', 'host2', 'host3', 'host4', 'host5')
    REQUEST_FILTERS = FILTERS
    OPTIONS = (
        ISOLATE,
        *RESERVATIONS,
        (ia_conf.GROUP, 'max_query_length', LIMIT),
        # Sending them takes longer than all else.
        ('notifications', 'notification_format', 'unversioned'),
        (ia_conf.GROUP, 'reservation_key_sources', ['image', 'hint']),
    )

    def setUp(self):
        super().setUp()
        self.licensed(['host1'])
        self.roll_up('host1')
        self.give_trait('host1', LOCK.partition(':')[2])
        self.aggregate(
            'lease', ['host2'], {LEASE: 'true', 'blazar:owner': OWNER}
        )
        self.aggregate(
            'pool', ['host5'], {'blazar:owner': OWNER}, zone='blazar_pool'
        )
        self.aggregate('tenant', ['host3'], {'filter_tenant_id': OWNER})
        self.aggregate('ssd', ['host3', 'host4'], {'ssd': 'true'})
        self.aggregate('spare', [], {'spare': '0'})
        self._flavors = {
            name: objects.Flavor.get_by_flavor_id(
                nova_context.get_admin_context(), self.flavor(specs)
            )
            for name, specs in {
                'plain': None,
                'licensed': {LOCK: 'required'},
                'ssd': {'aggregate_instance_extra_specs:ssd': 'true'},
                'leased': {LEASE: 'true'},
            }.items()
        }
        self.use_other_filters()
        self.remember_candidates()
        self._kinds = itertools.cycle(self.kinds())
        self._numbers = itertools.count(1)
        self.served = self.refused = 0

    def use_other_filters(self):
        """Add filters of other packages, to ours and to Nova's."""
        self.restart_scheduler()
        runner = registration.installed()
        runner.filters = (
            *runner.filters,
            LoadedFilter('closures', Closures()),
            LoadedFilter('raising', Raising()),
        )
        filters = request_filter.ALL_REQUEST_FILTERS
        filters.insert(filters.index(runner) + 1, interrupting)
        self.addCleanup(filters.remove, interrupting)

    def remember_candidates(self):
        """Ask Placement each question once, and claim nothing."""
        get = report.SchedulerReportClient.get
        answers = {}

        def remembered(client, url, **kwargs):
            if not url.startswith('/allocation_candidates'):
                return get(client, url, **kwargs)
            if url not in answers:
                if len(answers) >= MOST_ANSWERS:
                    answers.clear()
                answers[url] = get(client, url, **kwargs)
            return answers[url]

        self.stub_out(
            'nova.scheduler.client.report.SchedulerReportClient.get',
            remembered,
        )
        self.stub_out(
            'nova.scheduler.utils.claim_resources', lambda *a, **k: True
        )

    @staticmethod
    def kinds():
        """Return flavor and fields of each kind of request."""
        leased = {'scheduler_hints': {'reservation': ['pool']}}
        return [
            ('plain', {}),
            ('licensed', {}),
            ('plain', {'project_id': OWNER}),
            ('ssd', {}),
            ('leased', {'project_id': OWNER}),
            ('leased', {'project_id': STRANGER}),
            ('plain', leased | {'project_id': OWNER}),
            ('plain', leased | {'project_id': STRANGER}),
            ('plain', {'force_hosts': ['host1']}),
            ('plain', {'force_hosts': ['host4']}),
            ('licensed', {'force_hosts': ['host1']}),
            ('plain', {'scheduler_hints': {'raise': ['x']}}),
            ('plain', {'scheduler_hints': {'interrupt': ['x']}}),
            ('ssd', {'project_id': OWNER}),
            ('licensed', {'is_bfv': True}),
        ]

    def serve(self):
        """Schedule the next server, as nova-conductor lets it."""
        number = next(self._numbers)
        if number % UNCHANGED == 0:
            self.change(number)
        name, fields = next(self._kinds)
        context = nova_context.get_admin_context()
        server = f'00000000-0000-4000-8000-{number:012x}'
        spec = objects.RequestSpec.from_components(
            context,
            server,
            image={'id': OTHER_IMAGE, 'properties': {}},
            flavor=self._flavors[name],
            numa_topology=None,
            pci_requests=None,
            filter_properties={},
            instance_group=None,
            availability_zone=None,
        )
        for field, value in ({'project_id': STRANGER} | fields).items():
            setattr(spec, field, value)
        spec.user_id = 'user'
        # As over RPC: Nova's objects have only their fields.
        spec = objects.RequestSpec.obj_from_primitive(spec.obj_to_primitive())
        try:
            self.scheduler_service.manager.select_destinations(
                context,
                spec_obj=spec,
                instance_uuids=[server],
                return_objects=True,
            )
        except oslo_messaging.ExpectedException:
            self.refused += 1
        else:
            self.served += 1
        # Nova's fixture keeps what is sent.
        self.notifier.reset()

    def change(self, number):
        """Change an aggregate, past Nova's API."""
        table = models.AggregateMetadata.__table__
        with api_db.context_manager.writer.get_engine().begin() as link:
            link.execute(
                sa.update(table)
                .where(table.c.key == 'spare')
                .values(value=str(number))
            )
