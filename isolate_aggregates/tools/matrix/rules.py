# SPDX-License-Identifier: Apache-2.0
"""Evaluates one request for all hosts."""

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
import dataclasses

from isolate_aggregates import exception, text
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.decision import decide
from isolate_aggregates.filters.constraints import Forbid
from isolate_aggregates.filters.destination import Conclusion, Destination
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.placement import resources
from isolate_aggregates.request import Request

# Returns why a host filter drops the host of a compute service.
HostObjection = Callable[[str], str]
# Keeps equal sets of aggregates only once: hundreds of requests have them.
SharedSets = dict[frozenset[str], frozenset[str]]


@dataclasses.dataclass(frozen=True)
class Objection:
    """Why a request may not use hosts.

    :param filter_name: The request filter that excludes the hosts; None for a
        trait of the request itself, or if the request is invalid.
    :param cause: The cause, without a full stop.
    :param aggregates: The names of the forbidden aggregates that the hosts
        are in; empty if no aggregate is forbidden.
    """

    filter_name: str | None
    kind: str
    cause: str
    aggregates: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The reason, without a full stop."""
        if not self.aggregates:
            return self.cause
        return f'{text.named("aggregate", self.aggregates)}: {self.cause}'


@dataclasses.dataclass(frozen=True)
class EquivalentHosts:
    """Hosts that are equal for all requests, and so are evaluated together.

    :param hosts: Their names, sorted. If a compute service has several nodes,
        the name of the node follows in brackets.
    :param kinds: The uuids of host aggregates, one of each kind that the hosts
        are in (see :func:`equivalent_aggregates`).
    :param traits: The traits of their trees and of providers that share with
        them, as far as requests require these traits.
    :param root_traits: The traits of their root providers, as far as requests
        require or forbid these traits on the root.
    :param trees: The uuids of the providers in their trees that requests name
        in ``in_tree``.
    :param dropped: The host filters that drop them, with the reasons.
    :param aggregates: The uuids of the host aggregates that at least one of
        the hosts is in.
    """

    hosts: tuple[str, ...]
    kinds: frozenset[str]
    traits: frozenset[str]
    root_traits: frozenset[str]
    trees: frozenset[str]
    dropped: frozenset[tuple[HostObjection, str]] = frozenset()
    aggregates: frozenset[str] = frozenset()


class Names:
    """The names of the aggregates of groups of hosts."""

    def __init__(self, index: AggregateIndex) -> None:
        self._names = {aggregate.uuid: aggregate.name for aggregate in index}
        # By the first host of a group, which no other group has.
        self._of: dict[tuple[str, frozenset[str]], tuple[str, ...]] = {}

    def of(
        self, group: EquivalentHosts, uuids: frozenset[str]
    ) -> tuple[str, ...]:
        """Return the sorted names of those aggregates that a group is in."""
        key = group.hosts[0], uuids
        if key not in self._of:
            self._of[key] = tuple(
                sorted(self._names[uuid] for uuid in uuids & group.aggregates)
            )
        return self._of[key]


class Rules:
    """The rules for one request, arranged by what they depend on."""

    def __init__(
        self,
        request: Request,
        shared: SharedSets,
        conclusions: Sequence[Conclusion] = (),
        required: frozenset[str] = frozenset(),
        forbidden: frozenset[str] = frozenset(),
        nonsense: str | None = None,
    ) -> None:
        self.request = request
        self.required = required
        self.forbidden = forbidden
        self._nonsense = nonsense
        self._conclusions = conclusions
        self._closed: list[tuple[int, frozenset[str]]] = []
        self._others: list[tuple[int, Destination]] = []
        self.dropping: dict[HostObjection, int] = {}
        for number, conclusion in enumerate(conclusions):
            # Not Conclusion.alone, which is kept.
            alone = Destination()
            conclusion.constraint.narrow(alone)
            for objection in alone.host_objections:
                self.dropping[objection] = number
            if alone.forbidden_aggregates:
                uuids = alone.forbidden_aggregates
                self._closed.append((number, shared.setdefault(uuids, uuids)))
            if (
                alone.required_aggregates
                or alone.root_forbidden
                or alone.root_required
                or alone.in_tree
                or alone.refusals
            ):
                self._others.append((number, alone))

    @classmethod
    def of(
        cls,
        request: Request,
        pipeline: Pipeline,
        index: AggregateIndex,
        shared: SharedSets,
    ) -> 'Rules':
        """Evaluate a request.

        :param shared: The sets of aggregates of all requests, to which those
            of this one are added.
        """
        try:
            group = resources.resource_request(request).group()
            destination = decide(request, index, pipeline).destination
            required = request.required_traits
        except exception.InvalidRequest as exc:
            return cls(request, shared, nonsense=str(exc).rstrip('.'))
        # Suffixed groups are ignored: another provider of the tree may serve
        # them.
        forbidden = group.forbidden_traits if group.resources else ()
        return cls(
            request,
            shared,
            destination.conclusions,
            required,
            frozenset(forbidden),
        )

    @property
    def aggregates(self) -> Iterator[frozenset[str]]:
        """The sets of aggregates that the request treats alike."""
        for _, uuids in self._closed:
            yield uuids
        for _, alone in self._others:
            yield from alone.required_aggregates

    @property
    def root_traits(self) -> frozenset[str]:
        """The traits that are relevant on the root provider."""
        return self.forbidden.union(
            *(
                alone.root_forbidden | alone.root_required
                for _, alone in self._others
            )
        )

    @property
    def trees(self) -> frozenset[str]:
        """The providers in ``in_tree`` of the request."""
        return frozenset(
            alone.in_tree for _, alone in self._others if alone.in_tree
        )

    def objections(
        self, groups: Sequence[EquivalentHosts], names: Names
    ) -> Iterator[tuple[Objection, ...]]:
        """Yield why the request may not use each of the groups of hosts."""
        if self._nonsense:
            objection = Objection(None, 'invalid-request', self._nonsense)
            yield from ((objection,) for _ in groups)
            return
        kinds = frozenset().union(*(group.kinds for group in groups))
        closed: dict[str, dict[int, frozenset[str]]] = {}
        for number, uuids in self._closed:
            for kind in kinds & uuids:
                closed.setdefault(kind, {})[number] = uuids
        for group in groups:
            numbers: dict[int, frozenset[str]] = {
                number: frozenset()
                for number, alone in self._others
                if _objects(alone, group)
            }
            for kind in group.kinds:
                numbers.update(closed.get(kind, {}))
            yield (
                *(
                    self._objection(number, names.of(group, numbers[number]))
                    for number in sorted(numbers)
                ),
                *self._of_traits(group),
                *self._of_host_filters(group, numbers),
            )

    def _objection(self, number: int, names: tuple[str, ...]) -> Objection:
        conclusion = self._conclusions[number]
        constraint = conclusion.constraint
        if isinstance(constraint, Forbid):
            # Name only those aggregates that the hosts are in.
            return Objection(
                conclusion.filter_name,
                conclusion.kind,
                str(constraint.cause),
                names,
            )
        return Objection(
            conclusion.filter_name, conclusion.kind, constraint.reason
        )

    def _of_host_filters(
        self, group: EquivalentHosts, numbers: Collection[int]
    ) -> Iterator[Objection]:
        """Yield the objections of host filters that are not reported yet."""
        if not self.dropping:
            return
        filters = {self._conclusions[number].host_filter for number in numbers}
        reasons = {
            self.dropping[objection]: why
            for objection, why in group.dropped
            if objection in self.dropping
        }
        for number in sorted(reasons):
            if self._conclusions[number].filter_name in filters:
                continue
            yield Objection(
                self._conclusions[number].filter_name,
                self._conclusions[number].kind,
                f'dropped after Placement: {reasons[number]}',
            )

    def _of_traits(self, group: EquivalentHosts) -> Iterator[Objection]:
        missing = self.required - group.traits
        if missing:
            traits = text.named('trait', missing, most=None)
            yield Objection(
                None,
                'required-trait',
                f'has no {traits}, which the request requires',
            )
        forbidden_traits = self.forbidden & group.root_traits
        if forbidden_traits:
            traits = text.named('trait', forbidden_traits, most=None)
            yield Objection(
                None,
                'forbidden-trait',
                f'has {traits}, which the request forbids',
            )


def _objects(alone: Destination, group: EquivalentHosts) -> bool:
    """Return whether a conclusion excludes hosts by other means.

    Forbidden aggregates are not checked here.
    """
    return bool(
        alone.refusals
        or (alone.in_tree and alone.in_tree not in group.trees)
        or not alone.root_forbidden.isdisjoint(group.root_traits)
        or not alone.root_required <= group.root_traits
        or any(
            choice.isdisjoint(group.kinds)
            for choice in alone.required_aggregates
        )
    )


def equivalent_aggregates(
    index: AggregateIndex, sets: Iterable[Collection[str]]
) -> Mapping[str, str]:
    """Return an aggregate of the same kind for each aggregate, by uuid.

    Aggregates are of one kind if each of the sets has all of them or none.
    Those in none of the sets are left out.
    """
    kinds: dict[str, list[int]] = {aggregate.uuid: [] for aggregate in index}
    for number, uuids in enumerate(dict.fromkeys(map(frozenset, sets))):
        for uuid in uuids & kinds.keys():
            kinds[uuid].append(number)
    first: dict[tuple[int, ...], str] = {}
    return {
        uuid: first.setdefault(tuple(numbers), uuid)
        for uuid, numbers in kinds.items()
        if numbers
    }
