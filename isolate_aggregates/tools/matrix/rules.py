# SPDX-License-Identifier: Apache-2.0
"""Evaluates one request for all hosts."""

from collections.abc import Callable, Collection, Iterator, Sequence
import dataclasses

from isolate_aggregates import exception, text
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.decision import decide
from isolate_aggregates.filters.constraints import Forbid
from isolate_aggregates.filters.destination import Conclusion, Destination
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.placement import resources
from isolate_aggregates.request import Request

# Returns why a host filter drops the host of a compute service.
HostObjection = Callable[[str], str]


@dataclasses.dataclass(frozen=True)
class Objection:
    """Why a request may not use a host.

    :param filter_name: The request filter that excludes the host; None for a
        trait of the request itself, or if the request is invalid.
    :param text: The reason, without a full stop.
    """

    filter_name: str | None
    kind: str
    text: str


@dataclasses.dataclass(frozen=True)
class EquivalentHosts:
    """Hosts that are equal for all requests, and so are evaluated together.

    :param hosts: Their names, sorted. If a compute service has several nodes,
        the name of the node follows in brackets.
    :param aggregates: The uuids of the host aggregates of the hosts.
    :param traits: The traits of their trees and of providers that share with
        them, as far as requests require these traits.
    :param root_traits: The traits of their root providers, as far as requests
        require or forbid these traits on the root.
    :param trees: The uuids of the providers in their trees that requests name
        in ``in_tree``.
    :param dropped: The host filters that drop them, with the reasons.
    """

    hosts: tuple[str, ...]
    aggregates: frozenset[str]
    traits: frozenset[str]
    root_traits: frozenset[str]
    trees: frozenset[str]
    dropped: frozenset[tuple[HostObjection, str]] = frozenset()


class Rules:
    """The rules for one request, arranged by what they depend on."""

    def __init__(
        self,
        request: Request,
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
        self._closed: dict[str, list[int]] = {}
        self._others: list[tuple[int, Destination]] = []
        self.dropping: dict[HostObjection, int] = {}
        self._members: dict[int, dict[str, Aggregate]] = {}
        self._narrowed: dict[tuple[int, frozenset[str]], Objection] = {}
        for number, conclusion in enumerate(conclusions):
            alone = conclusion.alone
            if isinstance(conclusion.constraint, Forbid):
                self._members[number] = {
                    a.uuid: a for a in conclusion.constraint.aggregates
                }
            for objection in alone.host_objections:
                self.dropping[objection] = number
            for uuid in alone.forbidden_aggregates:
                self._closed.setdefault(uuid, []).append(number)
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
        cls, request: Request, pipeline: Pipeline, index: AggregateIndex
    ) -> 'Rules':
        """Evaluate a request."""
        try:
            group = resources.resource_request(request).group()
            destination = decide(request, index, pipeline).destination
            required = request.required_traits
        except exception.InvalidRequest as exc:
            return cls(request, nonsense=str(exc).rstrip('.'))
        # Suffixed groups are ignored: another provider of the tree may serve
        # them.
        forbidden = group.forbidden_traits if group.resources else ()
        return cls(
            request,
            destination.conclusions,
            required,
            frozenset(forbidden),
        )

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

    def objections(self, group: EquivalentHosts) -> tuple[Objection, ...]:
        """Return why the request may not use a group of hosts."""
        if self._nonsense:
            return (Objection(None, 'invalid-request', self._nonsense),)
        numbers = {
            number
            for uuid in group.aggregates
            for number in self._closed.get(uuid, ())
        }
        numbers.update(
            number for number, alone in self._others if _objects(alone, group)
        )
        return (
            *(self._objection(number, group) for number in sorted(numbers)),
            *self._of_traits(group),
            *self._of_host_filters(group, numbers),
        )

    def _objection(self, number: int, group: EquivalentHosts) -> Objection:
        conclusion = self._conclusions[number]
        constraint = conclusion.constraint
        if not isinstance(constraint, Forbid):
            return Objection(
                conclusion.filter_name, conclusion.kind, constraint.reason
            )
        # Name only those aggregates that the hosts are in.
        members = self._members[number]
        own = tuple(
            members[uuid] for uuid in sorted(group.aggregates & members.keys())
        )
        key = number, frozenset(a.uuid for a in own)
        if key not in self._narrowed:
            own_constraint = dataclasses.replace(constraint, aggregates=own)
            self._narrowed[key] = Objection(
                conclusion.filter_name, conclusion.kind, own_constraint.reason
            )
        return self._narrowed[key]

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
            choice.isdisjoint(group.aggregates)
            for choice in alone.required_aggregates
        )
    )
