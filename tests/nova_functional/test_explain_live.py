# SPDX-License-Identifier: Apache-2.0
"""A server without a host is explained from a live Nova and Placement."""

from base import CONF, IMAGE, ISOLATE, LiveTest

from isolate_aggregates.decision import decide
from isolate_aggregates.filters import loading
from isolate_aggregates.inspect import explain
from isolate_aggregates.placement import resources
from isolate_aggregates.request import Request

LICENSED = 'CUSTOM_LICENSED_WINDOWS'


class ExplainTest(LiveTest):
    """The APIs are real, and so is what is read from them."""

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
            decide(request, cloud.index, loading.as_in_nova(CONF)).destination,
        )

        assert {
            verdict.host: [reason.text for reason in verdict.reasons]
            for verdict in explanation.verdicts
        } == {
            'host1': [
                f'in aggregate licensed, locked by trait {LICENSED}, which '
                'flavor big does not require',
                'VCPU: asks 11, max_unit 10',
            ],
            'host2': ['VCPU: asks 11, max_unit 10'],
        }
