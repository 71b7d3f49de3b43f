# SPDX-License-Identifier: Apache-2.0
"""What the request filters concluded, with the reason for each conclusion.

A filter yields constraints; the pipeline folds them into a destination, which
puts them onto the query. Constraints can only narrow the choice of hosts.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import dataclasses
import functools
from typing import Protocol, runtime_checkable

from isolate_aggregates import exception
from isolate_aggregates.placement.group import ResourceRequest


class Constraint(Protocol):
    """What a filter may yield: something that narrows a destination."""

    @property
    def reason(self) -> str:
        """A sentence an operator can act on, without a full stop."""

    def narrow(self, destination: 'Destination') -> None:
        """Put the constraint onto a destination."""


@runtime_checkable
class Compound(Protocol):
    """A constraint that stands for several, each with a reason of its own."""

    @property
    def parts(self) -> Iterable[Constraint]:
        """The constraints it stands for."""


@dataclasses.dataclass(frozen=True)
class Conclusion:
    """A constraint and who concluded it.

    :param filter_name: The name of the request filter.
    :param constraint: The constraint.
    """

    filter_name: str
    constraint: Constraint

    @property
    def host_filter(self) -> str:
        """The host filter of Nova that says the same; empty if none does."""
        return str(getattr(self.constraint, 'host_filter', ''))

    @functools.cached_property
    def alone(self) -> 'Destination':
        """The destination if there were no other conclusion."""
        destination = Destination()
        self.constraint.narrow(destination)
        return destination


class Destination:
    """Where a request may go, as narrowed so far.

    The aggregate rules are those of ``Destination`` in
    ``nova.objects.request_spec``: successive calls of
    :meth:`require_aggregates` are ANDed, the aggregates of one call ORed, and
    the forbidden aggregates are the union of all calls.

    ``host_filters`` are those of Nova that let no hosts pass either but those
    in one of some required aggregates.

    ``refused_by`` is the name of the first filter that left no host.
    ``host_objections`` say why Nova drops the host of a compute service after
    Placement has answered; they do not change the query.
    """

    def __init__(self) -> None:
        self.required_aggregates: list[frozenset[str]] = []
        self.host_filters: dict[frozenset[str], str] = {}
        self.forbidden: tuple[frozenset[str], ...] = ()
        self.root_required: set[str] = set()
        self.root_forbidden: set[str] = set()
        self.in_tree: str | None = None
        self.refusals: list[str] = []
        self.refused_by: str | None = None
        self.host_objections: list[Callable[[str], str]] = []
        self._concluded: list[Conclusion] = []

    @property
    def forbidden_aggregates(self) -> frozenset[str]:
        """The uuids of all forbidden aggregates."""
        if len(self.forbidden) == 1:
            return self.forbidden[0]
        return frozenset().union(*self.forbidden)

    @property
    def constraints(self) -> Sequence[Conclusion]:
        """Who concluded what, as it was concluded."""
        return self._concluded

    @property
    def conclusions(self) -> list[Conclusion]:
        """Who concluded what, each constraint by itself."""
        return [
            Conclusion(concluded.filter_name, part)
            for concluded in self._concluded
            for part in _parts(concluded.constraint)
        ]

    def add(self, constraint: Constraint, filter_name: str) -> None:
        """Add a constraint and record the filter that concluded it.

        :param constraint: The constraint.
        :param filter_name: The name of the request filter.
        """
        constraint.narrow(self)
        if self.refusals and self.refused_by is None:
            self.refused_by = filter_name
        self._concluded.append(Conclusion(filter_name, constraint))

    def require_aggregates(
        self, uuids: Iterable[str], host_filter: str = ''
    ) -> None:
        """Require membership of at least one of some aggregates.

        :param uuids: The uuids of the aggregates. With none of them nothing
            can match, and the request is refused.
        :param host_filter: The host filter of Nova that lets no other hosts
            pass either; empty if there is none.
        """
        choice = frozenset(uuids)
        if not choice:
            self.refuse('one of no aggregates is required')
            return
        if choice not in self.required_aggregates:
            self.required_aggregates.append(choice)
            if host_filter:
                self.host_filters[choice] = host_filter
        elif self.host_filters.get(choice) != host_filter:
            # That filter knows only why one of both requires them.
            self.host_filters.pop(choice, None)

    def forbid_aggregates(self, uuids: Iterable[str]) -> None:
        """Forbid membership of each of some aggregates.

        :param uuids: The uuids of the aggregates.
        """
        # Sets are kept as they are: they may be large, and other code may
        # cache # results by their identity.
        found = frozenset(uuids)
        if found:
            self.forbidden += (found,)

    def restrict_to_tree(self, provider: str) -> None:
        """Require the resources to come from one provider tree.

        :param provider: Uuid of any resource provider of the tree. A second,
            different one leaves nothing, and the request is refused.
        """
        if self.in_tree not in (None, provider):
            self.refuse(
                f'the trees of providers {self.in_tree} and {provider} are '
                'both required, and no host is in both'
            )
        self.in_tree = provider

    def refuse(self, reason: str) -> None:
        """Record that no host may serve the request.

        :param reason: Why.
        """
        self.refusals.append(reason)

    def dropped(self, host: str) -> list[str]:
        """Return why Nova drops a host that Placement offers.

        :param host: The name of its compute service.
        """
        told = (objection(host) for objection in self.host_objections)
        return [why for why in told if why]

    def check(self) -> None:
        """Raise if the request was refused.

        :raises RequestRefused: with every reason for it.
        """
        if self.refusals:
            raise exception.RequestRefused(self.refusals)

    def apply_to(
        self,
        request: ResourceRequest,
        forbidden: Iterable[str] | None = None,
        required: Iterable[frozenset[str]] | None = None,
    ) -> None:
        """Put all constraints onto a query.

        As in Nova's ``resources_from_request_spec``, aggregates and tree go
        onto the unsuffixed request group.

        :param request: The query, which is changed.
        :param forbidden: Uuids of aggregates that stand for those that are
            forbidden; None for those themselves.
        :param required: Sets of uuids that stand for those of which one is
            required; None for those themselves.
        :raises RequestRefused: if the request was refused.
        """
        self.check()
        request.root_required |= self.root_required
        request.root_forbidden |= self.root_forbidden
        if forbidden is None:
            forbidden = self.forbidden_aggregates
        if required is None:
            required = self.required_aggregates
        if required or forbidden:
            group = request.group()
            group.aggregates.extend(required)
            group.forbidden_aggregates.update(forbidden)
        if self.in_tree:
            request.group().in_tree = self.in_tree


def _parts(constraint: Constraint) -> Iterator[Constraint]:
    if isinstance(constraint, Compound):
        yield from constraint.parts
    else:
        yield constraint
