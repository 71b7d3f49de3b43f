# SPDX-License-Identifier: Apache-2.0
"""Checks the hosts of requests for which no request filter runs.

When a server is rebuilt on its host, nova-scheduler runs no request filters
(``select_destinations`` in ``nova.scheduler.manager``). So a server could be
rebuilt on a licensed host from an image without a license. Host filters with
``RUN_ON_REBUILD`` do run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
import functools
import itertools

from nova import objects
from nova.scheduler import filters
from nova.scheduler.host_manager import HostState
from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.nova import messages, registration
from isolate_aggregates.nova.candidates import CheckedCandidates, are_unread
from isolate_aggregates.nova.runner import Runner
from isolate_aggregates.text import escaped

LOG = logging.getLogger(__name__)

# If more hosts are excluded for a request, the reasons are logged at DEBUG.
_MOST = 10


def host_filters(name: str) -> list[type[filters.BaseHostFilter]]:
    """Return the host filters that a name in ``available_filters`` stands for.

    It may be a module, or a function with code of others, which can raise
    anything.
    """
    found: list[type[filters.BaseHostFilter]] = (
        filters.HostFilterHandler().get_matching_classes([name])
    )
    return found


class IsolatedAggregatesFilter(filters.BaseHostFilter):
    """Passes only hosts that the request filters allow.

    If the request filters have just run for the request, Placement has already
    excluded all other hosts, and every host passes without a check. If the
    query to Placement was shortened, the hosts are checked for what it leaves
    out, with a single query to the database. Their allocation candidates are
    checked in Placement when Nova uses them.
    """

    RUN_ON_REBUILD = True

    def filter_all(
        self,
        filter_obj_list: Iterable[HostState],
        spec_obj: objects.RequestSpec,
    ) -> Iterator[HostState]:
        """Yield the hosts that a request may use."""
        states = list(filter_obj_list)
        reasons = self._reasons(states, spec_obj)
        for state in states:
            if not reasons.get(state.uuid):
                yield state

    def host_passes(
        self, host_state: HostState, spec_obj: objects.RequestSpec
    ) -> bool:
        """Return whether a request may use a host.

        :returns: Also False if the host cannot be checked.
        """
        return not self._reasons([host_state], spec_obj).get(host_state.uuid)

    def _reasons(
        self, states: Iterable[HostState], spec: objects.RequestSpec
    ) -> Mapping[str, Sequence[str]]:
        """Return why a request may not use compute nodes, and log it."""
        states = list(states)
        nodes = {state.uuid: state.host for state in states}
        runner = registration.installed()
        if runner is None:
            LOG.error(
                'IsolatedAggregatesFilter is enabled, but '
                'isolate_aggregates.nova.all_filters is not among '
                '[filter_scheduler] available_filters; no host passes.'
            )
            return dict.fromkeys(nodes, ('there are no request filters',))
        reasons: Mapping[str, Sequence[str]]
        if runner.is_idle:
            return {}
        try:
            reasons = runner.objections(spec, nodes)
            if check := runner.candidate_check(spec):
                number = itertools.count(1)
                for state in states:
                    state.allocation_candidates = CheckedCandidates(
                        check,
                        state.uuid,
                        state.allocation_candidates,
                        functools.partial(
                            _excluded_late, runner, spec, number, state.host
                        ),
                    )
                if are_unread(spec):
                    reasons = {
                        state.uuid: reasons.get(state.uuid)
                        or ('Placement has it where the request may not be',)
                        for state in states
                        if reasons.get(state.uuid)
                        or not state.allocation_candidates
                    }
        except exception.IsolateAggregatesError as exc:
            runner.failed(exc)
            reasons = dict.fromkeys(nodes, (str(exc),))
        _log({nodes[node]: why for node, why in reasons.items() if why}, spec)
        return reasons


def _excluded_late(
    runner: Runner,
    spec: objects.RequestSpec,
    number: Iterator[int],
    host: str,
    reasons: Sequence[str],
) -> None:
    """Tell that a request may not use a host that Nova was about to use.

    :param number: Counts the hosts of the request.
    """
    runner.unusable(host)
    _log_host(
        logging.DEBUG if next(number) > _MOST else logging.INFO,
        host,
        messages.server(spec),
        reasons,
    )


def _log(
    reasons: Mapping[str, Sequence[str]], spec: objects.RequestSpec
) -> None:
    """Log why a request may not use hosts; those of many only at DEBUG."""
    server = messages.server(spec)
    level = logging.DEBUG if len(reasons) > _MOST else logging.INFO
    if LOG.isEnabledFor(level):
        for host, objections in sorted(reasons.items()):
            _log_host(level, host, server, objections)
    if len(reasons) > _MOST:
        LOG.info(
            '%(number)d hosts may not be used for %(server)s; the reasons are '
            'logged at DEBUG.',
            {'number': len(reasons), 'server': server},
        )


def _log_host(
    level: int, host: str, server: str, reasons: Sequence[str]
) -> None:
    LOG.log(
        level,
        'Host %(host)s may not be used for %(server)s: %(reasons)s',
        {
            'host': host,
            'server': server,
            'reasons': escaped('; '.join(reasons)),
        },
    )
