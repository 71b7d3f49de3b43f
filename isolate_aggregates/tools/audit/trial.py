# SPDX-License-Identifier: Apache-2.0
"""Tries repairs on a copy of the cloud, and leaves out those that do not hold.

The first repairs of all findings are made together, and the cloud is audited
again; then the second ones, and so on. A repair holds if Nova does not refuse
it, if what it repairs is found no more, and if all servers that had a host
still have one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses

from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.tools.advice import (
    Repair,
    commands,
    outcome,
    refusals,
)
from isolate_aggregates.tools.advice.commands import Commands
from isolate_aggregates.tools.answers import scope
from isolate_aggregates.tools.answers.deciding import Questions, silent
from isolate_aggregates.tools.answers.offers import Offers
from isolate_aggregates.tools.answers.scope import Asker
from isolate_aggregates.tools.audit.cloud import AuditedCloud
from isolate_aggregates.tools.audit.finding import Finding
from isolate_aggregates.tools.cloud import changes
from isolate_aggregates.tools.cloud.snapshot import Snapshot

Audit = Callable[[AuditedCloud], Sequence[Finding]]


def held(
    cloud: AuditedCloud, findings: Sequence[Finding], audit: Audit
) -> list[Finding]:
    """Return findings with the repairs that hold.

    :param audit: Returns the findings of a cloud.
    """
    with silent():
        return _Trial(cloud, audit).of(findings)


class _Trial:
    def __init__(self, cloud: AuditedCloud, audit: Audit) -> None:
        self._cloud = cloud
        self._audit = audit
        self._filters = Pipeline(cloud.filters)
        self._pipeline = Pipeline((*cloud.running, *cloud.mirrors))
        self._hosts = self._hosts_in(cloud.snapshot)

    def of(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return the findings with the repairs that hold."""
        kept: dict[int, list[Repair]] = {}
        most = max((len(each.repairs) for each in findings), default=0)
        for place in range(most):
            some = {
                number: each.repairs[place]
                for number, each in enumerate(findings)
                if len(each.repairs) > place
            }
            for number in self._holding(findings, some):
                kept.setdefault(number, []).append(some[number])
        while True:
            # Others are the first ones now.
            first = {number: some[0] for number, some in kept.items() if some}
            out = first.keys() - set(self._holding(findings, first))
            if not out:
                break
            for number in out:
                del kept[number][0]
        return [
            dataclasses.replace(each, repairs=tuple(kept.get(number, ())))
            for number, each in enumerate(findings)
        ]

    def _holding(
        self, findings: Sequence[Finding], repairs: Mapping[int, Repair]
    ) -> Iterator[int]:
        """Yield the numbers of the findings whose repairs hold together."""
        tried: dict[int, Commands] = {}
        given: list[Commands] = []
        for number, repair in repairs.items():
            if not _is_tried(repair):
                # Sync carries out what the tags of the cloud say already.
                if repair.commands == commands.SYNC:
                    given.append(repair.commands)
                yield number
            elif not self._refused(repair.commands):
                tried[number] = repair.commands
        while tried:
            after = self._after([*given, *tried.values()])
            left = {(each.kind, each.subject) for each in self._audit(after)}
            lost = self._stranded(after.snapshot)
            if lost and given:
                lost -= self._stranded_by(commands.SYNC)
            out = {
                number
                for number, todo in tried.items()
                if (findings[number].kind, findings[number].subject) in left
                or (lost and lost & self._stranded_by(todo))
            }
            if lost and not out:
                # Only together they take the last hosts away.
                out = {max(tried)}
            if not out:
                yield from tried
                return
            # What is left holds without the others, or is tried again.
            tried = {n: todo for n, todo in tried.items() if n not in out}

    def _refused(self, todo: Commands) -> bool:
        snapshot = self._cloud.snapshot
        return any(refusals.refused_steps(snapshot, todo, self._filters))

    def _after(self, repairs: Iterable[Commands]) -> AuditedCloud:
        """Return the cloud after repairs, with ``sync`` last."""
        todo = dict.fromkeys(each for some in repairs for each in some)
        ordered = sorted(todo, key=lambda each: (each,) == commands.SYNC)
        before = self._cloud.snapshot
        states = outcome.outcomes(before, tuple(ordered), self._filters)
        *_, snapshot = before, *states
        traits = self._cloud.traits
        return dataclasses.replace(
            self._cloud,
            snapshot=snapshot,
            traits=None if traits is None else traits | snapshot.all_traits,
        )

    def _stranded_by(self, todo: Commands) -> frozenset[Asker]:
        return self._stranded(self._after([todo]).snapshot)

    def _stranded(self, after: Snapshot) -> frozenset[Asker]:
        """Return the servers that have no host any more."""
        now = self._hosts_in(after)
        return frozenset(
            asker
            for asker, has_host in self._hosts.items()
            if has_host and not now.get(asker, True)
        )

    def _hosts_in(self, snapshot: Snapshot) -> dict[Asker, bool]:
        """Return which servers have a host, of flavors with each image."""
        questions = Questions(snapshot, self._pipeline, self._cloud.requests)
        offers = Offers(snapshot)
        return {
            Asker(flavor.name, image.name if image else None, None): bool(
                offers.hosts(questions.of(flavor, image, None))
            )
            for flavor in snapshot.flavors
            for image in scope.images(snapshot, self._pipeline)
        }


def _is_tried(repair: Repair) -> bool:
    """Return whether the commands change a copy of the cloud."""
    return any(each.change is not changes.nothing for each in repair.commands)
