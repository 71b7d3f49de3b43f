# SPDX-License-Identifier: Apache-2.0
"""Names and numbers in English sentences."""

from collections.abc import Iterable


def listed(names: Iterable[str], most: int | None = 5) -> str:
    """Return sorted names: ``a, b and 7 more``.

    :param names: The names, at least one.
    :param most: How many to give before counting the rest; None for all.
    """
    ordered = sorted(names)
    shown = ', '.join(ordered[:most])
    more = 0 if most is None else len(ordered) - most
    return f'{shown} and {more} more' if more > 0 else shown


def named(noun: str, names: Iterable[str], most: int | None = 5) -> str:
    """Return sorted names after what they are: ``hosts a, b and 7 more``.

    :param noun: What each is, in the singular.
    :param names: The names, at least one.
    :param most: How many to give before counting the rest; None for all.
    """
    found = tuple(names)
    return f'{plural(len(found), noun)} {listed(found, most)}'


def plural(number: int, one: str, many: str | None = None) -> str:
    """Return the form of a word that goes with a number.

    :param one: The form that goes with 1: ``host``, ``has``.
    :param many: The form that goes with all other numbers; None for the first
        one with an s.
    """
    return one if number == 1 else many or f'{one}s'


def counted(number: int, noun: str) -> str:
    """Return a number of things: ``1 host``, ``12 hosts``."""
    return f'{number} {plural(number, noun)}'
