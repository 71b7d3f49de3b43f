# SPDX-License-Identifier: Apache-2.0
"""Summarizes an explanation: groups hosts and constraints by filter and cause.

The texts of one group differ only in names and amounts, and are merged into a
single text.
"""

from collections.abc import Hashable, Iterable, Sequence
import dataclasses

from isolate_aggregates_tools import ranges
from isolate_aggregates_tools.explain.conclusions import Concluded
from isolate_aggregates_tools.explain.requirements import Requirement
from isolate_aggregates_tools.explain.verdicts import (
    Cause,
    Count,
    Explanation,
    Messages,
    Verdict,
)

_Kind = tuple[Hashable, ...]
# The most groups of hosts that are excluded by the same kinds of causes.
_MOST = 5
_MIXED = 'depending on the host: '


@dataclasses.dataclass(frozen=True)
class HostGroup:
    """Hosts that are excluded by the same kinds of causes, or by none.

    :param is_mixed: Whether some of the reasons are not those of all hosts.
    """

    verdicts: tuple[Verdict, ...]
    is_mixed: bool = False

    @property
    def is_candidate(self) -> bool:
        """Whether the hosts are candidates."""
        return self.verdicts[0].is_candidate

    @property
    def reasons(self) -> tuple[str, ...]:
        """The merged reasons why the hosts are excluded.

        They are built on access, because there can be thousands of hosts.
        """
        # Hosts with equal causes share the same objects.
        kinds: dict[int, _Kind] = {}
        by_kind: dict[_Kind, dict[str, None]] = {}
        messages: Messages = {}
        for verdict in self.verdicts:
            for cause, text in verdict.texts(messages):
                kind = kinds.get(id(cause)) or kind_of(cause)
                kinds[id(cause)] = kind
                by_kind.setdefault(kind, {})[text] = None
        merged = tuple(
            text for texts in by_kind.values() for text in ranges.alike(texts)
        )
        if self.is_mixed:
            return (f'{_MIXED}{merged[0]}', *merged[1:])
        return merged

    def parted(self) -> Sequence['HostGroup']:
        """Return groups of hosts with the same reasons, but for amounts.

        If these are too many, the group is returned.
        """
        messages: Messages = {}
        by_texts: dict[Hashable, list[Verdict]] = {}
        for verdict in self.verdicts:
            texts = frozenset(
                ranges.without_amounts(text)
                for _, text in verdict.texts(messages)
            )
            by_texts.setdefault(texts, []).append(verdict)
            if len(by_texts) > _MOST:
                return [dataclasses.replace(self, is_mixed=True)]
        return [HostGroup(tuple(some)) for some in by_texts.values()]


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
    """Group hosts by kinds of causes; candidates first, then by size.

    What is said of a group holds for each of its hosts, or it is said that it
    depends on the host.
    """
    return sorted(
        (
            group
            for some in _by_kinds(verdicts).values()
            for group in HostGroup(tuple(some)).parted()
        ),
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
    """Return the requirements to drop, one list for each remedy."""
    kinds: dict[_Kind, list[Sequence[Requirement]]] = {}
    for remedy in explanation.remedies:
        kinds.setdefault(kind_of(tuple(remedy)), []).append(remedy)
    return [
        text.split('\n')
        for alike in kinds.values()
        # As one text each: what is dropped together belongs together.
        for text in ranges.alike(
            '\n'.join(requirement.label for requirement in remedy)
            for remedy in alike
        )
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
