# SPDX-License-Identifier: Apache-2.0
"""Plans of changes to a cloud, and their execution."""

from collections.abc import Callable, Sequence
import dataclasses

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.cloud.changes import Change
from isolate_aggregates_tools.cloud.cloud import Track, untracked
from isolate_aggregates_tools.cloud.snapshot import Snapshot

DONE = 'done'
FAILED = 'failed'
LEFT = 'not done'
# The command was interrupted before the answer came.
UNKNOWN = 'unknown'

# How often changes are repeated if other clients undo them.
_ROUNDS = 5


@dataclasses.dataclass(frozen=True)
class Step:
    """One change to make.

    :param what: A description, for example ``add trait CUSTOM_A to host1``.
    :param make: Makes the change; it is idempotent.
    :param change: Makes the same change to a snapshot.
    """

    what: str
    make: Callable[[], object]
    change: Change


@dataclasses.dataclass(frozen=True)
class Plan:
    """Changes that belong together.

    :param steps: The changes, in the safe order.
    :param notes: Notes for the operator, one sentence each.
    :param problems: What cannot be done and why, one sentence each.
    :param aggregate: The aggregate to lock, in its state before; None if the
        plan locks none.
    """

    steps: tuple[Step, ...] = ()
    traits: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    aggregate: Aggregate | None = None

    def change(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot after all steps."""
        for step in self.steps:
            snapshot = step.change(snapshot)
        return snapshot


def joined(plans: Sequence[Plan]) -> Plan:
    """Return one plan for several of the same aggregate."""
    return Plan(
        tuple(step for plan in plans for step in plan.steps),
        tuple(trait for plan in plans for trait in plan.traits),
        tuple(dict.fromkeys(note for plan in plans for note in plan.notes)),
        tuple(problem for plan in plans for problem in plan.problems),
        next((plan.aggregate for plan in plans if plan.aggregate), None),
    )


@dataclasses.dataclass
class Outcome:
    """The result of a plan.

    :param error: Why it was aborted, or why its changes may be undone.
    """

    rows: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    error: BaseException | None = None


def carry_out(
    plan: Plan,
    again: Callable[[Plan], Plan] | None = None,
    track: Track = untracked,
) -> Outcome:
    """Make the changes of a plan, and repeat those that others undo.

    :param again: Returns a new plan from the current state, which is empty
        unless other clients have undone changes. None to skip this check.
    """
    outcome = Outcome()
    remaining: Sequence[Step] = plan.steps
    _make(remaining, outcome, track)
    if again is None or not remaining:
        return outcome
    for _ in range(_ROUNDS):
        if outcome.error:
            return outcome
        try:
            remaining = again(plan).steps
        except exception.IsolateAggregatesError as exc:
            outcome.error = exc
            return outcome
        if not remaining:
            return outcome
        _make(remaining, outcome, track)
    outcome.error = outcome.error or tools_errors.ChangedMeanwhile(
        [step.what for step in remaining]
    )
    return outcome


def _make(steps: Sequence[Step], outcome: Outcome, track: Track) -> None:
    results = []
    for step in track(iter(steps), 'steps', len(steps)):
        try:
            step.make()
        except (exception.IsolateAggregatesError, KeyboardInterrupt) as exc:
            # Reported after the steps that were done.
            outcome.error = exc
            interrupted = isinstance(exc, KeyboardInterrupt)
            results.append(UNKNOWN if interrupted else FAILED)
            break
        results.append(DONE)
    results += [LEFT] * (len(steps) - len(results))
    outcome.rows += [
        (step.what, result)
        for step, result in zip(steps, results, strict=True)
    ]
