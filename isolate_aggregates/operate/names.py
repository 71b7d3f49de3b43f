# SPDX-License-Identifier: Apache-2.0
"""What the names that an operator gives stand for."""

from collections.abc import Collection, Iterable

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, tags
from isolate_aggregates.operate.sync.plan import why_not_put


def aggregate(
    aggregates: Iterable[Aggregate], name: str, place: str
) -> Aggregate:
    """Return the aggregate of a uuid, a number or a name.

    :param name: Its uuid, its number or its name; the name goes last.
    :param place: Where they come from, for messages.
    :raises NotFound: if there is none.
    :raises NotUnique: if several have the name.
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
    """Refuse an invalid trait name.

    :raises InvalidRequest: if no trait can have the name.
    """
    if not tags.is_trait_name(trait):
        raise exception.InvalidRequest(
            f'{trait!r} cannot be the name of a trait, which has only upper '
            'case letters, digits and _, such as CUSTOM_LICENSED_WINDOWS.'
        )


def check_lock(trait: str, known: Collection[str]) -> None:
    """Refuse a trait that cannot lock an aggregate.

    :raises InvalidRequest: if it cannot.
    """
    reason = why_not_put(trait, known)
    if reason:
        raise exception.InvalidRequest(
            f'Trait {trait} cannot lock an aggregate: {reason}.'
        )
