# SPDX-License-Identifier: Apache-2.0
"""The objections to one request, for all hosts."""

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

# Says why the host of a compute service is dropped after Placement.
HostObjection = Callable[[str], str]


@dataclasses.dataclass(frozen=True)
class Objection:
    """Why a request may not go to a host.

    :param filter_name: The request filter that keeps it out; None if it is
        Placement, for a trait, or if the request is invalid.
    :param text: The reason, without a full stop.
    """

    filter_name: str | None
    text: str


@dataclasses.dataclass(frozen=True)
class HostGroup:
    """Hosts that are equal for all requests, so that they are judged together.

    :param hosts: Their names, sorted; where a compute service has several
        nodes, each with the name of the node in brackets.
    :param aggregates: Uuids of the host aggregates that all of them are in.
    :param traits: What they have, in their tree or shared with it, of the
        traits that some request requires.
    :param root_traits: What their compute nodes have of the traits that some
        request forbids or requires there.
    :param trees: Uuids of those providers of their tree that some request
        asks for the tree of.
    :param dropped: Who drops them after Placement has answered, and why.
    """

    hosts: tuple[str, ...]
    aggregates: frozenset[str]
    traits: frozenset[str]
    root_traits: frozenset[str]
    trees: frozenset[str]
    dropped: frozenset[tuple[HostObjection, str]] = frozenset()


class Rules:
    """What is said against a request, arranged by what it depends on.

    :param required: The traits that it requires of a host.
    :param forbidden: The traits that a compute node must not have for it.
    :param nonsense: Why the request is invalid, if it does not.
    """

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
        self._told: dict[tuple[int, frozenset[str]], Objection] = {}
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
        """Evaluate a request.

        :raises FilterError: if a filter fails.
        """
        try:
            group = resources.resource_request(request).group()
            destination = decide(request, index, pipeline).destination
            required = request.required_traits
        except exception.InvalidRequest as exc:
            return cls(request, nonsense=str(exc).rstrip('.'))
        # Of the other groups another provider of the tree may serve each.
        forbidden = group.forbidden_traits if group.resources else ()
        return cls(
            request,
            destination.conclusions,
            required,
            frozenset(forbidden),
        )

    @property
    def root_traits(self) -> frozenset[str]:
        """The traits that matter on a compute node itself."""
        return self.forbidden.union(
            *(
                alone.root_forbidden | alone.root_required
                for _, alone in self._others
            )
        )

    @property
    def trees(self) -> frozenset[str]:
        """The providers whose trees are asked for."""
        return frozenset(
            alone.in_tree for _, alone in self._others if alone.in_tree
        )

    def objections(self, group: HostGroup) -> tuple[Objection, ...]:
        """Return what is said against the request on some hosts."""
        if self._nonsense:
            return (Objection(None, self._nonsense),)
        found = {
            number
            for uuid in group.aggregates
            for number in self._closed.get(uuid, ())
        }
        found.update(
            number for number, alone in self._others if _objects(alone, group)
        )
        return (
            *(self._objection(number, group) for number in sorted(found)),
            *self._of_traits(group),
            *self._of_host_filters(group, found),
        )

    def _objection(self, number: int, group: HostGroup) -> Objection:
        conclusion = self._conclusions[number]
        constraint = conclusion.constraint
        if not isinstance(constraint, Forbid):
            return Objection(conclusion.filter_name, constraint.reason)
        # Of many aggregates only those of these hosts are of interest here.
        members = self._members[number]
        own = tuple(
            members[uuid] for uuid in sorted(group.aggregates & members.keys())
        )
        key = number, frozenset(a.uuid for a in own)
        if key not in self._told:
            narrowed = dataclasses.replace(constraint, aggregates=own)
            self._told[key] = Objection(
                conclusion.filter_name, narrowed.reason
            )
        return self._told[key]

    def _of_host_filters(
        self, group: HostGroup, found: Collection[int]
    ) -> Iterator[Objection]:
        """Yield what host filters object that is not said already.

        :param found: The conclusions that object.
        """
        if not self.dropping:
            return
        said = {self._conclusions[number].host_filter for number in found}
        told = {
            self.dropping[objection]: why
            for objection, why in group.dropped
            if objection in self.dropping
        }
        for number in sorted(told):
            if self._conclusions[number].filter_name in said:
                continue
            yield Objection(
                self._conclusions[number].filter_name,
                f'dropped after Placement: {told[number]}',
            )

    def _of_traits(self, group: HostGroup) -> Iterator[Objection]:
        missing = self.required - group.traits
        if missing:
            traits = text.named('trait', missing, most=None)
            yield Objection(
                None, f'has no {traits}, which the request requires'
            )
        unwanted = self.forbidden & group.root_traits
        if unwanted:
            traits = text.named('trait', unwanted, most=None)
            yield Objection(None, f'has {traits}, which the request forbids')


def _objects(alone: Destination, group: HostGroup) -> bool:
    """Return whether a conclusion objects, forbidden aggregates aside."""
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
