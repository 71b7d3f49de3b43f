# SPDX-License-Identifier: Apache-2.0
"""The JSON documents about one lock, aggregate or host."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from isolate_aggregates_tools import documents
from isolate_aggregates_tools.documents import Names, one_of
from isolate_aggregates_tools.locks.usage import Usage

_Keys = Annotated[
    Names | None,
    'Those that open all of the locks; null without locks, or if others than '
    'traits open them.',
]


@dataclass(frozen=True, kw_only=True)
class LockDetails:
    """Everything about a lock."""

    kind: Annotated[str, one_of('lock')] = 'lock'
    name: str
    aggregates: Names
    hosts: Names
    unusable_hosts: Annotated[Names, 'Those that are down or disabled.']
    capacity: Mapping[str, Usage]
    flavors: _Keys
    images: _Keys
    problems: Names


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """Everything about an aggregate."""

    kind: Annotated[str, one_of('aggregate')] = 'aggregate'
    name: str
    uuid: str
    id: int | None
    availability_zone: str | None
    metadata: Mapping[str, str]
    locks: Names
    hosts: Names
    unusable_hosts: Annotated[Names, 'Those that are down or disabled.']
    capacity: Mapping[str, Usage]
    flavors: _Keys
    images: _Keys
    sent_flavors: Annotated[
        Names | None,
        'Those that metadata sends to it; null if it sends none anywhere.',
    ]
    problems: Names


@dataclass(frozen=True, kw_only=True)
class Host:
    """Everything about a host."""

    kind: Annotated[str, one_of('host')] = 'host'
    name: str
    nodes: Names
    aggregates: Names
    locks: Names
    traits: Names
    traits_below: Annotated[
        Mapping[str, Names], 'Those of providers below, by their names.'
    ]
    marked_traits: Annotated[Names, 'Those that sync has added.']
    capacity: Mapping[str, Usage]
    flavors: _Keys
    images: _Keys
    problems: Names


SHOW = documents.schema(
    LockDetails | Aggregate | Host,
    'Everything about a lock, an aggregate or a host',
)
