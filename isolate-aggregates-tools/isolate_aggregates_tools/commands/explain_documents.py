# SPDX-License-Identifier: Apache-2.0
"""The JSON document of ``explain``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from isolate_aggregates_tools import documents
from isolate_aggregates_tools.advice.admitted import Opening
from isolate_aggregates_tools.commands.request_documents import (
    LeftToHostFilter,
    Limited,
    Mixed,
    NotKnown,
    Rejected,
)
from isolate_aggregates_tools.comparison import Deviation
from isolate_aggregates_tools.documents import Count, Names, one_of

Verdict = Annotated[str, one_of('candidate', 'excluded')]


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """A constraint, and how many hosts it excludes."""

    constraint: str
    kind: str
    excludes: Count
    only_it_excludes: Count


@dataclass(frozen=True, kw_only=True)
class Together:
    """Constraints that exclude hosts only together."""

    constraints: Names
    kinds: Names
    excludes: Count
    only_they_exclude: Count


@dataclass(frozen=True, kw_only=True)
class Mending:
    """A way to give the request a host."""

    command: Annotated[str | None, 'For a shell; null if there is none.']
    text: Annotated[str, 'What to do, or whom the command lets in.']
    opens: Annotated[
        tuple[Opening, ...],
        'Whom the command lets in: every combination of the lists gains all '
        'of the hosts.',
    ]


@dataclass(frozen=True, kw_only=True)
class ExplainSummary:
    """The summary of an explanation."""

    hosts: Count
    candidates: Count
    rejected: Rejected
    not_known: NotKnown
    placement_differs: Deviation | None
    limited: Limited
    nova_mixes_hosts: Mixed
    left_to_host_filters: tuple[LeftToHostFilter, ...]
    constraints: tuple[Constraint, ...]
    together: tuple[Together, ...]
    drop_any_of: Annotated[
        tuple[Names, ...],
        'Sets of constraints; without all those of one, a host would fit.',
    ]
    repairs: tuple[Mending, ...]


@dataclass(frozen=True, kw_only=True)
class ExplainedHost:
    """Whether a host may be used, and why not."""

    name: str
    node: str
    uuid: str
    verdict: Verdict
    reasons: Names


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why a server may use hosts, or not."""

    summary: ExplainSummary
    hosts: tuple[ExplainedHost, ...]


@dataclass(frozen=True, kw_only=True)
class Past:
    """What was decided on a past request, and what is different now."""

    records: Annotated[
        tuple[Mapping[str, Any], ...],
        'The records of the request, as nova-scheduler has logged them; the '
        'last one is compared.',
    ]
    differences: Annotated[Names, 'What is different now, as sentences.']
    not_asked: Annotated[
        str | None, 'Why the request cannot be asked again now.'
    ]
    not_restored: Annotated[
        Names, 'What of the request the record does not tell.'
    ]
    now: Annotated[
        Explanation | None,
        'The answer of today, as without --request; null if not asked.',
    ]
    not_read: Annotated[
        Names,
        'What seems to be records and could not be read, as sentences.',
    ]


EXPLAIN = documents.schema(
    Explanation | Past, 'Why a server may use hosts, or not'
)
