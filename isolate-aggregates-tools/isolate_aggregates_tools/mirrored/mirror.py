# SPDX-License-Identifier: Apache-2.0
"""The common structure of mirrored filters."""

from collections.abc import Callable, Iterable, Iterator, Mapping
import dataclasses
from typing import Any, cast

from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.constraints import (
    Cause,
    Constraint,
    Destination,
)
from isolate_aggregates.filters.contract import RequestFilter
from isolate_aggregates.request import RequestSpec
from isolate_aggregates_tools.request import Request
from isolate_aggregates_tools.request.implied import OLDEST_NOVA

# Group and name of one of Nova's options.
Option = tuple[str, str]
Settings = Mapping[Option, Any]

Rule = Callable[[Request, AggregateIndex, Settings], Iterable[Constraint]]


@dataclasses.dataclass(frozen=True)
class Remark(Constraint):
    """A remark, which excludes no host."""

    cause: Cause | str

    def narrow(self, destination: Destination) -> None:
        """Do nothing."""


@dataclasses.dataclass(frozen=True)
class Mirror:
    """A filter of Nova that is reproduced here.

    :param switch: The option that must be true; None if there is none.
    :param host_filter: Whether it is a host filter, which runs if it is in
        ``enabled_filters``.
    """

    name: str
    nova_name: str
    rule: Rule
    options: tuple[Option, ...] = ()
    switch: Option | None = None
    host_filter: bool = False
    since: int = OLDEST_NOVA


@dataclasses.dataclass(frozen=True)
class MirroringFilter(RequestFilter):
    """A request filter that runs a mirror."""

    mirror: Mirror
    settings: Settings

    def __call__(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterator[Constraint]:
        """Yield the constraints that Nova adds."""
        # Mirrors do not run inside Nova, so this is always a Request.
        whole = cast('Request', request)
        if self.mirror.host_filter and whole.host_forced:
            return
        if whole.nova_release >= self.mirror.since:
            yield from self.mirror.rule(whole, aggregates, self.settings)
