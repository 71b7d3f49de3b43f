# SPDX-License-Identifier: Apache-2.0
"""Carries out a plan of migrations.

Each server is looked at again before it is moved. The first migration that
goes wrong is the last to be started; those that run are waited for.
"""

from collections.abc import Iterable, Iterator, Sequence
import contextlib
import dataclasses
import time

from isolate_aggregates import exception
from isolate_aggregates.text import quoted
from isolate_aggregates_tools.cloud.cloud import Track, untracked
from isolate_aggregates_tools.compute import migrations
from isolate_aggregates_tools.compute.client import NovaClient
from isolate_aggregates_tools.room.task import Move

MOVED = 'moved'
THERE_ALREADY = 'was there already'

# Seconds between two looks at the servers that are being migrated.
PAUSE = 2.0

# Nova has migrated it cold, and keeps the old disk until this is confirmed.
_TO_BE_CONFIRMED = 'VERIFY_RESIZE'
_GO_ON = 'Run the command again; it plans from where the servers are then.'


@dataclasses.dataclass
class Outcome:
    """What became of a plan.

    :param results: The moves that were tried, each with its result.
    :param failures: What went wrong, in sentences.
    :param interruption: The interruption by the user, if any.
    """

    results: list[tuple[Move, str]] = dataclasses.field(default_factory=list)
    failures: list[str] = dataclasses.field(default_factory=list)
    interruption: KeyboardInterrupt | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more may be started."""
        return bool(self.failures or self.interruption)


def carry_out(
    rounds: Iterable[Sequence[Move]],
    nova: NovaClient,
    longest: float,
    track: Track = untracked,
) -> Outcome:
    """Make the moves of a plan, one round after another.

    After an interruption by the user, the migrations that run are waited for.
    A second interruption is raised.

    :param rounds: The moves that can be made at the same time.
    :param longest: How long to wait for the end of a round, in seconds. Nova
        goes on with migrations that take longer.
    """
    steps = [list(moves) for moves in rounds]
    outcome = Outcome()
    total = sum(map(len, steps))
    run = _Run(nova, outcome, longest)
    for move, result in track(run.of(steps), 'servers', total):
        outcome.results.append((move, result))
    return outcome


class _Run:
    """Makes moves, and looks at how they go."""

    def __init__(
        self, nova: NovaClient, outcome: Outcome, longest: float
    ) -> None:
        self._nova = nova
        self._outcome = outcome
        self._longest = longest

    def of(self, rounds: Iterable[list[Move]]) -> Iterator[tuple[Move, str]]:
        """Yield each move that was tried, with its result."""
        for moves in rounds:
            yield from self._round(moves)
            if self._outcome.is_over:
                return

    def _round(self, moves: list[Move]) -> Iterator[tuple[Move, str]]:
        """Start moves, and wait for the end of those that run."""
        until = time.monotonic() + self._longest
        # Why the last look at a server failed.
        unknown: dict[str, str] = {}
        waiting, running = list(moves), list[Move]()
        while waiting or running:
            try:
                while waiting and not self._outcome.is_over:
                    move = waiting[0]
                    try:
                        result = self._start(move)
                    except exception.ServiceError as exc:
                        unknown[move.server.id] = str(exc)
                        break
                    unknown.pop(move.server.id, None)
                    # Only now: a start that was interrupted is looked at.
                    waiting.pop(0)
                    if result is None:
                        running.append(move)
                    else:
                        yield move, result
                if self._outcome.is_over:
                    waiting.clear()
                for move in list(running):
                    try:
                        result = self._look(move)
                    except exception.ServiceError as exc:
                        # The migration goes on while Nova does not answer.
                        unknown[move.server.id] = str(exc)
                        continue
                    unknown.pop(move.server.id, None)
                    if result is not None:
                        running.remove(move)
                        yield move, result
                if not (running or waiting):
                    return
                if time.monotonic() > until:
                    for move in (*running, *waiting[:1]):
                        problem = unknown.get(move.server.id)
                        yield (
                            move,
                            self._unknown(move, problem)
                            if problem
                            else self._late(move),
                        )
                    return
                time.sleep(PAUSE)
            except KeyboardInterrupt as exc:
                if self._outcome.interruption:
                    raise
                self._outcome.interruption = exc
                # It is unknown whether it was started.
                running += waiting[:1]
                waiting.clear()

    def _unknown(self, move: Move, problem: str) -> str:
        return self._failed(
            move, f'it is unknown whether it has moved: {problem}'
        )

    def _start(self, move: Move) -> str | None:
        """Start a move; return its result if it is over already.

        :raises ServiceError: if it was not started, because it is not known
            where the server is.
        """
        now = migrations.position(self._nova, move.server.id)
        if now is None:
            return self._failed(move, 'it was deleted since it was planned')
        flavor = move.server.flavor
        if now.host == move.target and now.task is None:
            return THERE_ALREADY
        if now.task is not None:
            return self._failed(
                move, f'Nova does something else with it: {now.task}'
            )
        if (now.host, now.status) != (move.source, move.server.status) or (
            flavor and now.flavor != flavor.name
        ):
            return self._failed(
                move,
                'it has changed since it was planned: it is '
                f'{now.status} on {now.host} with flavor {now.flavor}',
            )
        try:
            return self._started(move)
        except exception.BadQuery as exc:
            return self._failed(move, str(exc))
        except exception.ServiceError as exc:
            return self._unknown(move, str(exc))

    def _started(self, move: Move) -> str | None:
        try:
            migrations.start(
                self._nova, move.server.id, move.target, move.live
            )
        except exception.ServiceConflict as exc:
            # If the answer to a first try was lost, it has begun.
            now = migrations.position(self._nova, move.server.id)
            if now is None or now.task is None:
                return self._failed(move, str(exc))
        return None

    def _look(self, move: Move) -> str | None:
        """Return the result of a move that was started; None if it runs."""
        now = migrations.position(self._nova, move.server.id)
        if now is None:
            return self._failed(move, 'it was deleted while it moved')
        if now.task is not None:
            return None
        if now.status == _TO_BE_CONFIRMED:
            # Nova refuses it until it is ready, and once it has begun.
            with contextlib.suppress(
                exception.BadQuery, exception.ServiceConflict
            ):
                migrations.confirm(self._nova, move.server.id)
            return None
        if now.status == 'ERROR' or now.host != move.target:
            reason = migrations.failure(self._nova, move.server.id)
            state = f'it is {now.status} on {now.host}'
            return self._failed(
                move, f'{state}: {reason}' if reason else state
            )
        return MOVED

    def _late(self, move: Move) -> str:
        return self._failed(
            move,
            f'it has not ended within {self._longest:g} seconds, and goes on',
        )

    def _failed(self, move: Move, reason: str) -> str:
        """Note what went wrong; return it as a result."""
        reason = reason.strip(' .')
        self._outcome.failures.append(
            f'Server {quoted(move.server.name)} ({move.server.id}) was not '
            f'moved from {move.source} to {move.target}: {reason}. {_GO_ON}'
        )
        return reason
