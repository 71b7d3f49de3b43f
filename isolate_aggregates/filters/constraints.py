# SPDX-License-Identifier: Apache-2.0
"""The constraints that a request filter can yield, and their conclusion.

A filter yields constraints. The pipeline collects them in a destination, which
adds them to the query. Constraints can only exclude hosts, never add any. Each
has a cause, which explains it to an operator: a :class:`Cause`, or only its
text.
"""

import abc
from collections.abc import Callable, Iterable, Set
import dataclasses

from isolate_aggregates import exception
from isolate_aggregates.aggregates.aggregate import Aggregate, naming
from isolate_aggregates.lazy import lazy_property


@dataclasses.dataclass(frozen=True)
class Cause:
    """Why a constraint exists.

    :param kind: A stable name for causes that differ only in names and
        amounts. JSON shows it, and tables merge causes of one kind.
    :param text: The explanation for an operator, without a full stop.
    :param locks: The metadata keys of aggregates that the request does not
        open, or prefixes of them. Records of decisions show these.
    """

    kind: str
    text: str
    locks: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


class Constraint(abc.ABC):
    """What a filter yields: a restriction of the destination.

    ``cause`` is why it exists, a :class:`Cause` or only its text; empty if its
    parts have one each. ``host_filter`` is the name of Nova's host filter that
    enforces the same; empty if there is none.
    """

    cause: object = ''
    host_filter: str = ''

    @property
    def reason(self) -> str:
        """A sentence for the operator, without a full stop."""
        return str(self.cause)

    @property
    def parts(self) -> 'Iterable[Constraint]':
        """What it combines, each with its own reason; otherwise itself."""
        return (self,)

    @abc.abstractmethod
    def narrow(self, destination: 'Destination') -> None:
        """Apply the constraint to a destination.

        :param destination: Where the request may go, which is changed.
        """


class Destination:
    """The restrictions on the hosts for a request.

    The aggregate rules are those of ``Destination`` in
    ``nova.objects.request_spec``: successive calls of
    :meth:`require_aggregates` are ANDed, the aggregates of one call are ORed,
    and the forbidden aggregates are the union of all calls.

    ``yielded`` are the conclusions, with compound constraints as they were
    yielded; ``refused_by`` is the name of the first filter that excluded all
    hosts.
    """

    def __init__(self) -> None:
        self.yielded: list[Conclusion] = []
        self.refused_by: str | None = None
        self.required_aggregates: list[frozenset[str]] = []
        self.forbidden: tuple[frozenset[str], ...] = ()
        self.refusals: list[str] = []

    @property
    def forbidden_aggregates(self) -> frozenset[str]:
        """The uuids of all forbidden aggregates."""
        if len(self.forbidden) == 1:
            return self.forbidden[0]
        return frozenset().union(*self.forbidden)

    def require_aggregates(self, uuids: Iterable[str]) -> None:
        """Require membership of at least one of some aggregates.

        :param uuids: The uuids of the aggregates. If empty, no host can match,
            and the request is refused.
        """
        choice = frozenset(uuids)
        if not choice:
            self.refuse('an aggregate from an empty list is required')
        elif choice not in self.required_aggregates:
            self.required_aggregates.append(choice)

    def forbid_aggregates(self, uuids: Iterable[str]) -> None:
        """Forbid membership of each of some aggregates.

        :param uuids: The uuids of the aggregates.
        """
        # Do not copy sets: they may be large, and other code caches results by
        # their identity.
        aggregates = frozenset(uuids)
        if aggregates:
            self.forbidden += (aggregates,)

    def refuse(self, reason: str) -> None:
        """Record that no host may serve the request.

        :param reason: The reason, without a full stop.
        """
        self.refusals.append(reason)

    def check(self) -> None:
        """Raise if the request was refused.

        :raises RequestRefused: with all reasons.
        """
        if self.refusals:
            raise exception.RequestRefused(self.refusals)

    @property
    def conclusions(self) -> 'list[Conclusion]':
        """The conclusions, with compound constraints split up."""
        return [
            Conclusion(conclusion.filter_name, part)
            for conclusion in self.yielded
            for part in conclusion.constraint.parts
        ]

    def add(self, constraint: Constraint, filter_name: str) -> None:
        """Add a constraint and record the filter that yielded it.

        :param constraint: The constraint.
        :param filter_name: The name of the filter.
        """
        constraint.narrow(self)
        if self.refusals and self.refused_by is None:
            self.refused_by = filter_name
        self.yielded.append(Conclusion(filter_name, constraint))

    def objections(self, aggregates: Set[str]) -> list[str]:
        """Return the reasons why a request may not use a host.

        This is for requests without a query to Placement, for example
        rebuilds, and for existing servers. Only aggregates are checked.

        :param aggregates: The uuids of the aggregates of the host.
        """
        if self.refusals or self.allows(aggregates):
            return list(self.refusals)
        return [
            part.reason
            for conclusion in self.yielded
            for part in conclusion.constraint.parts
            if _excludes(part, aggregates)
        ]

    def allows(self, aggregates: Set[str]) -> bool:
        """Return whether the aggregates of a host are no reason against it.

        :param aggregates: Their uuids.
        """
        return self.forbidden_aggregates.isdisjoint(aggregates) and not any(
            choice.isdisjoint(aggregates)
            for choice in self.required_aggregates
        )


