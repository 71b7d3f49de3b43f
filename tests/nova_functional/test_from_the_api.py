# SPDX-License-Identifier: Apache-2.0
"""From the body of ``POST /servers`` on, commands ask what Nova asks.

Each body is sent to a real nova-api. What nova-scheduler then sends to
Placement is what ``query`` prints for the same arguments, and a server gets a
host only if ``explain`` calls it a candidate.
"""

import time

from base import IMAGE, SECONDS, host_of
from day_two import CommandTest
from nova.scheduler.client import report


class FromTheApiTest(CommandTest):
    """A cloud whose queries to Placement are recorded."""

    def setUp(self):
        super().setUp()
        self.flags(instances=-1, cores=-1, ram=-1, group='quota')
        self.queries = []
        ask = report.SchedulerReportClient.get_allocation_candidates

        def recorded(client, context, resources):
            self.queries.append(resources.to_querystring())
            return ask(client, context, resources)

        self.stub_out(
            f'{report.__name__}.SchedulerReportClient'
            '.get_allocation_candidates',
            recorded,
        )

    def small_flavor(self, **more):
        """Make a flavor that fits often into a host."""
        return self._create_flavor(
            **{
                'name': 'small',
                'id': 'small',
                'vcpu': 1,
                'memory_mb': 64,
                'disk': 1,
                'ephemeral': 0,
                **more,
            }
        )

    def sent(self, flavor, image=IMAGE, networks='none', hints=None, **more):
        """Boot a server; return it and the queries to Placement."""
        self.queries.clear()
        server = self._build_server(
            image_uuid=image, flavor_id=flavor, networks=networks
        )
        made = self.admin_api.post_server(
            {
                'server': {**server, **more},
                'os:scheduler_hints': hints or {},
            }
        )
        until = time.monotonic() + SECONDS
        while made.get('status', 'BUILD') == 'BUILD':
            assert time.monotonic() < until
            time.sleep(0.05)
            made = self.admin_api.get_server(made['id'])
        return made, list(self.queries)

    def candidates(self, *arguments):
        """Return the hosts that ``explain`` calls candidates."""
        result = self.run_command('explain', *arguments, '-f', 'json')
        assert (result.code, result.err) == (0, '')
        return {
            host['name']
            for host in result.document['hosts']
            if host['verdict'] == 'candidate'
        }

    def query(self, *arguments):
        """Return the query that the command prints."""
        result = self.run_command('query', *arguments)
        assert (result.code, result.err) == (0, '')
        return result.out.strip()


class ZoneTest(FromTheApiTest):
    """Zones in the body, with and without a forced host."""

    def test_the_zone_of_a_forced_host_replaces_the_requested_one(self):
        self.aggregate('first', ['host1'], zone='az1')
        self.aggregate('second', ['host2'], zone='az2')
        self._start_compute('host3')
        self.small_flavor()
        self.flags(default_schedule_zone='az1')
        self.config.write_text(
            f'{self.config.read_text()}'
            '[DEFAULT]\ndefault_schedule_zone = az1\n'
        )
        for zone, expected in (
            (None, 'host1'),
            ('az2', 'host2'),
            ('az2:host2', 'host2'),
            ('az1:host2', 'host2'),
            (':host2', 'host2'),
            ('az1::host2', 'host2'),
            ('az1:host2:host2', 'host2'),
            ('az2:host3', 'host3'),
            ('nova:host3', 'host3'),
            ('nova:host2', 'host2'),
            ('az2:', 'host2'),
        ):
            more = {} if zone is None else {'availability_zone': zone}
            server, queries = self.sent('small', **more)
            arguments = ('--flavor', 'small') + (
                () if zone is None else ('--availability-zone', zone)
            )
            assert host_of(server) == expected, zone
            assert [self.query(*arguments)] == queries, zone
            assert expected in self.candidates(*arguments), zone

    def test_a_host_that_is_only_requested_must_be_in_the_zone(self):
        self.aggregate('first', ['host1'], zone='az1')
        self.aggregate('second', ['host2'], zone='az2')
        self.small_flavor()
        for zone, status in (('az1', 'ERROR'), ('az2', 'ACTIVE')):
            server, queries = self.sent(
                'small', availability_zone=zone, host='host2'
            )
            assert server['status'] == status
            arguments = (
                *('--flavor', 'small', '--host', 'host2'),
                *('--availability-zone', zone),
            )
            assert [self.query(*arguments)] == queries
            assert bool(self.candidates(*arguments)) == (status == 'ACTIVE')
