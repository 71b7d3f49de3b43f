# SPDX-License-Identifier: Apache-2.0
"""The JSON documents of commands that answer questions about a cloud."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from isolate_aggregates.tools import documents
from isolate_aggregates.tools.advice.openings import Opening
from isolate_aggregates.tools.audit.finding import About
from isolate_aggregates.tools.comparison import Deviation
from isolate_aggregates.tools.documents import Count, Names, one_of
from isolate_aggregates.tools.effect.documents import Effect
from isolate_aggregates.tools.locks.documents import Usage
from isolate_aggregates.tools.operate.sync.projects import TagChange
from isolate_aggregates.tools.operate.sync.target import ProviderChange
from isolate_aggregates.tools.taken import Limited

_Rejected = Annotated[str | None, 'Why Placement would reject the query.']
_NotKnown = Annotated[Names, 'What Nova knows and the command does not.']
_Limited = Annotated[Limited | None, 'Null if Nova asks for all candidates.']
_Mixed = Annotated[Names, 'The hosts that Nova may give candidates of others.']


@dataclass(frozen=True, kw_only=True)
class LeftToHostFilter:
    """A conclusion that does not fit into the query."""

    filter: str
    kind: str
    reason: str
    host_filter: str


# explain


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
    rejected: _Rejected
    not_known: _NotKnown
    placement_differs: Deviation | None
    limited: _Limited
    nova_mixes_hosts: _Mixed
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
    verdict: Annotated[str, one_of('candidate', 'excluded')]
    reasons: Names


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why a server may use hosts, or not."""

    summary: ExplainSummary
    hosts: tuple[ExplainedHost, ...]


# candidates


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A host that may be used."""

    name: str
    uuid: str
    free: Annotated[Mapping[str, int], 'By resource class.']
    candidates: Annotated[Count, 'Its allocation candidates.']


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """A host that Nova drops after Placement."""

    name: str
    reasons: Names


@dataclass(frozen=True, kw_only=True)
class Reason:
    """A constraint of a filter."""

    filter: str | None
    kind: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Rollup:
    """An aggregate that stands for others in the query."""

    name: str
    uuid: str
    aggregates: Count


@dataclass(frozen=True, kw_only=True)
class Shortened:
    """How the query was shortened."""

    rollups: tuple[Rollup, ...]


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The hosts for a server, and the query to Placement."""

    hosts: tuple[Candidate, ...]
    dropped: tuple[Dropped, ...]
    rejected: _Rejected
    not_known: _NotKnown
    constraints: tuple[Reason, ...]
    placement_differs: Deviation | None
    shortened: Shortened | None
    left_to_host_filters: tuple[LeftToHostFilter, ...]
    limited: _Limited
    nova_mixes_hosts: _Mixed
    answered_by: Annotated[str, one_of('placement', 'simulator')]
    query: str
    microversion: str
    fallback_query: Annotated[
        str | None, 'What Nova asks if the query has no candidates.'
    ]


# capacity


@dataclass(frozen=True, kw_only=True)
class Fit:
    """How many more servers fit on a host."""

    name: str
    uuid: str
    servers: Count
    depends_on_candidates: Annotated[
        bool,
        'Whether Nova may take other candidates, so that more or fewer fit.',
    ]


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """How many more servers of a flavor fit."""

    total: Count
    rejected: _Rejected
    not_known: _NotKnown
    placement_differs: Deviation | None
    limited: _Limited
    nova_mixes_hosts: _Mixed
    hosts: tuple[Fit, ...]


# matrix


