# SPDX-License-Identifier: Apache-2.0
"""The JSON documents of commands that say which hosts requests may use.

Those with repairs, findings or effects are apart: importing these takes long.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from isolate_aggregates_tools import documents, nova_candidates
from isolate_aggregates_tools.comparison import Deviation
from isolate_aggregates_tools.documents import Count, Names, one_of

Rejected = Annotated[str | None, 'Why Placement would reject the query.']
NotKnown = Annotated[Names, 'What Nova knows and the command does not.']
Limited = Annotated[
    nova_candidates.Limited | None, 'Null if Nova asks for all candidates.'
]
Mixed = Annotated[Names, 'The hosts that Nova may give candidates of others.']


@dataclass(frozen=True, kw_only=True)
class LeftToHostFilter:
    """A conclusion that does not fit into the query."""

    filter: str
    kind: str
    reason: str
    host_filter: str


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
    rejected: Rejected
    not_known: NotKnown
    constraints: tuple[Reason, ...]
    placement_differs: Deviation | None
    shortened: Shortened | None
    left_to_host_filters: tuple[LeftToHostFilter, ...]
    limited: Limited
    nova_mixes_hosts: Mixed
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
    rejected: Rejected
    not_known: NotKnown
    placement_differs: Deviation | None
    limited: Limited
    nova_mixes_hosts: Mixed
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
    no_host: Annotated[
        str | None,
        'Why no host could ever take the flavor; null if one could.',
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


CANDIDATES = documents.schema(
    Candidates, 'The hosts for a server, and the query to Placement'
)
CAPACITY = documents.schema(Capacity, 'How many more servers of a flavor fit')
MATRIX = documents.schema(
    Matrix, 'Which flavors and images may use which hosts'
)
