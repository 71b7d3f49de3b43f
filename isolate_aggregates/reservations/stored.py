# SPDX-License-Identifier: Apache-2.0
"""How values stand in the descriptions of flavors.

A codec writes a value of one kind as JSON, and reads it again. Reading raises
ValueError or TypeError if it is none of that kind.
"""

from collections.abc import Callable, Mapping
import datetime
from typing import Any

Codec = tuple[Callable[[Any], Any], Callable[[Any], Any]]


def write_time(time: datetime.datetime) -> str:
    return time.astimezone(datetime.UTC).isoformat()


def read_time(text: str) -> datetime.datetime:
    time = datetime.datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f'{text} has no time zone')
    return time.astimezone(datetime.UTC)


def read_number(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f'{value!r} is not a number of slots')
    return value


def _read_affinity(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise ValueError(f'{value!r} is not an affinity')


def optional(codec: Codec) -> Codec:
    """Return the codec of a value that may be None."""
    write, read = codec
    return (
        lambda value: None if value is None else write(value),
        lambda value: None if value is None else read(value),
    )


TEXT: Codec = (str, str)
TEXTS: Codec = (list, lambda texts: tuple(map(str, texts)))
TEXT_BY_KEY: Codec = (
    lambda values: dict(sorted(values.items())),
    lambda values: {str(key): str(text) for key, text in values.items()},
)
NUMBER: Codec = (int, read_number)
NUMBER_BY_KEY: Codec = (
    dict,
    lambda values: {
        str(key): read_number(number) for key, number in values.items()
    },
)
FLAG: Codec = (bool, lambda value: value is True)
AFFINITY: Codec = (_read_affinity, _read_affinity)
TIME: Codec = (write_time, read_time)
SECONDS: Codec = (
    lambda length: int(length.total_seconds()),
    lambda seconds: datetime.timedelta(seconds=int(seconds)),
)


def write(values: object, fields: Mapping[str, Codec]) -> dict[str, Any]:
    """Return attributes of an object as a JSON document."""
    return {
        key: codec[0](getattr(values, key)) for key, codec in fields.items()
    }


def read(
    document: Mapping[str, Any], fields: Mapping[str, Codec]
) -> dict[str, Any]:
    """Return the values in a JSON document.

    :raises LookupError: if one is missing.
    """
    return {key: codec[1](document[key]) for key, codec in fields.items()}
