# SPDX-License-Identifier: Apache-2.0
"""Resolves and checks names that an operator gives."""

from collections.abc import Collection, Iterable

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.locking_traits import why_not_put


def aggregate(
    aggregates: Iterable[Aggregate], name: str, place: str
) -> Aggregate:
    """Return the aggregate with a uuid, a numeric id or a name.

    :param name: Its uuid, numeric id or name, in this order of precedence.
    """
    candidates = tuple(aggregates)
    matches = [a for a in candidates if name in (a.uuid, str(a.id))] or [
        a for a in candidates if a.name == name
    ]
    if not matches:
        names = [a.name for a in candidates]
        raise errors.NotFound('aggregate', name, place, names)
    if len(matches) > 1:
        raise errors.NotUnique('aggregate', name, [a.uuid for a in matches])
    return matches[0]


def check_lock(trait: str, existing: Collection[str]) -> None:
    """Check that a trait can lock an aggregate."""
    reason = why_not_put(trait, existing)
    if reason:
        raise errors.InvalidRequest(
            f'Trait {trait} cannot lock an aggregate: {reason}.'
        )
