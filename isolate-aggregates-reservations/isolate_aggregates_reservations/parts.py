# SPDX-License-Identifier: Apache-2.0
"""Tries each part of some work, so that one that fails stops no other.

Whatever is done to several hosts, projects, servers, providers or records is
done by :func:`tried`. It returns what failed, and the caller names it.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from isolate_aggregates import exception

_T = TypeVar('_T')


def tried(
    parts: Iterable[_T], act: Callable[[_T], object]
) -> dict[_T, exception.IsolateAggregatesError]:
    """Do something to each part.

    :returns: What failed, with its error.
    :raises ServiceUnreachable: at once, as every other part would wait for the
        same service.
    """
    failed = {}
    for part in parts:
        try:
            act(part)
        except exception.ServiceUnreachable:
            raise
        except exception.IsolateAggregatesError as exc:
            exception.without_frames(exc)
            failed[part] = exc
    return failed


def clause(error: exception.IsolateAggregatesError) -> str:
    """Return an error as a clause of a longer sentence."""
    return str(error).rstrip('.')