def _excludes(constraint: Constraint, aggregates: Set[str]) -> bool:
    """Return whether a constraint excludes a host with some aggregates."""
    if type(constraint) is Forbid:
        # There may be hundreds.
        return any(a.uuid in aggregates for a in constraint.aggregates)
    destination = Destination()
    constraint.narrow(destination)
    return not destination.allows(aggregates)


@dataclasses.dataclass(frozen=True)
class Conclusion:
    """A constraint and the filter that yielded it.

    :param filter_name: The name of the filter.
    :param constraint: The constraint.
    """

    filter_name: str
    constraint: Constraint

    @property
    def host_filter(self) -> str:
        """Nova's host filter that enforces the same; empty if none does."""
        return self.constraint.host_filter

    @property
    def kind(self) -> str:
        """The kind of the cause; empty if the cause is only a text."""
        return str(getattr(self.constraint.cause, 'kind', ''))

    @lazy_property
    def alone(self) -> Destination:
        """A destination with only this conclusion."""
        destination = Destination()
        destination.add(self.constraint, self.filter_name)
        return destination


@dataclasses.dataclass(frozen=True)
class Forbid(Constraint):
    """The host must be in none of these aggregates.

    :param aggregates: The aggregates, at least one.
    :param cause: The reason, as in "aggregate win-hosts: <cause>".
    """

    aggregates: tuple[Aggregate, ...]
    cause: Cause | str

    @property
    def reason(self) -> str:
        """Which aggregates are forbidden, and why."""
        return f'{naming(self.aggregates)}: {self.cause}'

    def narrow(self, destination: Destination) -> None:
        """Forbid the aggregates."""
        destination.forbid_aggregates(a.uuid for a in self.aggregates)


@dataclasses.dataclass(frozen=True)
class LazyForbid(Constraint):
    """Several :class:`Forbid` at once, created only when a reason is needed.

    :param uuids: The uuids of all the aggregates.
    :param make: Returns the constraints, one for each cause.
    :param groups: The aggregates of each of them, in the same order; None if
        they are not known before. With the same object, constraints are the
        same but for the names of flavor and image.
    """

    uuids: frozenset[str]
    make: Callable[[], Iterable[Forbid]]
    groups: tuple[tuple[Aggregate, ...], ...] | None = None

    @lazy_property
    def parts(self) -> tuple[Forbid, ...]:
        """The constraints, one for each cause."""
        return tuple(self.make())

    @property
    def reason(self) -> str:
        """Which aggregates are forbidden, and why."""
        return '; '.join(part.reason for part in self.parts)

    def narrow(self, destination: Destination) -> None:
        """Forbid the aggregates."""
        destination.forbid_aggregates(self.uuids)


@dataclasses.dataclass(frozen=True)
class Require(Constraint):
    """The host must be in at least one of these aggregates.

    :param aggregates: The aggregates; if empty, no host can match.
    :param cause: The reason, as in "aggregate lease-1: <cause>".
    :param host_filter: The name of Nova's host filter that enforces the same;
        empty if there is none.
    """

    aggregates: tuple[Aggregate, ...]
    cause: Cause | str
    host_filter: str = ''

    @lazy_property
    def _uuids(self) -> frozenset[str]:
        return frozenset(aggregate.uuid for aggregate in self.aggregates)

    @property
    def reason(self) -> str:
        """Which aggregates are required, and why."""
        if not self.aggregates:
            return f'an aggregate from an empty list is required: {self.cause}'
        return f'{naming(self.aggregates)}: {self.cause}'

    def narrow(self, destination: Destination) -> None:
        """Require one of the aggregates."""
        if self.aggregates:
            destination.require_aggregates(self._uuids)
        else:
            destination.refuse(self.reason)


@dataclasses.dataclass(frozen=True)
class Refuse(Constraint):
    """No host may serve this request.

    :param cause: The reason.
    :param host_filter: The name of Nova's host filter that enforces the same;
        empty if there is none.
    """

    cause: Cause | str
    host_filter: str = ''

    def narrow(self, destination: Destination) -> None:
        """Refuse the request."""
        destination.refuse(self.reason)
