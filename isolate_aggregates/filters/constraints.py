# SPDX-License-Identifier: Apache-2.0
"""The constraints that a request filter can yield.

Each has a cause, which explains it to an operator: a sentence without a full
stop, or an object that converts to one. Objects can be compared, counted and
tested.
"""

from collections.abc import Callable, Iterable
import dataclasses
import functools

from isolate_aggregates.aggregates.aggregate import Aggregate, naming
from isolate_aggregates.filters.destination import Destination


@dataclasses.dataclass(frozen=True)
class Forbid:
    """The host must be in none of these aggregates.

    :param aggregates: The aggregates, at least one.
    :param cause: The reason, as in "aggregate win-hosts: <cause>".
    """

    aggregates: tuple[Aggregate, ...]
    cause: object

    @property
    def reason(self) -> str:
        """Which aggregates are forbidden, and why."""
        return f'{naming(self.aggregates)}: {self.cause}'

    def narrow(self, destination: Destination) -> None:
        """Forbid the aggregates.

        :param destination: Where the request may go, which is changed.
        """
        destination.forbid_aggregates(a.uuid for a in self.aggregates)


@dataclasses.dataclass(frozen=True)
class LazyForbid:
    """Several :class:`Forbid` at once, created only when a reason is needed.

    :param uuids: The uuids of all the aggregates.
    :param make: Returns the constraints, one for each cause.
    """

    uuids: frozenset[str]
    make: Callable[[], Iterable[Forbid]]

    @functools.cached_property
    def parts(self) -> tuple[Forbid, ...]:
        """The constraints, one for each cause."""
        return tuple(self.make())

    @property
    def reason(self) -> str:
        """Which aggregates are forbidden, and why."""
        return '; '.join(part.reason for part in self.parts)

    def narrow(self, destination: Destination) -> None:
        """Forbid the aggregates.

        :param destination: Where the request may go, which is changed.
        """
        destination.forbid_aggregates(self.uuids)


@dataclasses.dataclass(frozen=True)
class Require:
    """The host must be in at least one of these aggregates.

    :param aggregates: The aggregates; if empty, no host can match.
    :param cause: The reason, as in "aggregate lease-1: <cause>".
    :param host_filter: The name of Nova's host filter that enforces the same;
        empty if there is none. If it is enabled, these aggregates can be left
        out of a query that would be too long.
    """

    aggregates: tuple[Aggregate, ...]
    cause: object
    host_filter: str = ''

    @property
    def reason(self) -> str:
        """Which aggregates are required, and why."""
        if not self.aggregates:
            return f'an aggregate from an empty list is required: {self.cause}'
        return f'{naming(self.aggregates)}: {self.cause}'

    def narrow(self, destination: Destination) -> None:
        """Require one of the aggregates.

        :param destination: Where the request may go, which is changed.
        """
        if self.aggregates:
            destination.require_aggregates(
                (a.uuid for a in self.aggregates), self.host_filter
            )
        else:
            destination.refuse(self.reason)


class _Caused:
    """A constraint whose reason is only its cause."""

    cause: object

    @property
    def reason(self) -> str:
        """The cause as text."""
        return str(self.cause)


@dataclasses.dataclass(frozen=True)
class InTree(_Caused):
    """The resources must come from the tree of this provider.

    :param provider: The uuid of any resource provider of the tree.
    :param cause: The reason.
    """

    provider: str
    cause: object

    def narrow(self, destination: Destination) -> None:
        """Restrict the destination to the tree.

        :param destination: Where the request may go, which is changed.
        """
        destination.restrict_to_tree(self.provider)


@dataclasses.dataclass(frozen=True)
class ForbidRootTrait(_Caused):
    """The root provider must not have this trait.

    :param trait: The name of the trait.
    :param cause: The reason.
    """

    trait: str
    cause: object

    def narrow(self, destination: Destination) -> None:
        """Forbid the trait on the root provider.

        :param destination: Where the request may go, which is changed.
        """
        destination.root_forbidden.add(self.trait)


@dataclasses.dataclass(frozen=True)
class RequireRootTrait(_Caused):
    """The root provider must have this trait.

    :param trait: The name of the trait.
    :param cause: The reason.
    """

    trait: str
    cause: object

    def narrow(self, destination: Destination) -> None:
        """Require the trait of the root provider.

        :param destination: Where the request may go, which is changed.
        """
        destination.root_required.add(self.trait)


@dataclasses.dataclass(frozen=True)
class Remark(_Caused):
    """A remark, which excludes no host.

    :param cause: The remark.
    """

    cause: object

    def narrow(self, destination: Destination) -> None:
        """Do nothing.

        :param destination: Where the request may go.
        """


@dataclasses.dataclass(frozen=True)
class DropHosts(_Caused):
    """One of Nova's host filters drops hosts that Placement offers.

    :param objection: Returns why the host of a compute service is dropped;
        empty if it is not.
    :param cause: A description of the dropped hosts.
    """

    objection: Callable[[str], str] = dataclasses.field(compare=False)
    cause: object

    def narrow(self, destination: Destination) -> None:
        """Add the objection to those that are checked for each host.

        :param destination: Where the request may go, which is changed.
        """
        destination.host_objections.append(self.objection)


@dataclasses.dataclass(frozen=True)
class Refuse(_Caused):
    """No host may serve this request.

    :param cause: The reason.
    :param host_filter: The name of Nova's host filter that enforces the same;
        empty if there is none.
    """

    cause: object
    host_filter: str = ''

    def narrow(self, destination: Destination) -> None:
        """Refuse the request.

        :param destination: Where the request may go, which is changed.
        """
        destination.refuse(self.reason)
