# SPDX-License-Identifier: Apache-2.0
"""Carries out a plan.

The plan only has the target state of each provider. The changes are computed
again from the current state in Placement, and written with its current
generation. So changes of other clients are not lost, and the next run
completes an interrupted one.

The target state depends on the metadata of aggregates, which may change
meanwhile, for example by another lock or unlock. So after the last change Nova
is read again, and changes that are no longer right are corrected.
"""

from collections.abc import Callable, Iterable, Iterator
import contextlib
import dataclasses
import threading

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex, Lock, tags
from isolate_aggregates_tools import marks
from isolate_aggregates_tools.cloud.cloud import Track, untracked
from isolate_aggregates_tools.operate.sync.plan import SyncPlan, make
from isolate_aggregates_tools.operate.sync.projects import TagChange
from isolate_aggregates_tools.operate.sync.target import ProviderChange, Target
from isolate_aggregates_tools.placement import edits
from isolate_aggregates_tools.placement.client import PlacementClient

# After so many consecutive failures, the cause is not a single provider.
_MOST_FAILURES = 10

# How often the aggregates in Nova may change again during corrections.
_CORRECTIONS = 5


@dataclasses.dataclass
class SyncResult:
    """The result of a run.

    :param skipped: The names of providers that no longer exist.
    :param failures: What could not be done, one sentence each.
    :param untried: The number of providers that were not tried.
    :param tags: The changes of tags of aggregates.
    """

    changes: list[ProviderChange] = dataclasses.field(default_factory=list)
    skipped: list[str] = dataclasses.field(default_factory=list)
    failures: list[str] = dataclasses.field(default_factory=list)
    untried: int = 0
    tags: list[TagChange] = dataclasses.field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether the whole plan was carried out."""
        return not self.failures and not self.untried


def carry_out(
    plan: SyncPlan,
    placement: PlacementClient,
    aggregates: Callable[[], list[Aggregate]],
    locks: Callable[[AggregateIndex], Iterable[Lock]],
    track: Track = untracked,
    is_stopped: Callable[[], bool] = lambda: False,
    parallel: int | None = None,
) -> SyncResult:
    """Carry out a plan.

    If a provider cannot be changed, the others are still changed.

    :param parallel: How many are changed at the same time; None for as many as
        requests may be sent.
    """
    run = _Run(plan, placement, is_stopped)
    for trait in plan.new_traits:
        edits.create_trait(placement, trait)
    with placement.pool(parallel) as pool:
        changes = pool.map(run.change, plan.pending)
        for _ in track(changes, 'resource providers', len(plan.pending)):
            pass
    run.correct(aggregates, locks)
    run.mark()
    if run.result.is_complete:
        # After a failure, providers may still have these marks.
        run.tidy()
    run.result.changes.sort(key=lambda change: change.provider)
    return run.result


class _Run:
    """One run over the providers of a plan."""

    def __init__(
        self,
        plan: SyncPlan,
        placement: PlacementClient,
        is_stopped: Callable[[], bool],
    ) -> None:
        self.result = SyncResult()
        self._plan = plan
        self._placement = placement
        self._stopped = is_stopped
        self._lock = threading.Lock()
        self._failed_in_a_row = 0
        # The uuids of the changed providers.
        self._written: set[str] = set()
        # The uuids of the rollups that got members.
        self._rollups: set[str] = set()
        # The mirrored memberships, by provider and aggregate.
        self._mirrored: dict[tuple[str, str], Target] = {}

    def change(self, target: Target) -> None:
        """Bring a provider to its target state, and record the result."""
        if self._stopped() or self._failed_in_a_row >= _MOST_FAILURES:
            with self._lock:
                self.result.untried += 1
            return
        with self._noted(target):
            # Memberships exclude servers, traits admit some; so in this order.
            self._change_aggregates(target)
            self._change_traits(target)

    def _change_traits(self, target: Target) -> None:
        if target.traits is None and target.keeps_marks:
            return

        def change(before: frozenset[str]) -> frozenset[str]:
            after = target.traits_after(before)
            self._note_written(target, before, after)
            return after

        before, after = edits.change_traits(
            self._placement, target.provider, change
        )
        self._note(target.trait_changes(before, after))

    def _change_aggregates(self, target: Target) -> None:
        def change(before: frozenset[str]) -> frozenset[str]:
            after = target.aggregates_after(before)
            self._note_written(target, before, after)
            additions = after - before
            with self._lock:
                for uuid in additions & target.mirror.keys():
                    self._mirrored[target.provider, uuid] = target
                self._rollups |= additions & target.rollups.uuids
            return after

        before, after = edits.change_aggregates(
            self._placement, target.provider, change
        )
        self._note(target.aggregate_changes(before, after))

    def correct(
        self,
        aggregates: Callable[[], list[Aggregate]],
        locks: Callable[[AggregateIndex], Iterable[Lock]],
    ) -> None:
        """Correct changes after the aggregates have changed meanwhile.

        If a host is removed from its aggregate while sync runs, sync could add
        the membership in Placement again after Nova has removed it, and Nova
        would not remove it a second time. If an aggregate is locked meanwhile,
        its hosts could lose the required traits; if it is unlocked, they could
        get them.
        """
        latest = list(self._plan.snapshot.index)
        is_member = dict.fromkeys(self._mirrored, True)
        problem: object = 'they keep changing'
        for _ in range(_CORRECTIONS):
            if not self._written:
                return
            try:
                current = aggregates()
                if current == latest:
                    return
                self._correct_members(current, is_member)
                self._change_again(current, locks)
                latest = current
            except exception.IsolateAggregatesError as exc:
                problem = exc
        self.result.failures.append(
            'resource providers may have been changed according to host '
            f'aggregates that have changed meanwhile: {problem}'
        )

    def _correct_members(
        self,
        aggregates: Iterable[Aggregate],
        is_member: dict[tuple[str, str], bool],
    ) -> None:
        hosts = {a.uuid: a.hosts for a in aggregates}
        for (provider, uuid), target in self._mirrored.items():
            belongs = target.host in hosts.get(uuid, frozenset())
            if belongs != is_member.get((provider, uuid), True):
                self._correct(provider, uuid, belongs)
                is_member[provider, uuid] = belongs

    def _change_again(
        self,
        aggregates: Iterable[Aggregate],
        locks: Callable[[AggregateIndex], Iterable[Lock]],
    ) -> None:
        index = AggregateIndex(aggregates)
        traits = edits.known_traits(self._placement)
        snapshot = dataclasses.replace(
            self._plan.snapshot,
            index=index,
            below=edits.holders_below(
                self._placement, traits & tags.all_required(index)
            ),
        )
        again = make(
            snapshot, locks(index), self._plan.parts, self._plan.forgets
        )
        for trait in again.new_traits:
            edits.create_trait(self._placement, trait)
        for target in again.targets:
            if target.provider in self._written:
                self.change(target)

    def _correct(self, provider: str, uuid: str, member: bool) -> None:
        def change(before: frozenset[str]) -> frozenset[str]:
            return before | {uuid} if member else before - {uuid}

        target = self._mirrored[provider, uuid]
        try:
            before, after = edits.change_aggregates(
                self._placement, provider, change
            )
        except exception.ServiceNotFound:
            return
        if after != before:
            self._note([target.correction(target.mirror[uuid], member)])

    def mark(self) -> None:
        """Restore the marks of rollups that got members.

        Another run may have deleted the marks before the rollups had members.
        """
        for mark in map(marks.of_rollup, sorted(self._rollups)):
            try:
                edits.create_trait(self._placement, mark)
            except exception.IsolateAggregatesError as exc:
                self.result.failures.append(f'trait {mark}: {exc}')

    def tidy(self) -> None:
        """Delete the marks that are no longer in use."""
        for mark in self._plan.old_marks:
            try:
                self._delete(mark)
            except exception.IsolateAggregatesError as exc:
                self.result.failures.append(f'trait {mark}: {exc}')

    def _delete(self, mark: str) -> None:
        rollups = marks.marked_rollups([mark])
        if rollups and self._placement.resource_providers(member_of=rollups):
            # They may be on providers that Nova does not list now.
            return
        # 404: another client removed it. 409: such a provider has it.
        self._placement.send(
            'DELETE', f'/traits/{mark}', accept=(204, 404, 409)
        )
        if rollups and self._placement.resource_providers(member_of=rollups):
            # Another sync has added members meanwhile.
            edits.create_trait(self._placement, mark)

    def _note_written(
        self, target: Target, before: frozenset[str], after: frozenset[str]
    ) -> None:
        # Record it before the request, as the response may get lost.
        if after != before:
            with self._lock:
                self._written.add(target.provider)

    def _note(self, changes: Iterable[ProviderChange]) -> None:
        with self._lock:
            self.result.changes += changes

    @contextlib.contextmanager
    def _noted(self, target: Target) -> Iterator[None]:
        """Record a failure, and continue with the next provider."""
        try:
            yield
        except exception.ServiceNotFound:
            with self._lock:
                self.result.skipped.append(target.name)
        except exception.IsolateAggregatesError as exc:
            with self._lock:
                self._failed_in_a_row += 1
                self.result.failures.append(
                    f'resource provider {target.name}: {exc}'
                )
            return
        self._failed_in_a_row = 0
