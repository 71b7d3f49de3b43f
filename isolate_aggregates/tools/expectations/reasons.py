# SPDX-License-Identifier: Apache-2.0
"""Says why a cloud violates an expectation, in the words of ``explain``."""

from collections.abc import Iterator

from isolate_aggregates import exception, ranges
from isolate_aggregates.decision import decide
from isolate_aggregates.text import named
from isolate_aggregates.tools import explain
from isolate_aggregates.tools.expectations.answers import Answers
from isolate_aggregates.tools.expectations.expectation import Violation
from isolate_aggregates.tools.explain import groups


def reasons(violation: Violation, answers: Answers) -> list[str]:
    """Return why hosts may be used, or why not, those of most hosts first."""
    return [
        *violation.reasons,
        *_why_usable(violation.extra_hosts, answers),
        *_why_excluded(violation, answers),
    ]


def _why_usable(hosts: frozenset[str], answers: Answers) -> Iterator[str]:
    by_locks: dict[tuple[str, ...], list[str]] = {}
    for host in sorted(hosts):
        locks = answers.locks_by_host.get(host, ())
        by_locks.setdefault(locks, []).append(host)
    for locks, some in by_locks.items():
        names = ranges.folded(some)
        if locks:
            yield f'{names}: the request has the key to {named("lock", locks)}'
        else:
            yield f'{names}: no lock'


def _why_excluded(violation: Violation, answers: Answers) -> Iterator[str]:
    request, hosts = violation.request, violation.missing_hosts
    if request is None or not hosts:
        return
    snapshot = answers.snapshot if violation.is_room else answers.empty
    try:
        decision = decide(
            request, answers.aggregates, answers.context.pipeline
        )
        explanation = explain.of_request(
            snapshot, request, decision.destination
        )
    except (exception.InvalidRequest, exception.BadQuery) as exc:
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
