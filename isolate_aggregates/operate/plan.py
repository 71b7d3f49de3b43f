# SPDX-License-Identifier: Apache-2.0
"""What is to change in a cloud, and how that is done."""

from collections.abc import Callable, Sequence
import dataclasses

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.cloud.track import Track, untracked

DONE = 'done'
FAILED = 'failed'
LEFT = 'not done'

# How often what others undo is done again.
_ROUNDS = 5


@dataclasses.dataclass(frozen=True)
class Step:
    """One change to make.

    :param what: What it does, such as ``add trait CUSTOM_A to host1``.
    :param make: Makes it; made once more it changes nothing.
    """

    what: str
    make: Callable[[], object]


@dataclasses.dataclass(frozen=True)
class Plan:
    """Changes that belong together.

    :param steps: The changes, in the order in which they are safe.
    :param traits: The traits it is about.
    :param notes: What is worth knowing, one sentence each.
    :param problems: What cannot be done and why, one sentence each.
    :param aggregate: The aggregate that it locks, as it was; None if it locks
        none.
    """

    steps: tuple[Step, ...] = ()
    traits: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    aggregate: Aggregate | None = None


@dataclasses.dataclass
class Outcome:
    """What became of a plan.

    :param rows: What each step does, and what became of it.
    :param error: Why it ended before its end, or may not have lasted.
    """

    rows: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    error: BaseException | None = None


def carry_out(
    plan: Plan,
    again: Callable[[Plan], Plan] | None = None,
    track: Track = untracked,
) -> Outcome:
    """Make the changes of a plan, and again what others undo meanwhile.

    :param again: Returns what is to be done after a plan was carried out,
        from what is there then: nothing, unless others changed the same thing.
        None if that cannot be.
    :param track: Shows progress.
    """
    outcome = Outcome()
    left: Sequence[Step] = plan.steps
    _make(left, outcome, track)
    if again is None or not left:
        return outcome
    for _ in range(_ROUNDS):
        if outcome.error:
            return outcome
        try:
            left = again(plan).steps
        except exception.IsolateAggregatesError as exc:
            outcome.error = exc
            return outcome
        if not left:
            return outcome
        _make(left, outcome, track)
    outcome.error = outcome.error or exception.ChangedMeanwhile(
        [step.what for step in left]
    )
    return outcome


def _make(steps: Sequence[Step], outcome: Outcome, track: Track) -> None:
    results = []
    for step in track(iter(steps), 'steps', len(steps)):
        try:
            step.make()
        except (exception.IsolateAggregatesError, KeyboardInterrupt) as exc:
            # Told after what was done already.
            outcome.error = exc
            results.append(FAILED)
            break
        results.append(DONE)
    results += [LEFT] * (len(steps) - len(results))
    outcome.rows += [
        (step.what, result)
        for step, result in zip(steps, results, strict=True)
    ]
