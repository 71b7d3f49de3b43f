# SPDX-License-Identifier: Apache-2.0
"""What Nova's own filters restrict beyond aggregates, and its host filters.

Inside nova-scheduler Nova does this itself, so the plugin knows none of these
constraints: a destination only lists them.
"""

from collections.abc import Callable, Iterable, Iterator
import dataclasses
from typing import TypeVar

from isolate_aggregates.filters.constraints import (
    Cause,
    Constraint,
    Destination,
)
from isolate_aggregates_tools.placement.group import ResourceRequest

# Returns why the host of a compute service is dropped; empty if it is not.
Objection = Callable[[str], str]

_T = TypeVar('_T', bound=Constraint)


class _Listed(Constraint):
    """A constraint that only the functions below read."""

    def narrow(self, destination: Destination) -> None:
        """Do nothing."""


@dataclasses.dataclass(frozen=True)
class InTree(_Listed):
    """The resources must come from the tree of this provider."""

    provider: str
    cause: Cause | str

    def narrow(self, destination: Destination) -> None:
        """Refuse the request if it is restricted to another tree."""
        other = tree(destination)
        if other not in (None, self.provider):
            destination.refuse(
                f'the trees of providers {other} and {self.provider} are '
                'both required, and no host is in both'
            )


@dataclasses.dataclass(frozen=True)
class ForbidRootTrait(_Listed):
    """The root provider must not have this trait."""

    trait: str
    cause: Cause | str


@dataclasses.dataclass(frozen=True)
class RequireRootTrait(_Listed):
    """The root provider must have this trait."""

    trait: str
    cause: Cause | str


@dataclasses.dataclass(frozen=True)
class DropHosts(_Listed):
    """One of Nova's host filters drops hosts that Placement offers."""

    objection: Objection = dataclasses.field(compare=False)
    cause: Cause | str


def _of(destination: Destination, kind: type[_T]) -> Iterator[_T]:
    for conclusion in destination.yielded:
        if isinstance(conclusion.constraint, kind):
            yield conclusion.constraint


def tree(destination: Destination) -> str | None:
    """Return a provider of the tree that is required; None for any tree."""
    return next((one.provider for one in _of(destination, InTree)), None)


def required_root(destination: Destination) -> frozenset[str]:
    """Return the traits that the root provider must have."""
    return frozenset(one.trait for one in _of(destination, RequireRootTrait))


def forbidden_root(destination: Destination) -> frozenset[str]:
    """Return the traits that the root provider must not have."""
    return frozenset(one.trait for one in _of(destination, ForbidRootTrait))


def add(
    destination: Destination,
    request: ResourceRequest,
    forbidden: Iterable[str] | None = None,
    required: Iterable[frozenset[str]] | None = None,
) -> None:
    """Add all constraints of a destination to a query.

    As in Nova's ``resources_from_request_spec``, aggregates and tree are added
    to the unsuffixed request group.

    :param forbidden: The uuids of aggregates to forbid instead; None to
        forbid those of the destination.
    :param required: Sets of aggregate uuids to require instead; None to
        require those of the destination.
    """
    destination.check()
    request.root_required |= required_root(destination)
    request.root_forbidden |= forbidden_root(destination)
    if forbidden is None:
        forbidden = destination.forbidden_aggregates
    if required is None:
        required = destination.required_aggregates
    if required or forbidden:
        group = request.group()
        group.aggregates.extend(required)
        # Not a copy: thousands may be forbidden, the same for many requests.
        group.forbidden_aggregates = (
            group.forbidden_aggregates | frozenset(forbidden)
            if group.forbidden_aggregates
            else frozenset(forbidden)
        )
    if provider := tree(destination):
        request.group().in_tree = provider


def objections(destination: Destination) -> list[Objection]:
    """Return what each of Nova's host filters says of a host."""
    return [objection for _, objection in objections_by_filter(destination)]


def objections_by_filter(
    destination: Destination,
) -> Iterator[tuple[str, Objection]]:
    """Yield what each of Nova's host filters says of a host, with its name."""
    for conclusion in destination.yielded:
        if isinstance(conclusion.constraint, DropHosts):
            yield conclusion.filter_name, conclusion.constraint.objection


def dropped(destination: Destination, host: str) -> list[str]:
    """Return why Nova's host filters drop a host.

    :param host: The name of its compute service.
    """
    texts = (objection(host) for objection in objections(destination))
    return [text for text in texts if text]
