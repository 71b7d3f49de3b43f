# SPDX-License-Identifier: Apache-2.0
"""The record of what a server was placed with.

Inside Nova, :mod:`isolate_aggregates.nova.placed` writes it. From microversion
2.100 on, clients read it as a scheduler hint of the server.
"""

from collections.abc import Mapping, Sequence
import json
from typing import Any, NamedTuple

from isolate_aggregates import exception
from isolate_aggregates.request.extra_specs import REQUIRED, TRAIT_PREFIX

# The beginning of the names of our hints.
PREFIX = 'isolate_aggregates:'


class Placed(NamedTuple):
    """What a server was placed with.

    :param image: The id of its image; empty for a volume without one.
    :param traits: The traits that the image required.
    :param properties: All properties of the image when Nova accepted it, None
        for a value that Nova had truncated; None if they were not read,
        because no filter needed them.
    """

    image: str
    traits: tuple[str, ...] = ()
    properties: Mapping[str, str | None] | None = None

    @property
    def all_properties(self) -> dict[str, str]:
        """The properties that are known, and the traits, as in Glance."""
        known = {
            name: value
            for name, value in (self.properties or {}).items()
            if value is not None and not name.startswith(TRAIT_PREFIX)
        }
        return known | {
            f'{TRAIT_PREFIX}{name}': REQUIRED for name in self.traits
        }

    def is_of(self, image: str | None) -> bool:
        """Return whether it is about the image that a server has.

        :param image: Its id; empty for a server that boots from a volume,
            whose image Nova does not tell.
        """
        return not (image and self.image) or image == self.image


def hint(server: str) -> str:
    """Return the name of the hint with the record of a server."""
    return f'{PREFIX}{server}'


def without_records(hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scheduler hints that a user has given."""
    return {
        name: value
        for name, value in hints.items()
        if not name.startswith(PREFIX)
    }


def split(
    server: str, hints: Mapping[str, Sequence[str]]
) -> tuple[dict[str, Sequence[str]], Placed | None]:
    """Return the hints that a user has given, and the record of a server.

    :param hints: All scheduler hints of the server.
    :returns: A record that cannot be read stays among the hints.
    """
    name = hint(server)
    if name not in hints:
        return dict(hints), None
    try:
        record = decode(server, hints[name])
    except exception.RequestRefused:
        return dict(hints), None
    return {key: hints[key] for key in hints if key != name}, record


def encode(placed: Placed) -> list[str]:
    """Return the value of the hint."""
    return [json.dumps(placed._asdict(), separators=(',', ':'))]


def decode(server: str, values: str | Sequence[str]) -> Placed:
    """Return the record of a server.

    :param values: The value of the hint.
    :raises RequestRefused: if it is not one that this version writes.
    """
    try:
        [text] = [values] if isinstance(values, str) else values
        fields: Any = json.loads(text)
        image, traits = fields.pop('image'), fields.pop('traits')
        properties = fields.pop('properties')
        valid = (
            isinstance(image, str)
            and all(isinstance(trait, str) for trait in traits)
            and (
                properties is None
                or all(
                    value is None or isinstance(value, str)
                    for value in properties.values()
                )
            )
        )
    except (ValueError, TypeError, AttributeError, LookupError):
        valid = False
    if not valid or fields:
        raise exception.RequestRefused(
            [
                f'the record of what server {server} was placed with, '
                f'{hint(server)} in its request spec, cannot be read by this '
                'version of isolate-aggregates; run '
                '"isolate-aggregates-manage record" of the newest version '
                'that has run here'
            ]
        )
    return Placed(image, tuple(traits), properties)
