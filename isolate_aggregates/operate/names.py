# SPDX-License-Identifier: Apache-2.0
"""Resolves and checks names that an operator gives."""

from collections.abc import Collection, Iterable

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, tags
from isolate_aggregates.operate.sync.plan import why_not_put


def aggregate(
    aggregates: Iterable[Aggregate], name: str, place: str
) -> Aggregate:
    """Return the aggregate with a uuid, a numeric id or a name.

    :param name: Its uuid, numeric id or name, in this order of precedence.
    :param place: The source of the aggregates, for messages.
    :raises NotFound: if there is no such aggregate.
    :raises NotUnique: if several aggregates have the name.
    """
    known = tuple(aggregates)
    found = [a for a in known if name in (a.uuid, str(a.id))] or [
        a for a in known if a.name == name
    ]
    if not found:
        names = [a.name for a in known]
        raise exception.NotFound('aggregate', name, place, names)
    if len(found) > 1:
        raise exception.NotUnique('aggregate', name, [a.uuid for a in found])
    return found[0]


def check_trait(trait: str) -> None:
    """Check the name of a trait.

    :raises InvalidRequest: if the name is invalid.
    """
    if not tags.is_trait_name(trait):
        raise exception.InvalidRequest(
            f'{trait!r} cannot be the name of a trait, which has only upper '
            'case letters, digits and _, such as CUSTOM_LICENSED_WINDOWS.'
        )


def check_lock(trait: str, known: Collection[str]) -> None:
    """Check that a trait can lock an aggregate.

    :raises InvalidRequest: if it cannot.
    """
    reason = why_not_put(trait, known)
    if reason:
        raise exception.InvalidRequest(
            f'Trait {trait} cannot lock an aggregate: {reason}.'
        )
