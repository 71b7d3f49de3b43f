# SPDX-License-Identifier: Apache-2.0
"""The conclusions of the request filters, each with its reason.

A filter yields constraints. The pipeline collects them in a destination, which
adds them to the query. Constraints can only exclude hosts, never add any.
"""

import abc
from collections.abc import Iterable, Sequence
import dataclasses

from isolate_aggregates import exception
from isolate_aggregates.lazy import lazy_property


class Constraint(abc.ABC):
    """What a filter yields: a restriction of the destination.

    ``cause`` is why it exists, a :class:`~isolate_aggregates.filters.Cause` or
    only its text; empty if its parts have one each. ``host_filter`` is the
    name of Nova's host filter that enforces the same; empty if there is none.
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

    ``host_filters`` maps sets of required aggregates to Nova's host filter
    that enforces the same.
    """

    def __init__(self) -> None:
        self.required_aggregates: list[frozenset[str]] = []
        self.host_filters: dict[frozenset[str], str] = {}
        self.forbidden: tuple[frozenset[str], ...] = ()
        self.refusals: list[str] = []

    @property
    def forbidden_aggregates(self) -> frozenset[str]:
        """The uuids of all forbidden aggregates."""
        if len(self.forbidden) == 1:
            return self.forbidden[0]
        return frozenset().union(*self.forbidden)

    def require_aggregates(
        self, uuids: Iterable[str], host_filter: str = ''
    ) -> None:
        """Require membership of at least one of some aggregates.

        :param uuids: The uuids of the aggregates. If empty, no host can match,
            and the request is refused.
        :param host_filter: The name of Nova's host filter that enforces the
            same; empty if there is none.
        """
        choice = frozenset(uuids)
        if not choice:
            self.refuse('an aggregate from an empty list is required')
            return
        if choice not in self.required_aggregates:
            self.required_aggregates.append(choice)
            if host_filter:
                self.host_filters[choice] = host_filter
        elif self.host_filters.get(choice) != host_filter:
            # Required for two reasons; the host filter enforces only one.
            self.host_filters.pop(choice, None)

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


@dataclasses.dataclass(frozen=True)
class Conclusion:
    """A constraint and the filter that yielded it."""

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
    def alone(self) -> 'ExplainedDestination':
        """A destination with only this conclusion."""
        destination = ExplainedDestination()
        destination.add(self.constraint, self.filter_name)
        return destination


class ExplainedDestination(Destination):
    """A destination that records which filter yielded which constraint.

    ``refused_by`` is the name of the first filter that excluded all hosts.
    """

    def __init__(self) -> None:
        super().__init__()
        self.refused_by: str | None = None
        self._concluded: list[Conclusion] = []

    @property
    def constraints(self) -> Sequence[Conclusion]:
        """The conclusions, with compound constraints as they were yielded."""
        return self._concluded

    @property
    def conclusions(self) -> list[Conclusion]:
        """The conclusions, with compound constraints split up."""
        return [
            Conclusion(conclusion.filter_name, part)
            for conclusion in self._concluded
            for part in conclusion.constraint.parts
        ]

    def add(self, constraint: Constraint, filter_name: str) -> None:
        """Add a constraint and record the filter that yielded it."""
        constraint.narrow(self)
        if self.refusals and self.refused_by is None:
            self.refused_by = filter_name
        self._concluded.append(Conclusion(filter_name, constraint))
