# SPDX-License-Identifier: Apache-2.0
"""An explanation in few lines: hosts and constraints by filter and cause.

Hosts or constraints of one kind differ only in names and amounts, and these
are folded into one text.
"""

from collections.abc import Hashable, Iterable, Sequence
import dataclasses

from isolate_aggregates.inspect import ranges
from isolate_aggregates.inspect.explain.requirements import (
    Concluded,
    Requirement,
)
from isolate_aggregates.inspect.explain.verdicts import (
    Cause,
    Count,
    Explanation,
    Verdict,
)

_Kind = tuple[Hashable, ...]


@dataclasses.dataclass(frozen=True)
class HostGroup:
    """Hosts with the same verdict for the same kinds of causes.

    :param verdicts: Their verdicts, in order.
    """

    verdicts: tuple[Verdict, ...]

    @property
    def is_candidate(self) -> bool:
        """Whether Placement offers the hosts."""
        return self.verdicts[0].is_candidate

    @property
    def reasons(self) -> tuple[str, ...]:
        """What there is to say of them, made when asked for."""
        told: set[Hashable] = set()
        # Hosts with the same causes have the same objects.
        kinds: dict[int, _Kind] = {}
        by_kind: dict[_Kind, list[str]] = {}
        for verdict in self.verdicts:
            for cause, text in verdict.texts(told):
                kind = kinds.get(id(cause)) or kind_of(cause)
                kinds[id(cause)] = kind
                by_kind.setdefault(kind, []).append(text)
        return tuple(
            text for texts in by_kind.values() for text in ranges.alike(texts)
        )


@dataclasses.dataclass(frozen=True)
class CountGroup:
    """Which hosts the causes of a kind exclude.

    :param causes: The causes; mostly one.
    :param excludes: The root providers of the hosts.
    :param only: Those that would be offered without these causes.
    """

    causes: tuple[Cause, ...]
    excludes: frozenset[str]
    only: frozenset[str]

    @property
    def labels(self) -> tuple[str, ...]:
        """What the causes come to; mostly one text."""
        return ranges.alike(map(_label, self.causes))


def hosts(verdicts: Iterable[Verdict]) -> list[HostGroup]:
    """Return hosts by what is said of them: candidates, then most first."""
    return sorted(
        map(HostGroup, map(tuple, _by_kinds(verdicts).values())),
        key=lambda group: (not group.is_candidate, -len(group.verdicts)),
    )


def _by_kinds(
    verdicts: Iterable[Verdict],
) -> dict[frozenset[_Kind], list[Verdict]]:
    """Return the hosts with causes of the same kinds."""
    by_causes: dict[int, list[Verdict]] = {}
    for verdict in verdicts:
        # Hosts with the same causes have the same object.
        by_causes.setdefault(id(verdict.causes), []).append(verdict)
    found: dict[frozenset[_Kind], list[Verdict]] = {}
    for same in by_causes.values():
        kinds = frozenset(map(kind_of, same[0].causes))
        found.setdefault(kinds, []).extend(same)
    return found


def counts(explanation: Explanation) -> list[CountGroup]:
    """Return which hosts the causes of each kind exclude, if any."""
    kinds: dict[_Kind, list[Count]] = {}
    for count in explanation.counts:
        if count.excludes:
            kinds.setdefault(kind_of(count.cause), []).append(count)
    by_kinds = _by_kinds(explanation.verdicts)
    groups = []
    for kind, found in kinds.items():
        only = frozenset[str]().union(*(count.only for count in found))
        if len(found) > 1:
            # Several of the kind may exclude a host, and nothing else.
            alone = by_kinds.get(frozenset({kind}), ())
            only |= {verdict.provider for verdict in alone}
        excludes = frozenset[str]().union(*(c.excludes for c in found))
        causes = tuple(count.cause for count in found)
        groups.append(CountGroup(causes, excludes, only))
    return groups


def remedies(explanation: Explanation) -> list[list[str]]:
    """Return what to drop, for each kind of way to do so."""
    kinds: dict[_Kind, list[Sequence[Requirement]]] = {}
    for remedy in explanation.remedies:
        kinds.setdefault(kind_of(tuple(remedy)), []).append(remedy)
    return [
        [
            text
            for same in zip(*found, strict=True)
            for text in ranges.alike(one.label for one in same)
        ]
        for found in kinds.values()
    ]


def kind_of(cause: Cause) -> _Kind:
    """Return what a cause has in common with others of its kind."""
    return tuple(map(_kind_of_requirement, cause))


def _kind_of_requirement(requirement: Requirement) -> Hashable:
    if not isinstance(requirement, Concluded):
        return requirement
    conclusion = requirement.conclusion
    constraint = conclusion.constraint
    cause = getattr(constraint, 'cause', None)
    # A host that is in some required aggregates is not told of these.
    required = tuple(conclusion.alone.required_aggregates)
    return conclusion.filter_name, type(constraint), type(cause), required


def _label(cause: Cause) -> str:
    together = 'together: ' if len(cause) > 1 else ''
    return together + '; '.join(requirement.label for requirement in cause)
