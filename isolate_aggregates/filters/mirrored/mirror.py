# SPDX-License-Identifier: Apache-2.0
"""The common structure of mirrored filters."""

from collections.abc import Callable, Iterable, Iterator, Mapping
import dataclasses
from typing import Any, cast

from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.destination import Constraint
from isolate_aggregates.request import Request, RequestSpec
from isolate_aggregates.request.implied import OLDEST_NOVA

# Group and name of one of Nova's options.
Option = tuple[str, str]
Settings = Mapping[Option, Any]

Rule = Callable[[Request, AggregateIndex, Settings], Iterable[Constraint]]


@dataclasses.dataclass(frozen=True)
class Mirror:
    """A filter of Nova that is reproduced here.

    :param name: Its name in this package.
    :param nova_name: Its name in Nova.
    :param rule: Yields the constraints.
    :param options: Nova's options that it reads.
    :param switch: The option that must be true; None if there is none.
    :param host_filter: Whether it is a host filter, which runs if it is in
        ``enabled_filters``.
    :param since: The release of Nova that introduced it.
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
    """A request filter that runs a mirror.

    :param mirror: The mirror.
    :param settings: The values of its options.
    """

    mirror: Mirror
    settings: Settings

    def __call__(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterator[Constraint]:
        """Yield the constraints that Nova adds.

        :param request: The request, as a :class:`Request`.
        :param aggregates: An index of all aggregates.
        """
        # Mirrors do not run inside Nova, so this is always a Request.
        asked = cast('Request', request)
        if self.mirror.host_filter and asked.host_forced:
            return
        if asked.nova_release >= self.mirror.since:
            yield from self.mirror.rule(asked, aggregates, self.settings)
