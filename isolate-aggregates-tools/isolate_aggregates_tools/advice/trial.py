# SPDX-License-Identifier: Apache-2.0
"""Tries repairs on a copy of the cloud, and leaves out those that do not hold.

The first repairs of all findings are made together, and the cloud is audited
again; then the second ones, and so on. A repair holds if Nova does not refuse
it, if what it repairs is found no more, if all servers that had a host still
have one. Then it is made alone, as an operator may make one of them. What is
not needed of a repair is left out, and one of them says whom they let in only
together.
"""

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import itertools

from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import Flavor
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates_tools.advice import many_repairs, request_repairs
from isolate_aggregates_tools.advice.effects import Effects
from isolate_aggregates_tools.answers import scope
from isolate_aggregates_tools.answers.deciding import silent
from isolate_aggregates_tools.answers.scope import Asker
from isolate_aggregates_tools.audit import OF_CLOUD, audit
from isolate_aggregates_tools.audit.cloud import AuditedCloud
from isolate_aggregates_tools.audit.finding import Finding
from isolate_aggregates_tools.cloud import changes
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.repairs import commands, outcome
from isolate_aggregates_tools.repairs.commands import Commands
from isolate_aggregates_tools.repairs.repair import Repair

# What a finding is about, which tells whether it is found again.
_About = tuple[str, str]
_Hosts = frozenset[str]
_NONE: _Hosts = frozenset()
# The most repairs that are made one by one, which takes an audit for each.
_MOST_ALONE = 32


def held(
    cloud: AuditedCloud, findings: Sequence[Finding], effects: Effects
) -> list[Finding]:
    """Return findings with the repairs that hold.

    :param effects: Whom repairs of the cloud let in.
    """
    with silent():
        return _Trial(cloud, effects).of(findings)


