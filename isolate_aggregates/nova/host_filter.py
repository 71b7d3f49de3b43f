# SPDX-License-Identifier: Apache-2.0
"""Judges the hosts of requests that passed the request filters by.

nova-scheduler asks no request filter when a server is rebuilt on its host
(``select_destinations`` in ``nova.scheduler.manager``), so a server could be
rebuilt on a licensed host from an image without a licence. Host filters with
``RUN_ON_REBUILD`` are asked.
"""

from __future__ import annotations

from collections.abc import (
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)

from nova import objects
from nova.scheduler import filters
from nova.scheduler.host_manager import HostState
from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.nova import messages, registration
from isolate_aggregates.text import escaped

LOG = logging.getLogger(__name__)


class IsolatedAggregatesFilter(filters.BaseHostFilter):
    """Passes a host only if the request filters would have let it pass.

    If they have just judged the request, Placement has already excluded the
    other hosts, and every host passes at once. If the query to Placement was
    shortened, the hosts are checked again, all with one query.
    """

    RUN_ON_REBUILD = True

    def filter_all(
        self,
        filter_obj_list: Iterable[HostState],
        spec_obj: objects.RequestSpec,
    ) -> Iterator[HostState]:
        """Yield the hosts that may serve a request.

        :param filter_obj_list: The hosts.
        :param spec_obj: Nova's request spec.
        """
        states = list(filter_obj_list)
        reasons = self._reasons({state.host for state in states}, spec_obj)
        for state in states:
            if not reasons.get(state.host):
                yield state

    def host_passes(
        self, host_state: HostState, spec_obj: objects.RequestSpec
    ) -> bool:
        """Return whether a host may serve a request.

        :param host_state: The host.
        :param spec_obj: Nova's request spec.
        :returns: False also when it cannot be found out.
        """
        host = host_state.host
        return not self._reasons({host}, spec_obj).get(host)

    def _reasons(
        self, hosts: Collection[str], spec: objects.RequestSpec
    ) -> Mapping[str, Sequence[str]]:
        """Return why hosts may not serve a request, and log it."""
        runner = registration.installed()
        if runner is None:
            LOG.error(
                'IsolatedAggregatesFilter is enabled, but '
                'isolate_aggregates.nova.all_filters is not among '
                '[filter_scheduler] available_filters; no host passes.'
            )
            return dict.fromkeys(hosts, ('there are no request filters',))
        reasons: Mapping[str, Sequence[str]]
        try:
            reasons = runner.objections(spec, hosts)
        except exception.IsolateAggregatesError as exc:
            reasons = dict.fromkeys(hosts, (str(exc),))
        for host, found in reasons.items():
            if found:
                LOG.info(
                    'Host %(host)s is not for %(server)s: %(reasons)s',
                    {
                        'host': host,
                        'server': messages.server(spec),
                        'reasons': escaped('; '.join(found)),
                    },
                )
        return reasons
