# SPDX-License-Identifier: Apache-2.0
"""The JSON document of ``audit``."""

from dataclasses import dataclass
from typing import Annotated

from isolate_aggregates_tools import documents
from isolate_aggregates_tools.audit.finding import About
from isolate_aggregates_tools.commands.explain_documents import Mending
from isolate_aggregates_tools.documents import Count, one_of
from isolate_aggregates_tools.effect.documents import Effect


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


AUDIT = documents.schema(Audit, 'The problems with the isolation')
