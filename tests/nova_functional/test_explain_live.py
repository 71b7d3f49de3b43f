# SPDX-License-Identifier: Apache-2.0
"""A server without a host is explained from a live Nova and Placement."""

from base import CONF, IMAGE, ISOLATE, LiveTest
from day_two import CommandTest
from nova.scheduler.client import report

from isolate_aggregates.decision import decide
from isolate_aggregates_tools import explain
from isolate_aggregates_tools.mirrored import chain
from isolate_aggregates_tools.request import Request, resources

LICENSED = 'CUSTOM_LICENSED_WINDOWS'


class ExplainTest(LiveTest):
    """Explanations of a live cloud, with real APIs."""

    OPTIONS = (ISOLATE,)

    def test_an_error_server_is_explained_host_by_host(self):
        self.give_trait('host1', LICENSED)
        self.aggregate(
            'licensed', ['host1'], {f'trait:{LICENSED}': 'required'}
        )
        big = self._create_flavor(
            vcpu=11, memory_mb=64, disk=1, ephemeral=0, name='big'
        )
        failed = self.boot(big, hints={'a': 'b'}, status='ERROR')

        cloud = self.live_cloud()
        server = cloud.server(failed['id'])
        assert cloud.server(failed['name']) == server
        assert server.image_id == IMAGE
        assert server.project_id == failed['tenant_id']
        assert server.scheduler_hints == {'a': ('b',)}
        request = Request(
            server.flavor,
            project_id=server.project_id,
            scheduler_hints=server.scheduler_hints,
        )
        explanation = explain.explain(
            cloud.snapshot,
            resources.resource_request(request),
            decide(request, cloud.index, chain.as_in_nova(CONF)).destination,
        )

        assert {
            verdict.host: [reason.text for reason in verdict.reasons]
            for verdict in explanation.verdicts
        } == {
            'host1': [
                f'in aggregate licensed, locked by trait {LICENSED}, which '
                'flavor big does not require',
                'VCPU: requested 11, max_unit 10',
            ],
            'host2': ['VCPU: requested 11, max_unit 10'],
        }


class QueryTest(CommandTest):
    """What nova-scheduler asks, the command asks."""

    def test_the_query_is_the_one_that_nova_scheduler_sends(self):
        self.aggregate('first', ['host2'], zone='az1')
        flavor = self._create_flavor(
            name='odd', extra_spec={'hw:virtio_packed_ring': 'true'}
        )
        sent = []
        ask = report.SchedulerReportClient.get_allocation_candidates

        def recorded(client, context, resources):
            sent.append(resources.to_querystring())
            return ask(client, context, resources)

        self.stub_out(
            f'{report.__name__}.SchedulerReportClient'
            '.get_allocation_candidates',
            recorded,
        )
        self.boot(flavor, zone='az1', status='ERROR')
        result = self.run_command(
            'candidate',
            'list',
            '--query',
            '--flavor',
            'odd',
            '--availability-zone',
            'az1',
        )
        assert [result.out.strip()] == sent
