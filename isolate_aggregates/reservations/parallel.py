# SPDX-License-Identifier: Apache-2.0
"""Parallel requests: enough to hide latency, without overloading a service."""

from collections.abc import Callable, Iterable
from concurrent import futures
from typing import TypeVar

_T = TypeVar('_T')
_R = TypeVar('_R')

_PARALLEL = 8


def each(function: Callable[[_T], _R], items: Iterable[_T]) -> dict[_T, _R]:
    """Return the result for each item."""
    items = list(items)
    with futures.ThreadPoolExecutor(_PARALLEL) as pool:
        return dict(zip(items, pool.map(function, items), strict=True))
