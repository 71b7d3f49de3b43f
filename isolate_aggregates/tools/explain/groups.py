# SPDX-License-Identifier: Apache-2.0
"""Summarizes an explanation: groups hosts and constraints by filter and cause.

The texts of one group differ only in names and amounts, and are merged into a
single text.
"""

from collections.abc import Hashable, Iterable, Sequence
import dataclasses

from isolate_aggregates.tools import ranges
from isolate_aggregates.tools.explain.concluded import Concluded
from isolate_aggregates.tools.explain.requirements import Requirement
from isolate_aggregates.tools.explain.verdicts import (
    Cause,
    Count,
    Explanation,
    Verdict,
)

_Kind = tuple[Hashable, ...]


@dataclasses.dataclass(frozen=True)
class HostGroup:
    """Hosts that are excluded by the same kinds of causes, or by none."""

    verdicts: tuple[Verdict, ...]

    @property
    def is_candidate(self) -> bool:
        """Whether the hosts are candidates."""
        return self.verdicts[0].is_candidate

    @property
    def reasons(self) -> tuple[str, ...]:
        """The merged reasons why the hosts are excluded.

        They are built on access, because there can be thousands of hosts.
        """
        messages: set[Hashable] = set()
        # Hosts with equal causes share the same objects.
        kinds: dict[int, _Kind] = {}
        by_kind: dict[_Kind, list[str]] = {}
        for verdict in self.verdicts:
            for cause, text in verdict.texts(messages):
                kind = kinds.get(id(cause)) or kind_of(cause)
                kinds[id(cause)] = kind
                by_kind.setdefault(kind, []).append(text)
        return tuple(
            text for texts in by_kind.values() for text in ranges.alike(texts)
        )


@dataclasses.dataclass(frozen=True)
class CountGroup:
    """The hosts that causes of one kind exclude.

    :param excludes: The uuids of the root providers of the excluded hosts.
    :param only: The uuids of those that would be candidates without these
        causes.
    """

    causes: tuple[Cause, ...]
    excludes: frozenset[str]
    only: frozenset[str]

    @property
    def labels(self) -> tuple[str, ...]:
        """The merged descriptions of the causes, usually one."""
        return ranges.alike(map(_label, self.causes))


def hosts(verdicts: Iterable[Verdict]) -> list[HostGroup]:
    """Group hosts by kinds of causes; candidates first, then by size."""
    return sorted(
        map(HostGroup, map(tuple, _by_kinds(verdicts).values())),
        key=lambda group: (not group.is_candidate, -len(group.verdicts)),
    )


def _by_kinds(
    verdicts: Iterable[Verdict],
) -> dict[frozenset[_Kind], list[Verdict]]:
    """Group verdicts by the kinds of their causes."""
    by_causes: dict[int, list[Verdict]] = {}
    for verdict in verdicts:
        # Hosts with equal causes share the same object.
        by_causes.setdefault(id(verdict.causes), []).append(verdict)
    verdicts_by_kinds: dict[frozenset[_Kind], list[Verdict]] = {}
    for same in by_causes.values():
        kinds = frozenset(map(kind_of, same[0].causes))
        verdicts_by_kinds.setdefault(kinds, []).extend(same)
    return verdicts_by_kinds


def counts(explanation: Explanation) -> list[CountGroup]:
    """Return the hosts that are excluded by causes of each kind."""
    kinds: dict[_Kind, list[Count]] = {}
    for count in explanation.counts:
        if count.excludes:
            kinds.setdefault(kind_of(count.cause), []).append(count)
    by_kinds = _by_kinds(explanation.verdicts)
    groups = []
    for kind, same in kinds.items():
        only = frozenset[str]().union(*(count.only for count in same))
        if len(same) > 1:
            # A host may be excluded by several causes, all of this kind.
            alone = by_kinds.get(frozenset({kind}), ())
            only |= {verdict.provider for verdict in alone}
        excludes = frozenset[str]().union(*(c.excludes for c in same))
        causes = tuple(count.cause for count in same)
        groups.append(CountGroup(causes, excludes, only))
    return groups


def remedies(explanation: Explanation) -> list[list[str]]:
    """Return the requirements to drop, one list for each kind of remedy."""
    kinds: dict[_Kind, list[Sequence[Requirement]]] = {}
    for remedy in explanation.remedies:
        kinds.setdefault(kind_of(tuple(remedy)), []).append(remedy)
    return [
        [
            text
            for same in zip(*alike, strict=True)
            for text in ranges.alike(one.label for one in same)
        ]
        for alike in kinds.values()
    ]


def kind_of(cause: Cause) -> _Kind:
    """Return a key that is equal for causes of the same kind."""
    return tuple(map(_kind_of_requirement, cause))


def _kind_of_requirement(requirement: Requirement) -> Hashable:
    if not isinstance(requirement, Concluded):
        return requirement
    conclusion = requirement.conclusion
    # Constraints with different required aggregates have different messages.
    required = tuple(conclusion.alone.required_aggregates)
    return (
        conclusion.filter_name,
        type(conclusion.constraint),
        conclusion.kind,
        required,
    )


def _label(cause: Cause) -> str:
    together = 'together: ' if len(cause) > 1 else ''
    return together + '; '.join(requirement.label for requirement in cause)
