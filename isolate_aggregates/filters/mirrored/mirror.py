# SPDX-License-Identifier: Apache-2.0
"""The one shape of what repeats something that Nova does."""

from collections.abc import Callable, Iterable, Iterator, Mapping
import dataclasses
from typing import Any, cast

from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.destination import Constraint
from isolate_aggregates.request import Request, RequestSpec
from isolate_aggregates.request.implied import OLDEST_NOVA

# An option of Nova: its group and its name.
Option = tuple[str, str]
Settings = Mapping[Option, Any]

Rule = Callable[[Request, AggregateIndex, Settings], Iterable[Constraint]]


@dataclasses.dataclass(frozen=True)
class Mirror:
    """Something that Nova does with each request.

    :param name: Its name here.
    :param nova_name: What Nova calls it.
    :param rule: Yields the constraints.
    :param options: The options of Nova that it reads.
    :param switch: The one of them that must be true; None if none has to.
    :param host_filter: Whether it is a host filter, which runs where
        ``enabled_filters`` names it.
    :param since: The release of Nova that brought it.
    """

    name: str
    nova_name: str
    rule: Rule
    options: tuple[Option, ...] = ()
    switch: Option | None = None
    host_filter: bool = False
    since: int = OLDEST_NOVA


@dataclasses.dataclass(frozen=True)
class MirroringFilter:
    """A request filter that does what a mirror says.

    :param mirror: What Nova does.
    :param settings: The values of the options that it reads.
    """

    mirror: Mirror
    settings: Settings

    def __call__(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterator[Constraint]:
        """Yield what Nova adds.

        :param request: What is being scheduled, with all that is known of it.
        :param aggregates: The aggregates as of one moment.
        """
        # Where there is no Nova, there is no other.
        asked = cast('Request', request)
        if self.mirror.host_filter and asked.host_forced:
            return
        if asked.nova_release >= self.mirror.since:
            yield from self.mirror.rule(asked, aggregates, self.settings)
