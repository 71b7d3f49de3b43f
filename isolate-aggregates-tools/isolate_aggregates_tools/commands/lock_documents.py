# SPDX-License-Identifier: Apache-2.0
"""The JSON document of ``lock list``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from isolate_aggregates_tools import documents
from isolate_aggregates_tools.documents import Aggregate, Names
from isolate_aggregates_tools.locks.usage import Usage


@dataclass(frozen=True, kw_only=True)
class ListedLock:
    """A lock, and what is behind it."""

    name: str
    aggregates: tuple[Aggregate, ...]
    hosts: Names
    unusable_hosts: Annotated[Names, 'Those that are down or disabled.']
    capacity: Mapping[str, Usage]


@dataclass(frozen=True, kw_only=True)
class Locks:
    """All locks."""

    locks: tuple[ListedLock, ...]


LIST = documents.schema(Locks, 'All locks, and what is behind them')
