# SPDX-License-Identifier: Apache-2.0
"""The JSON documents of commands that read records of decisions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from isolate_aggregates_tools import documents
from isolate_aggregates_tools.decisions.sums import KINDS
from isolate_aggregates_tools.documents import Count, Names, Time, one_of

Kind = Annotated[str, one_of(*KINDS)]
NotRead = Annotated[
    Names, 'What seems to be records and could not be read, as sentences.'
]
Id = Annotated[str | None, 'Of a flavor: its id.']
Name = Annotated[
    str | None,
    'The cause, the lock as key=value, the id of the project, the name of the '
    'flavor or the day in UTC; null if the record does not have it.',
]


@dataclass(frozen=True, kw_only=True)
class Period:
    """The times of the first and the last record."""

    first: Time
    last: Time


@dataclass(frozen=True, kw_only=True)
class Sum:
    """How many requests got no host, of one kind and name."""

    by: Kind
    name: Name
    id: Id
    requests: Count


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """How many requests got no host, and why."""

    records: Count
    period: Period | None
    results: Annotated[Mapping[str, int], 'Records by result.']
    sums: tuple[Sum, ...]
    not_read: NotRead


@dataclass(frozen=True, kw_only=True)
class ShadowSum:
    """How many requests would have changed, of one kind and name."""

    by: Kind
    name: Name
    id: Id
    requests: Count
    no_host: Count
    refused: Count
    other_host: Count
    not_known: Count
    failed: Count


@dataclass(frozen=True, kw_only=True)
class WithoutHost:
    """A request that was placed and would have had no host."""

    at: Time
    request: str
    server: str | None
    project: str | None
    flavor: str
    effect: Annotated[str, one_of('no_host', 'refused')]
    locks: Annotated[Names, 'What would have closed the hosts that it got.']
    reason: Annotated[str | None, 'Why it would have been refused.']


@dataclass(frozen=True, kw_only=True)
class Shadow:
    """What filters in shadow would have changed."""

    records: Count
    period: Period | None
    effects: Annotated[Mapping[str, int], 'Records by effect.']
    sums: tuple[ShadowSum, ...]
    without_host: tuple[WithoutHost, ...]
    more_without_host: Annotated[Count, 'Further ones, which are not listed.']
    not_read: NotRead


DECISIONS = documents.schema(
    Decisions | Shadow, 'How many requests got no host, or would have changed'
)
