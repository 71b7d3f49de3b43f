# SPDX-License-Identifier: Apache-2.0
"""The JSON document of ``test``."""

from dataclasses import dataclass
from typing import Annotated

from isolate_aggregates_tools import documents
from isolate_aggregates_tools.documents import (
    SHA256,
    Count,
    Names,
    Time,
    one_of,
)
from isolate_aggregates_tools.effect.documents import Refused


@dataclass(frozen=True, kw_only=True)
class Filter:
    """A request filter that decided."""

    name: str
    origin: str


@dataclass(frozen=True, kw_only=True)
class Cloud:
    """The cloud that was tested."""

    source: str
    sha256: SHA256


@dataclass(frozen=True, kw_only=True)
class File:
    """A file that was read."""

    name: str
    sha256: SHA256


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Where a cloud differs from an expectation.

    The reasons are in the words of ``explain``.
    """

    problem: str
    extra_hosts: Annotated[
        frozenset[str], 'All hosts that the servers may use, but should not'
    ]
    missing_hosts: Annotated[
        frozenset[str],
        'All hosts that the servers may not use, of those that they should; '
        'empty for room',
    ]
    reasons: Names


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """An expectation, and how the cloud differs from it."""

    name: str
    line: Annotated[int, {'minimum': 1}]
    result: Annotated[str, one_of('passed', 'failed')]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A mutation that no expectation notices."""

    kind: Annotated[str, one_of('tag', 'extra spec', 'property', 'trait')]
    subject: str
    key: str
    replacement: Annotated[
        str | None, 'What takes its place; null if it is removed'
    ]
    effect: Annotated[str, 'An answer that it changes']


@dataclass(frozen=True, kw_only=True)
class Mutations:
    """What the expectations notice."""

    noticed: Count
    without_effect: Count
    unnoticed: tuple[Mutation, ...]


@dataclass(frozen=True, kw_only=True)
class Test:
    """Whether a cloud is as expected."""

    time: Annotated[Time, 'When the cloud was tested, in UTC']
    version: Annotated[str, 'The version of isolate-aggregates']
    filters: Annotated[
        tuple[Filter, ...],
        'The request filters that decided, in their order, with the package '
        'that each comes from',
    ]
    cloud: Annotated[
        Cloud,
        'Where the cloud was read from, and the digest of all that decides in '
        'it: with its servers only if an expectation is about them, with the '
        'options of nova-scheduler, after the changes',
    ]
    files: Annotated[
        tuple[File, ...],
        'The files that were read, with the digests that sha256sum prints',
    ]
    changes: Annotated[
        Names,
        'The commands of the changes that were made to the copy of the cloud',
    ]
    passed: Count
    failed: Count
    expectations: Annotated[
        tuple[Expectation, ...], 'In the order of their file'
    ]
    not_known: Annotated[
        Names,
        'What Nova may add to a request, and what is not known of a change',
    ]
    refused: Annotated[
        tuple[Refused, ...],
        'The changes that Nova refuses, which are left out',
    ]
    unread: Annotated[
        Names,
        'What was not read of the files of other tools, or left out; the '
        'result does not hold for it',
    ]
    mutations: Annotated[Mutations | None, 'Null without --mutate']


TEST = documents.schema(Test, 'Whether a cloud is as expected')
