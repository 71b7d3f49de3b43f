# SPDX-License-Identifier: Apache-2.0
"""What the request filters concluded, with the reason for each conclusion.

A filter yields constraints; the pipeline folds them into a destination, which
puts them onto the query. Constraints can only narrow the choice of hosts.
"""

from collections.abc import Callable, Iterable, Iterator
import dataclasses
import functools
from typing import Protocol

from isolate_aggregates import exception
from isolate_aggregates.aggregates.aggregate import Aggregate, naming
from isolate_aggregates.placement.group import ResourceRequest


class Constraint(Protocol):
    """What a filter may yield: something that narrows a destination."""

    @property
    def reason(self) -> str:
        """A sentence an operator can act on, without a full stop."""

    def narrow(self, destination: 'Destination') -> None:
        """Put the constraint onto a destination."""


@dataclasses.dataclass(frozen=True)
class Forbid:
    """The host must be in none of these aggregates.

    :param aggregates: The aggregates, at least one.
    :param cause: Why, as in "aggregate win-hosts: <cause>".
    """

    aggregates: tuple[Aggregate, ...]
    cause: str

    @property
    def reason(self) -> str:
        """Which aggregates are forbidden, and why."""
        return f'{naming(self.aggregates)}: {self.cause}'

    def narrow(self, destination: 'Destination') -> None:
        """Forbid the aggregates."""
        destination.forbid_aggregates(a.uuid for a in self.aggregates)


@dataclasses.dataclass(frozen=True)
class ForbidClosed:
    """Several :class:`Forbid` at once, spelt out only when somebody asks.

    :param uuids: The uuids of all the aggregates.
    :param spell_out: Yields the constraints, one for each cause.
    """

    uuids: frozenset[str]
    spell_out: Callable[[], Iterable[Forbid]]

    @functools.cached_property
    def parts(self) -> tuple[Forbid, ...]:
        """The constraints, one for each cause."""
        return tuple(self.spell_out())

    @property
    def reason(self) -> str:
        """Which aggregates are forbidden, and why."""
        return '; '.join(part.reason for part in self.parts)

    def narrow(self, destination: 'Destination') -> None:
        """Forbid the aggregates."""
        destination.forbid_aggregates(self.uuids)


@dataclasses.dataclass(frozen=True)
class Require:
    """The host must be in at least one of these aggregates.

    :param aggregates: The aggregates; with none of them, nothing can match.
    :param cause: Why, as in "aggregate lease-1: <cause>".
    """

    aggregates: tuple[Aggregate, ...]
    cause: str

    @property
    def reason(self) -> str:
        """Which aggregates are required, and why."""
        if not self.aggregates:
            return f'one of no aggregates is required: {self.cause}'
        return f'{naming(self.aggregates)}: {self.cause}'

    def narrow(self, destination: 'Destination') -> None:
        """Require one of the aggregates."""
        if self.aggregates:
            destination.require_aggregates(a.uuid for a in self.aggregates)
        else:
            destination.refuse(self.reason)


@dataclasses.dataclass(frozen=True)
class InTree:
    """The resources must come from the tree of this provider.

    :param provider: Uuid of any resource provider of the tree.
    :param reason: Why.
    """

    provider: str
    reason: str

    def narrow(self, destination: 'Destination') -> None:
        """Restrict the destination to the tree."""
        destination.restrict_to_tree(self.provider)


@dataclasses.dataclass(frozen=True)
class ForbidRootTrait:
    """The root provider must not have this trait.

    :param trait: The trait.
    :param reason: Why.
    """

    trait: str
    reason: str

    def narrow(self, destination: 'Destination') -> None:
        """Forbid the trait on the root provider."""
        destination.root_forbidden.add(self.trait)


@dataclasses.dataclass(frozen=True)
class Refuse:
    """No host at all may serve this request.

    :param reason: Why.
    """

    reason: str

    def narrow(self, destination: 'Destination') -> None:
        """Refuse the request."""
        destination.refuse(self.reason)


@dataclasses.dataclass(frozen=True)
class Conclusion:
    """A constraint and who concluded it.

    :param filter_name: The name of the request filter.
    :param constraint: The constraint.
    """

    filter_name: str
    constraint: Constraint

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
    """

    def __init__(self) -> None:
        self.required_aggregates: list[frozenset[str]] = []
        self.forbidden: tuple[frozenset[str], ...] = ()
        self.root_forbidden: set[str] = set()
        self.in_tree: str | None = None
        self.refusals: list[str] = []
        self._concluded: list[Conclusion] = []

    @property
    def forbidden_aggregates(self) -> frozenset[str]:
        """The uuids of all forbidden aggregates."""
        if len(self.forbidden) == 1:
            return self.forbidden[0]
        return frozenset().union(*self.forbidden)

    @property
    def conclusions(self) -> list[Conclusion]:
        """Who concluded what, each constraint by itself."""
        return [
            Conclusion(concluded.filter_name, part)
            for concluded in self._concluded
            for part in _parts(concluded.constraint)
        ]

    def add(self, constraint: Constraint, filter_name: str) -> None:
        """Take in a constraint and remember who concluded it.

        :param constraint: The constraint.
        :param filter_name: The name of the request filter.
        """
        constraint.narrow(self)
        self._concluded.append(Conclusion(filter_name, constraint))

    def require_aggregates(self, uuids: Iterable[str]) -> None:
        """Require membership of at least one of some aggregates.

        :param uuids: The uuids of the aggregates. With none of them nothing
            can match, and the request is refused.
        """
        choice = frozenset(uuids)
        if not choice:
            self.refuse('one of no aggregates is required')
        elif choice not in self.required_aggregates:
            self.required_aggregates.append(choice)

    def forbid_aggregates(self, uuids: Iterable[str]) -> None:
        """Forbid membership of each of some aggregates.

        :param uuids: The uuids of the aggregates.
        """
        # Sets are kept as they are: they may be large, and remembered by
        # whoever asks for their meaning again.
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

    def check(self) -> None:
        """Raise if the request was refused.

        :raises RequestRefused: with every reason for it.
        """
        if self.refusals:
            raise exception.RequestRefused(self.refusals)

    def apply_to(
        self, request: ResourceRequest, forbidden: Iterable[str] | None = None
    ) -> None:
        """Put all constraints onto a query.

        As in Nova's ``resources_from_request_spec``, aggregates and tree go
        onto the unsuffixed request group.

        :param request: The query, which is changed.
        :param forbidden: Uuids of aggregates that stand for those that are
            forbidden; None for those themselves.
        :raises RequestRefused: if the request was refused.
        """
        self.check()
        request.root_forbidden |= self.root_forbidden
        if forbidden is None:
            forbidden = self.forbidden_aggregates
        if self.required_aggregates or forbidden:
            group = request.group()
            group.aggregates.extend(self.required_aggregates)
            group.forbidden_aggregates.update(forbidden)
        if self.in_tree:
            request.group().in_tree = self.in_tree


def _parts(constraint: Constraint) -> Iterator[Constraint]:
    if isinstance(constraint, ForbidClosed):
        yield from constraint.parts
    else:
        yield constraint
