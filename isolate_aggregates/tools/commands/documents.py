# SPDX-License-Identifier: Apache-2.0
"""The JSON documents of commands that answer questions about a cloud."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from isolate_aggregates.tools import documents
from isolate_aggregates.tools.advice.openings import Opening
from isolate_aggregates.tools.audit.finding import About
from isolate_aggregates.tools.cli.documents import Aggregate, PreviewedEffect
from isolate_aggregates.tools.commands.request_documents import (
    LeftToHostFilter,
    Limited,
    Mixed,
    NotKnown,
    Rejected,
)
from isolate_aggregates.tools.comparison import Deviation
from isolate_aggregates.tools.documents import Count, Names, one_of
from isolate_aggregates.tools.effect.documents import Effect
from isolate_aggregates.tools.locks.documents import Usage
from isolate_aggregates.tools.mirrored.chain import InstalledFilter
from isolate_aggregates.tools.operate.sync.projects import TagChange
from isolate_aggregates.tools.operate.sync.target import ProviderChange

Verdict = Annotated[str, one_of('candidate', 'excluded')]

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


# check


@dataclass(frozen=True, kw_only=True)
class CheckedHost:
    """Whether a server may use a host, and why not."""

    host: str
    verdict: Verdict
    reason: Annotated[str | None, 'Null for a candidate.']


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
    effect: PreviewedEffect


CHECK = documents.schema(CheckedHost, 'Whether a server may use a host')
FILTERS = documents.schema(
    tuple[InstalledFilter, ...], 'The installed request filters'
)
EXPLAIN = documents.schema(Explanation, 'Why a server may use hosts, or not')
AUDIT = documents.schema(Audit, 'The problems with the isolation')
SYNC = documents.schema(Sync, 'What sync changes')
LIST = documents.schema(Locks, 'All locks, and what is behind them')
