# SPDX-License-Identifier: Apache-2.0
"""Values as the descriptions of flavors have them."""

import datetime


def written(time: datetime.datetime) -> str:
    """Write a point in time."""
    return time.astimezone(datetime.UTC).isoformat()


def read(text: str) -> datetime.datetime:
    """Read a point in time.

    :raises ValueError: if it is none, or has no time zone.
    """
    time = datetime.datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f'{text} has no time zone')
    return time.astimezone(datetime.UTC)


def amount(value: object) -> int:
    """Read a number of slots.

    :raises ValueError: if it is none.
    """
    if type(value) is not int or value < 0:
        raise ValueError(f'{value!r} is not a number of slots')
    return value
