# SPDX-License-Identifier: Apache-2.0
"""The JSON document of a ledger; times are in UTC."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from isolate_aggregates_tools import documents
from isolate_aggregates_tools.documents import SHA256, Names, Time
from isolate_aggregates_tools.ledger.days import (
    HostDay,
    HostSize,
    Number,
    Peaks,
)
from isolate_aggregates_tools.ledger.ledger import Subject


@dataclass(frozen=True, kw_only=True)
class Stay:
    """The time of a server on a host, clipped to the period."""

    host: str
    server: Annotated[str, 'The id of the server.']
    project: Annotated[str, 'The id of the project.']
    flavor: Annotated[str | None, 'The name of its flavor; null if unknown.']
    vcpus: Number
    has_key: Annotated[
        bool | None,
        'In the ledger of a lock: whether the server had the key; null if '
        'unknown. Otherwise null.',
    ]
    from_: Time
    from_by: Annotated[
        str | None,
        'If the start is known only between two times, the later one; '
        'otherwise null.',
    ]
    to: Annotated[
        str | None,
        'The end; null if it was still there at the end of the period.',
    ]
    to_from: Annotated[
        str | None,
        'If the end is known only between two times, the earlier one; '
        'otherwise null.',
    ]


@dataclass(frozen=True, kw_only=True)
class Gap:
    """A time without a record of locks and memberships."""

    start: Time
    end: Time


@dataclass(frozen=True, kw_only=True)
class File:
    """The ledger file."""

    names: Annotated[Names, 'Its files, the oldest first.']
    lines: Annotated[int, 'The number of valid lines.']
    first: SHA256
    last: SHA256


@dataclass(frozen=True, kw_only=True)
class Digests:
    """The digests of a ledger."""

    days: SHA256
    stays: SHA256


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """Where servers ran in a period and where they could."""

    subject: Annotated[Subject, 'Whose ledger it is.']
    since: Time
    until: Time
    version: Annotated[str, 'The version of isolate-aggregates.']
    peaks: Annotated[
        Peaks,
        'The most at one time: servers, their VCPUs, hosts with at least one '
        'of them, and the sockets and cores of these hosts.',
    ]
    hosts: Annotated[
        Mapping[str, HostSize], 'The sizes of the hosts in "days", by name.'
    ]
    days: Annotated[
        tuple[HostDay, ...],
        'The days on which servers ran on a host, or could.',
    ]
    stays: Annotated[
        tuple[Stay, ...],
        'The times of servers on hosts, clipped to the period.',
    ]
    gaps: Annotated[
        tuple[Gap, ...],
        'The times without a record of locks and memberships.',
    ]
    not_known: Annotated[
        Names,
        'What is not known, and what is wrong with the ledger file, one '
        'sentence each.',
    ]
    file: Annotated[File | None, 'The ledger file; null if none was read.']
    digests: Annotated[
        Digests,
        'The SHA-256 of the entries of "days" and "stays": each as JSON with '
        'sorted keys and without spaces, followed by a line feed.',
    ]


LEDGER = documents.schema(
    Ledger, 'Where servers ran in a period, and where they could'
)
