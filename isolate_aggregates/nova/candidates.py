# SPDX-License-Identifier: Apache-2.0
"""Checks allocation candidates in Placement when Nova is about to use them.

After a shortened query a candidate may be used only if the memberships in
Placement of its providers allow it. A query may return hundreds of hosts, of
which Nova uses the best, and names the next few as alternates. So each host
keeps its candidates behind a sequence that asks Placement when they are read:
by nova-scheduler before it claims a candidate or names it as an alternate
(``_schedule`` and ``_get_alternate_hosts`` in ``nova.scheduler.manager``), or
by a host filter that comes later. nova-scheduler skips a host whose candidates
have all been removed.

Conductors before Pike do not tell the servers. For them nova-scheduler chooses
hosts without reading any candidate, so all are checked before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
import functools
import itertools
import time
from typing import Any, overload

from nova import objects
from nova.scheduler import manager

from isolate_aggregates import exception
from isolate_aggregates.decision import Decision
from isolate_aggregates.placement import PlacementReader
from isolate_aggregates.query_limit import Replacement, memberships
from isolate_aggregates.rest.deadline import Deadline

_IS_MEMBER = (
    'in Placement it, or each provider that it would use, is in an aggregate '
    'that the request may not use'
)
_IS_NO_MEMBER = (
    'in Placement it is in no aggregate that meets this; if this persists, '
    'run "isolate-aggregates audit"'
)

# Set on requests for which Nova reads no candidates.
_UNREAD = '_isolate_aggregates_candidates_unread'

# An allocation candidate, as Nova has it: the providers that it uses are the
# keys of its "allocations".
Candidate = dict[str, Any]


def install() -> None:
    """Notice from now on for which requests Nova reads no candidates."""
    former = getattr(manager.SchedulerManager, '_legacy_find_hosts', None)
    if former is None or hasattr(former, '__wrapped__'):
        return

    @functools.wraps(former)
    def find(
        self: Any,
        context: Any,
        number: int,
        spec: objects.RequestSpec,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        setattr(spec, _UNREAD, True)
        return former(self, context, number, spec, *args, **kwargs)

    manager.SchedulerManager._legacy_find_hosts = find


def are_unread(spec: objects.RequestSpec) -> bool:
    """Return whether Nova chooses a host without reading its candidates."""
    return bool(getattr(spec, _UNREAD, False))


class CandidateCheck:
    """Checks the candidates of the hosts that a shortened query returned.

    What was read is kept for one run of Nova's host filters.

    :param seconds: How long all calls to Placement together may take.
    :param on_failure: Called once if Placement does not answer.
    """

    def __init__(
        self,
        decision: Decision,
        placement: Callable[[], PlacementReader],
        limit: int,
        deadline: Deadline,
        seconds: float,
        on_failure: Callable[[exception.RequestRefused], None],
    ) -> None:
        self._placement = placement
        self._deadline = deadline
        self._seconds_left = seconds
        self._on_failure = on_failure
        self._choices = decision.left_out
        self._left_out = memberships.LeftOut(
            limit,
            decision.replacement or Replacement(frozenset()),
            tuple(self._choices),
        )
        # Why the candidates cannot be checked, if so, and whether that was
        # told.
        self._failure: str | None = None
        self._is_told = False

    def admits(self, node: str, candidate: Candidate) -> bool:
        """Return whether the request may use a candidate.

        :param node: The uuid of its compute node, which is that of its
            provider.
        :returns: Also False if Placement does not answer.
        """
        providers = {node, *candidate['allocations']}
        if not self._left_out.missing({node}) and not self._admits(node):
            # Do not read what only its other candidates use.
            return False
        return (
            self._read(providers)
            and self._admits(node)
            and not any(map(self._left_out.is_forbidden, providers))
        )

    def reasons(self, node: str) -> list[str]:
        """Return the reasons against a node without admitted candidates.

        That Placement does not answer is a reason against all, and returned
        once.
        """
        self._read({node})
        if self._failure:
            is_told, self._is_told = self._is_told, True
            return [] if is_told else [self._failure]
        return [
            f'{reason}; {_IS_NO_MEMBER}'
            for number, reason in enumerate(self._choices.values())
            if not self._left_out.is_in(node, number)
        ] or [_IS_MEMBER]

    def _admits(self, node: str) -> bool:
        """Return whether the request may use a node, whatever else it uses."""
        return not self._left_out.is_forbidden(node) and all(
            self._left_out.is_in(node, number)
            for number in range(len(self._choices))
        )

    def _read(self, providers: set[str]) -> bool:
        """Read the memberships of providers; return whether they are known."""
        missing = self._left_out.missing(providers)
        if self._failure or not missing:
            return self._failure is None
        seconds = self._seconds_left
        # A late call must not refer to a request that no longer waits.
        read = functools.partial(
            self._left_out.read,
            self._deadline.in_time(
                self._placement, 'the members of aggregates', seconds
            ),
            missing,
        )
        started_at = time.monotonic()
        try:
            self._deadline.run(read, seconds)
        except exception.IsolateAggregatesError as exc:
            self._failure = (
                'the query to Placement was shortened, and the returned hosts '
                f'cannot be checked: {exc}'
            )
            self._on_failure(_refused(self._failure, exc))
        self._seconds_left -= time.monotonic() - started_at
        return self._failure is None


def _refused(reason: str, cause: Exception) -> exception.RequestRefused:
    refused = exception.RequestRefused([reason])
    refused.__cause__ = cause
    return refused


class CheckedCandidates(Sequence[Candidate]):
    """The allocation candidates of a host that the request may use.

    Each is checked when it is read. ``len()`` is their number before the
    check, because Nova logs it for hosts that it does not use.

    :param node: The uuid of the compute node.
    :param candidates: Those that Placement returned, or another sequence of
        this class, whose candidates are checked again.
    :param on_excluded: Called once with the reasons if no candidate may be
        used.
    """

    def __init__(
        self,
        check: CandidateCheck,
        node: str,
        candidates: Sequence[Candidate],
        on_excluded: Callable[[Sequence[str]], None],
    ) -> None:
        if isinstance(candidates, CheckedCandidates):
            candidates = candidates._candidates
        self._check = check
        self._node = node
        self._candidates: Sequence[Candidate] = candidates
        self._on_excluded: Callable[[Sequence[str]], None] | None = on_excluded

    def __iter__(self) -> Iterator[Candidate]:
        is_empty = True
        for candidate in self._candidates:
            if self._check.admits(self._node, candidate):
                is_empty = False
                yield candidate
        if is_empty and self._on_excluded:
            if reasons := self._check.reasons(self._node):
                self._on_excluded(reasons)
            self._on_excluded = None

    def __bool__(self) -> bool:
        return any(True for _ in self)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...

    @overload
    def __getitem__(self, index: slice) -> list[Candidate]: ...

    def __getitem__(self, index: int | slice) -> Candidate | list[Candidate]:
        if isinstance(index, slice) or index < 0:
            return list(self)[index]
        for candidate in itertools.islice(self, index, None):
            return candidate
        raise IndexError(index)

    def __len__(self) -> int:
        return len(self._candidates)
