# SPDX-License-Identifier: Apache-2.0
"""Says why a cloud violates an expectation, in the words of ``explain``."""

from collections.abc import Iterator

from isolate_aggregates import exception
from isolate_aggregates.text import named
from isolate_aggregates_tools import errors, explain, ranges
from isolate_aggregates_tools.answers import deciding
from isolate_aggregates_tools.expectations.answers import Answers
from isolate_aggregates_tools.expectations.expectation import Violation
from isolate_aggregates_tools.explain import groups
from isolate_aggregates_tools.request import Request


def reasons(violation: Violation, answers: Answers) -> list[str]:
    """Return why hosts may be used, or why not, those of most hosts first."""
    return [
        *violation.reasons,
        *_why_usable(violation, answers),
        *_why_excluded(violation, answers),
    ]


def _why_usable(violation: Violation, answers: Answers) -> Iterator[str]:
    if not violation.extra_hosts:
        return
    why = _Openings(violation.request, answers)
    by_reason: dict[str, list[str]] = {}
    for host in sorted(violation.extra_hosts):
        by_reason.setdefault(why.of(host), []).append(host)
    for reason, some in by_reason.items():
        yield f'{ranges.folded(some)}: {reason}'


class _Openings:
    """Tells why the locks of hosts do not keep a request out."""

    def __init__(self, request: Request | None, answers: Answers) -> None:
        self._answers = answers
        pipeline = answers.context.pipeline
        self._enforced = {
            lock.name for lock in pipeline.locks(answers.aggregates)
        }
        self._closed = (
            frozenset[str]()
            if request is None
            else deciding.decided(
                request, answers.aggregates, pipeline
            ).destination.forbidden_aggregates
        )

    def of(self, host: str) -> str:
        """Return the reason for a host."""
        locks = self._answers.locks_by_host.get(host, ())
        if not locks:
            return 'no lock'
        by_cause: dict[str, list[str]] = {}
        for name in locks:
            by_cause.setdefault(self._cause(name, host), []).append(name)
        return '; '.join(
            cause.format(named('lock', names))
            for cause, names in by_cause.items()
        )

    def _cause(self, name: str, host: str) -> str:
        if name not in self._enforced:
            return 'no filter that is on keeps {}'
        closed = any(
            aggregate.uuid in self._closed
            for lock in self._answers.locks
            if lock.name == name
            for aggregate in lock.aggregates
            if host in aggregate.hosts
        )
        if closed:
            return '{} is closed, but Placement lacks the membership'
        return 'the request has the key to {}'


def _why_excluded(violation: Violation, answers: Answers) -> Iterator[str]:
    request, hosts = violation.request, violation.missing_hosts
    if request is None or not hosts:
        return
    snapshot = answers.snapshot if violation.is_room else answers.empty
    try:
        decision = deciding.decided(
            request, answers.aggregates, answers.context.pipeline
        )
        explanation = explain.of_request(
            snapshot, request, decision.destination
        )
    except (errors.InvalidRequest, exception.BadQuery) as exc:
        yield str(exc).rstrip('.')
        return
    excluded = [
        verdict
        for verdict in explanation.verdicts
        if verdict.host in hosts and not verdict.is_candidate
    ]
    for group in groups.hosts(excluded):
        names = ranges.folded(verdict.host for verdict in group.verdicts)
        yield f'{names}: {"; ".join(group.reasons)}'
