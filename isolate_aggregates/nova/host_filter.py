# SPDX-License-Identifier: Apache-2.0
"""Judges the hosts of requests that passed the request filters by.

nova-scheduler asks no request filter when a server is rebuilt on its host
(``select_destinations`` in ``nova.scheduler.manager``), so a server could be
rebuilt on a licensed host from an image without a licence. Host filters with
``RUN_ON_REBUILD`` are asked.
"""

from __future__ import annotations

from nova import context as nova_context
from nova import objects
from nova.scheduler import filters
from nova.scheduler.host_manager import HostState
from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.nova import registration

LOG = logging.getLogger(__name__)


class IsolatedAggregatesFilter(filters.BaseHostFilter):
    """Passes a host only if the request filters would have let it pass.

    For a request that they have just judged, Placement has done so already,
    and every host passes at once.
    """

    RUN_ON_REBUILD = True

    def host_passes(
        self, host_state: HostState, spec_obj: objects.RequestSpec
    ) -> bool:
        """Tell whether a host may serve a request.

        :param host_state: The host.
        :param spec_obj: Nova's request spec.
        :returns: False also when it can not be found out.
        """
        runner = registration.installed()
        if runner is None:
            LOG.error(
                'IsolatedAggregatesFilter is enabled, but '
                'isolate_aggregates.nova.all_filters is not among '
                '[filter_scheduler] available_filters; no host passes.'
            )
            return False
        if runner.has_judged(spec_obj):
            return True
        try:
            reasons = runner.judge(
                nova_context.get_admin_context(), spec_obj
            ).against(host_state.host)
        except exception.IsolateAggregatesError as exc:
            reasons = [str(exc)]
        if reasons:
            LOG.info(
                'Host %(host)s is not for server %(server)s: %(reasons)s',
                {
                    'host': host_state.host,
                    'server': spec_obj.instance_uuid
                    if 'instance_uuid' in spec_obj
                    else None,
                    'reasons': '; '.join(reasons),
                },
            )
        return not reasons
