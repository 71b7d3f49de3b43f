# SPDX-License-Identifier: Apache-2.0
"""Finds out what request filters in shadow would have changed.

They decide after Nova has answered, in the thread of the records, about a copy
of the request. Nothing of that reaches Nova.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from isolate_aggregates import exception
from isolate_aggregates.nova import adapter
from isolate_aggregates.record import closing, cut, of_decision

if TYPE_CHECKING:
    from isolate_aggregates.nova.records import Trace
    from isolate_aggregates.nova.runner import Runner


class Shadow:
    """The request filters that only record.

    :param runner: Has these filters, and is not in Nova's list.
    :param most: The most hosts that Placement returns.
    :param replaces: Whether one of them would replace a filter of Nova's that
        forbids aggregates.
    """

    def __init__(self, runner: Runner, most: int, replaces: bool) -> None:
        self._runner, self._most, self._replaces = runner, most, replaces

    def compare(self, trace: Trace) -> dict[str, Any]:
        """Return what would have been different, and its ``effect``.

        The effect is ``none``, ``refused``, ``other_host``, ``no_host``,
        or ``not_known`` if that depends on hosts that Placement did not
        return.

        :raises Exception: if the filters could not decide.
        """
        spec = copy.copy(trace.spec)
        # Filters may replace the image in the copy.
        spec._changed_fields = set(trace.spec.obj_what_changed())
        target = adapter.destination_of(spec)
        if self._replaces and target and target.forbidden_aggregates:
            spec.requested_destination = target = target.obj_clone()
            target.forbidden_aggregates = None
        try:
            decision = self._runner.decide(spec)
        except exception.RequestRefused as exc:
            return {'effect': 'refused', 'reason': cut('; '.join(exc.reasons))}
        found = of_decision(decision)
        if decision.destination.refusals:
            return {'effect': 'refused', **found}
        hosts = trace.hosts
        if not decision.destination.yielded or not hosts:
            return {'effect': 'none'}
        own = self._runner.hosts.memberships({*hosts, *trace.passed})
        closed = {
            host
            for host, aggregates in own.items()
            if not decision.destination.allows(aggregates)
        }
        excluded = sorted(closed.intersection(hosts))
        if not excluded:
            return {'effect': 'none'}
        found['would_exclude'] = {
            host: closing(decision, own[host]) for host in excluded[:20]
        }
        others = set(trace.passed) - closed
        if len(others) >= len(hosts):
            effect = 'other_host'
        elif others or len(trace.offered) >= self._most:
            effect = 'not_known'
        else:
            effect = 'no_host'
        return {'effect': effect, **found}
