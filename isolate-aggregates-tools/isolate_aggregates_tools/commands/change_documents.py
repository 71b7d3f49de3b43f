# SPDX-License-Identifier: Apache-2.0
"""The JSON documents of commands that change a cloud."""

from dataclasses import dataclass
from typing import Annotated

from isolate_aggregates_tools import documents
from isolate_aggregates_tools.cli.preview import PreviewedEffect
from isolate_aggregates_tools.documents import Aggregate, Names, one_of


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of the cloud."""

    change: str
    result: Annotated[
        str,
        one_of('done', 'would be done', 'failed', 'not done', 'unknown'),
        'Unknown if it was interrupted before the answer came.',
    ]


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The changes that a command makes, or would make."""

    changes: tuple[Change, ...]
    notes: Names
    left: Annotated[Names, 'What is left to do.']
    problems: Annotated[Names, 'What cannot be done, and why.']
    effect: PreviewedEffect


@dataclass(frozen=True, kw_only=True)
class NewLock:
    """The lock that an aggregate gets."""

    aggregate: Aggregate
    hosts: Names
    traits: Names
    domains: Names


@dataclass(frozen=True, kw_only=True)
class _Locked:
    lock: NewLock | None


@dataclass(frozen=True, kw_only=True)
class LockChanges(Changes, _Locked):
    """The changes that lock an aggregate."""


CHANGES = documents.schema(Changes, 'The changes that a command makes')
LOCK = documents.schema(LockChanges, 'The changes that lock an aggregate')
