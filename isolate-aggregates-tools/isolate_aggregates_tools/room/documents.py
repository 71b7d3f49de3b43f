# SPDX-License-Identifier: Apache-2.0
"""The JSON documents of ``relocation create`` and ``survival list``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from isolate_aggregates_tools import documents
from isolate_aggregates_tools.documents import Count
from isolate_aggregates_tools.effect.documents import Effect
from isolate_aggregates_tools.room.survival import Margin


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server."""

    id: str
    name: str
    project: str
    flavor: str | None


@dataclass(frozen=True, kw_only=True)
class Stranded(Server):
    """A server that has nowhere to go."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Case:
    """Hosts that fail together."""

    hosts: tuple[str, ...]
    reserved_hosts: Annotated[
        tuple[str, ...], 'The reserved hosts of instance-ha that take part.'
    ]
    servers: Annotated[Count, 'The number of servers on the hosts.']
    without_host: tuple[Stranded, ...]
    at_least: Annotated[
        Count,
        'How many have nowhere to go, however the others are placed.',
    ]


@dataclass(frozen=True, kw_only=True)
class LockSurvival:
    """The servers behind a lock."""

    lock: str
    without_host: Count


@dataclass(frozen=True, kw_only=True)
class Survival:
    """What survives if hosts fail."""

    failures: Annotated[Count, 'How many hosts fail at the same time.']
    survived: Annotated[
        bool, 'Whether every server has somewhere to go in each case.'
    ]
    examined: Annotated[Count, 'The number of cases that were examined.']
    combinations: Annotated[Count, 'The number of cases that there are.']
    cases: Annotated[
        tuple[Case, ...],
        'The failures that leave servers without a host, the worst first.',
    ]
    locks: Annotated[
        tuple[LockSurvival, ...],
        'The most servers behind each lock that have nowhere to go.',
    ]
    room: Annotated[
        tuple[Margin, ...],
        'The room for the servers of each flavor behind each lock, in the '
        'worst case of each.',
    ]
    not_evaluated: Annotated[
        Count, 'The number of servers in cells that are down.'
    ]
    not_known: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Move:
    """A migration."""

    round: Annotated[int, {'minimum': 1}]
    id: str
    name: str
    project: str
    flavor: str | None
    source: str
    target: str
    live: bool


@dataclass(frozen=True, kw_only=True)
class Left(Server):
    """A server that does not move."""

    host: str | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class Room:
    """The room for new servers."""

    wanted: Count
    missing: Count


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A plan of migrations."""

    moves: tuple[Move, ...]
    at_least: Annotated[
        Count, 'No plan that leaves no more servers has fewer moves.'
    ]
    left: tuple[Left, ...]
    emptied: tuple[str, ...]
    room: Room | None


@dataclass(frozen=True, kw_only=True)
class _Hosts:
    hosts: tuple[str, ...]
    again: Annotated[
        Count,
        'How many of the moves are of servers that an earlier batch has '
        'moved.',
    ]


@dataclass(frozen=True, kw_only=True)
class Batch(Plan, _Hosts):
    """Hosts that are empty together."""


@dataclass(frozen=True, kw_only=True)
class Relocation:
    """What ``relocation create`` does."""

    plan: Annotated[Plan | None, 'Null with --rolling.']
    batches: Annotated[
        tuple[Batch, ...],
        'With --rolling: the hosts that are empty together, in their order.',
    ]
    left: Annotated[
        tuple[Left, ...], 'The servers that should move, and do not.'
    ]
    results: Annotated[
        Mapping[str, str],
        'What became of each server that was to be moved, by its id.',
    ]
    effect: Annotated[
        Effect | None, 'What the moves do; null if it was not computed.'
    ]
    not_known: tuple[str, ...]


SURVIVAL = documents.schema(Survival, 'What survives if hosts fail')
RELOCATION = documents.schema(Relocation, 'A plan of migrations')