class _Trial:
    def __init__(self, cloud: AuditedCloud, effects: Effects) -> None:
        self._cloud, self._effects = cloud, effects
        self._stranded_by: dict[Commands, frozenset[Asker]] = {}
        self._filters = Pipeline(cloud.filters)

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
            holding = {n: some[n] for n in self._holding(findings, some)}
            for number in sorted(self._alone(findings, holding)):
                kept.setdefault(number, []).append(some[number])
        while True:
            # Others are the first ones now.
            first = {number: some[0] for number, some in kept.items() if some}
            out = first.keys() - set(self._holding(findings, first))
            if not out:
                break
            for number in out:
                del kept[number][0]
        for number, repair in self._needed(findings, first).items():
            first[number] = kept[number][0] = repair
        for number, more in self._together(first).items():
            kept[number][0] = dataclasses.replace(
                first[number], together=tuple(more)
            )
        # They are all shown, with whom they let in.
        self._effects.compare(
            repair.commands for some in kept.values() for repair in some
        )
        return [
            dataclasses.replace(
                each, repairs=tuple(dict.fromkeys(kept.get(number, ())))
            )
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
            left = self._found(after, (findings[n] for n in tried))
            lost = self._stranded(after.snapshot, self._served)
            if lost and given:
                lost -= self._stranded_alone(commands.SYNC)
            out = {
                number
                for number, todo in tried.items()
                if _about(findings[number]) in left
                or (lost and lost & self._stranded_alone(todo))
            }
            if lost and not out:
                # Only together they take the last hosts away.
                tried = self._first_ones(given, tried, lost)
                continue
            if not out:
                yield from tried
                return
            # What is left holds without the others, or is tried again.
            tried = {n: todo for n, todo in tried.items() if n not in out}

    def _alone(
        self, findings: Sequence[Finding], repairs: Mapping[int, Repair]
    ) -> set[int]:
        """Return the numbers of the findings whose repairs hold alone."""
        by_todo: dict[Commands, set[int]] = {}
        for number, repair in repairs.items():
            if _is_tried(repair):
                by_todo.setdefault(repair.commands, set()).add(number)
        # What they change does not reach the hosts of the others.
        local = many_repairs.local(self._cloud.snapshot, by_todo).hosts
        others = [todo for todo in by_todo if todo not in local]
        before = Counter(map(_about, findings))
        out: set[int] = set()
        for group in ([*local], *_apart(others)):
            numbers = set().union(*(by_todo[todo] for todo in group))
            if not numbers:
                continue
            after = self._after(group)
            tried = [findings[number] for number in sorted(numbers)]
            # A host may have several findings of a kind.
            gone = before - self._found(after, tried)
            gone.subtract(map(_about, tried))
            out |= {n for n in numbers if gone[_about(findings[n])] < 0}
            if self._stranded(after.snapshot, self._served):
                out = out.union(
                    *(by_todo[t] for t in group if self._stranded_alone(t))
                )
        return repairs.keys() - out

    def _first_ones(
        self,
        given: Sequence[Commands],
        tried: Mapping[int, Commands],
        servers: frozenset[Asker],
    ) -> dict[int, Commands]:
        """Return as many of the first repairs as leave servers a host."""
        numbers = sorted(tried)

        def first(count: int) -> dict[int, Commands]:
            out = numbers[count:]
            return {n: todo for n, todo in tried.items() if n not in out}

        def strand_some(count: int) -> bool:
            after = self._after([*given, *first(count).values()])
            return bool(self._stranded(after.snapshot, servers))

        counts = range(1, len(numbers))
        return first(bisect.bisect_left(counts, True, key=strand_some))

    def _together(
        self, first: Mapping[int, Repair]
    ) -> dict[int, list[tuple[Asker, _Hosts]]]:
        """Return whom repairs let in together, and none of them alone.

        By the number of the repair that says so.
        """
        effects = self._effects
        several = {
            number: each.commands
            for number, each in first.items()
            if _is_tried(each) or each.commands == commands.SYNC
        }
        told: dict[int, list[tuple[Asker, _Hosts]]] = {}
        if len(set(several.values())) < 2:
            return told
        effects.compare(several.values())
        alone = {
            number: effects.compared(todo).gains
            for number, todo in several.items()
        }
        after = self._after(several.values()).snapshot
        for asker, hosts in effects.gains(after).items():
            # Who may use a host needs no image, or project, for it.
            wider = [
                Asker(asker.flavor, image, project)
                for image in {None, asker.image}
                for project in {None, asker.project}
            ]
            named = {
                number: _NONE.union(*(gains.get(a, _NONE) for a in wider))
                for number, gains in alone.items()
            }
            if more := hosts - _NONE.union(*named.values()):
                own = [number for number, some in named.items() if some]
                told.setdefault(max(own or alone), []).append((asker, more))
        return told

    def _needed(
        self, findings: Sequence[Finding], first: Mapping[int, Repair]
    ) -> dict[int, Repair]:
        """Return the first repairs of which something can be left out.

        A part is needed if the problem is found without it, or if somebody
        gains less without it.
        """
        shorter: dict[int, Repair] = {}
        for number, repair in first.items():
            if not _is_tried(repair) or len(repair.commands) < 2:
                continue
            todo = repair.commands
            for part in request_repairs.parts(repair.commands):
                rest = tuple(each for each in todo if each not in part)
                if (
                    rest
                    and rest != todo
                    and self._same_effect(rest, todo)
                    and number in self._alone(findings, {number: Repair(rest)})
                ):
                    todo = rest
            if todo != repair.commands:
                shorter[number] = dataclasses.replace(repair, commands=todo)
        return shorter

    def _same_effect(self, some: Commands, others: Commands) -> bool:
        effects = self._effects
        one, other = effects.compared(some), effects.compared(others)
        return one.gains == other.gains and one.losses == other.losses

    def _found(
        self, cloud: AuditedCloud, findings: Iterable[Finding]
    ) -> Counter[_About]:
        """Count what those checks find that have found something else."""
        checks = {each.check for each in findings}
        # Moves of servers are not tried, so what they mend is not looked for.
        some = (each for each in OF_CLOUD if each in checks or None in checks)
        return Counter(map(_about, audit(cloud, some)))

    def _refused(self, todo: Commands) -> bool:
        """Return whether Nova or we refuse commands."""
        snapshot = self._cloud.snapshot
        return any(
            outcome.refused_steps(snapshot, todo, self._filters)
        ) or self._edits_reservation(todo)

    @lazy_property
    def _of_reservations(self) -> list[Flavor]:
        """The flavors of reservations that hosts have."""
        snapshot = self._cloud.snapshot
        classes = {c for each in snapshot.providers for c in each.inventories}
        return [
            flavor
            for flavor in snapshot.flavors
            if xs.reservation_classes(flavor.extra_specs) & classes
        ]

    def _edits_reservation(self, todo: Commands) -> bool:
        """Return whether commands change the flavor of a reservation."""
        snapshot = self._cloud.snapshot
        if not self._of_reservations:
            return False
        after = outcome.after(snapshot, todo, self._filters)
        now = {flavor.id: flavor for flavor in after.flavors}
        return any(now.get(each.id) != each for each in self._of_reservations)

    def _after(self, repairs: Iterable[Commands]) -> AuditedCloud:
        """Return the cloud after repairs, with ``sync`` last."""
        todo = dict.fromkeys(each for some in repairs for each in some)
        ordered = sorted(todo, key=lambda each: (each,) == commands.SYNC)
        snapshot = outcome.after(self._cloud.snapshot, ordered, self._filters)
        return self._cloud.after(snapshot)

    def _stranded_alone(self, todo: Commands) -> frozenset[Asker]:
        if todo not in self._stranded_by:
            after = self._after([todo]).snapshot
            self._stranded_by[todo] = self._stranded(after, self._served)
        return self._stranded_by[todo]

    @lazy_property
    def _served(self) -> frozenset[Asker]:
        """The servers that have a host, of flavors with each image."""
        snapshot = self._cloud.snapshot
        return frozenset(
            asker
            for asker, has_host in self._asked(snapshot, snapshot.flavors)
            if has_host
        )

    def _stranded(
        self, after: Snapshot, servers: frozenset[Asker]
    ) -> frozenset[Asker]:
        """Return which of some servers have no host any more."""
        before = self._cloud.snapshot
        flavors = after.flavors
        if dataclasses.replace(after, flavors=before.flavors) == before:
            # Nothing changes for the servers of the others.
            same = {id(flavor) for flavor in before.flavors}
            flavors = tuple(f for f in flavors if id(f) not in same)
        names = {asker.flavor for asker in servers}
        some = [flavor for flavor in flavors if flavor.name in names]
        return servers.intersection(
            asker
            for asker, has_host in self._asked(after, some)
            if not has_host
        )

    def _asked(
        self, snapshot: Snapshot, flavors: Iterable[Flavor]
    ) -> Iterator[tuple[Asker, bool]]:
        """Yield whether servers of flavors have a host, with each image."""
        effects = self._effects
        questions = effects.questions(snapshot)
        offers = effects.offers(snapshot)
        images = tuple(scope.images(snapshot, effects.pipeline))
        for flavor, image in itertools.product(flavors, images):
            yield (
                Asker(flavor.name, image.name if image else None, None),
                bool(offers.usable(questions.of(flavor, image, None))),
            )


def _apart(some: Sequence[Commands]) -> Iterator[Sequence[Commands]]:
    """Yield groups of repairs: each alone, or if they are many, in halves.

    There is a half with each of them, and without any other one.
    """
    if len(some) <= _MOST_ALONE:
        yield from ([each] for each in some)
        return
    for bit in range(len(some).bit_length()):
        for value in (0, 1):
            yield [
                each for n, each in enumerate(some) if n >> bit & 1 == value
            ]


def _about(finding: Finding) -> _About:
    return finding.kind, finding.subject


def _is_tried(repair: Repair) -> bool:
    """Return whether the commands change a copy of the cloud."""
    return any(each.change is not changes.nothing for each in repair.commands)
