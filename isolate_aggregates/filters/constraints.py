# SPDX-License-Identifier: Apache-2.0
"""The constraints that a request filter can yield.

Each has a cause, which explains it to an operator: a :class:`Cause`, or only
its text.
"""

from collections.abc import Callable, Iterable
import dataclasses

from isolate_aggregates.aggregates.aggregate import Aggregate, naming
from isolate_aggregates.filters.destination import Constraint, Destination
from isolate_aggregates.lazy import lazy_property


@dataclasses.dataclass(frozen=True)
class Cause:
    """Why a constraint exists.

    :param kind: A stable name for causes that differ only in names and
        amounts. JSON shows it, and tables merge causes of one kind.
    :param text: The explanation for an operator, without a full stop.
    """

    kind: str
    text: str

    def __str__(self) -> str:
        return self.text


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
    """

    uuids: frozenset[str]
    make: Callable[[], Iterable[Forbid]]

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
        empty if there is none. If it is enabled, these aggregates can be left
        out of a query that would be too long.
    """

    aggregates: tuple[Aggregate, ...]
    cause: Cause | str
    host_filter: str = ''

    @property
    def reason(self) -> str:
        """Which aggregates are required, and why."""
        if not self.aggregates:
            return f'an aggregate from an empty list is required: {self.cause}'
        return f'{naming(self.aggregates)}: {self.cause}'

    def narrow(self, destination: Destination) -> None:
        """Require one of the aggregates."""
        if self.aggregates:
            destination.require_aggregates(
                (a.uuid for a in self.aggregates), self.host_filter
            )
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