@dataclass(frozen=True, kw_only=True)
class Group:
    """Hosts that all requests may use alike."""

    hosts: Names


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of the matrix."""

    name: str
    hosts: Names
    groups: Annotated[tuple[int, ...], 'The places of their groups.']


@dataclass(frozen=True, kw_only=True)
class Objection(Reason):
    """Why a request may not use some groups of hosts."""

    groups: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A flavor, alone or with an image."""

    flavor: str
    projects: Annotated[
        Names | None,
        'The ids of the projects that may use the flavor; null for all.',
    ]
    image: str | None
    verdicts: Annotated[
        tuple[str, ...], 'For each column: whether it may use its hosts.'
    ]
    reasons: tuple[Objection, ...]
    not_enforced: Annotated[
        tuple[Objection, ...],
        'What would exclude hosts if Placement had the members of aggregates '
        'that Nova has.',
    ]


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Which flavors and images may use which hosts."""

    by: Annotated[str, one_of('host', 'aggregate', 'lock')]
    groups: tuple[Group, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


# audit


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The number of findings of each severity."""

    info: Count
    warning: Count
    error: Count


@dataclass(frozen=True, kw_only=True)
class Repair(Mending):
    """A way to repair what was found."""

    safe: Annotated[bool, 'Whether --fix makes it.']


@dataclass(frozen=True, kw_only=True)
class _Text:
    kind: Annotated[str, 'Stable; the page Findings explains each.']
    severity: Annotated[str, one_of('info', 'warning', 'error')]
    subject: str
    problem: str
    consequence: str


@dataclass(frozen=True, kw_only=True)
class Finding(About, _Text):
    """A problem, or a check that could not be made."""

    repairs: tuple[Repair, ...]


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The problems with the isolation."""

    summary: Counts
    findings: tuple[Finding, ...]
    effect: Annotated[
        Effect | None, 'What the safe repairs do; null if not computed.'
    ]


# list


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """A host aggregate."""

    name: str
    uuid: str


@dataclass(frozen=True, kw_only=True)
class Lock:
    """A lock, and what is behind it."""

    name: str
    aggregates: tuple[Aggregate, ...]
    hosts: Names
    unusable_hosts: Annotated[Names, 'Those that are down or disabled.']
    capacity: Mapping[str, Usage]
    without_host: Annotated[
        int | None,
        'How many servers have nowhere to go in the worst case; null without '
        '--servers.',
    ]


@dataclass(frozen=True, kw_only=True)
class Locks:
    """All locks."""

    locks: tuple[Lock, ...]


# sync


@dataclass(frozen=True, kw_only=True)
class Sync:
    """What sync changes, or would change."""

    applied: Annotated[bool, 'Whether the changes were made.']
    changes: Annotated[
        tuple[ProviderChange, ...],
        'Changes of resource providers; the host is empty if the provider is '
        'no compute node.',
    ]
    tags: Annotated[tuple[TagChange, ...], 'Changes of aggregates.']
    problems: Names
    failures: Annotated[Names, 'Changes that could not be made.']
    effect: Annotated[
        Effect | None, 'What the changes do; null if it was not computed.'
    ]


# snapshot diff


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A difference between two cloud files."""

    kind: str
    name: str
    what: Annotated[str, 'The part that differs; empty for the whole object.']
    before: Annotated[Any, 'Null if it did not exist.']
    after: Annotated[Any, 'Null if it no longer exists.']


@dataclass(frozen=True, kw_only=True)
class Diff:
    """The differences between two cloud files, and their effect."""

    changes: tuple[Changed, ...]
    effect: Effect


EXPLAIN = documents.schema(Explanation, 'Why a server may use hosts, or not')
CANDIDATES = documents.schema(
    Candidates, 'The hosts for a server, and the query to Placement'
)
CAPACITY = documents.schema(Capacity, 'How many more servers of a flavor fit')
MATRIX = documents.schema(
    Matrix, 'Which flavors and images may use which hosts'
)
AUDIT = documents.schema(Audit, 'The problems with the isolation')
SYNC = documents.schema(Sync, 'What sync changes')
DIFF = documents.schema(Diff, 'What differs between two cloud files')
LIST = documents.schema(Locks, 'All locks, and what is behind them')
