# SPDX-License-Identifier: Apache-2.0
"""The changes that a file describes, as commands."""

from collections.abc import Callable, Iterable, Iterator, Mapping
import dataclasses
from types import MappingProxyType
from typing import TypeVar

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.text import quoted
from isolate_aggregates_tools.cloud import changes
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.commands import Command, Commands

_Thing = TypeVar('_Thing', Aggregate, Flavor, Image)

# What messages call the values of an object, and their field.
_VALUES = MappingProxyType(
    {
        Aggregate: ('metadata', 'metadata'),
        Flavor: ('extra spec', 'extra_specs'),
        Image: ('property', 'properties'),
    }
)


@dataclasses.dataclass(frozen=True)
class Unread:
    """A part of a file that was not read, or was left out.

    :param sentence: What it is, and why.
    """

    sentence: str


@dataclasses.dataclass(frozen=True)
class Kept:
    """What a tool does not change, although its file asks for it.

    :param sentence: What stays, and why.
    """

    sentence: str


# A part of a change.
Step = Command | Unread | Kept
# An item of a file: yields its steps in the cloud after the item before it.
Item = Callable[[Snapshot], Iterable[Step]]


@dataclasses.dataclass(frozen=True)
class Planned:
    """The changes to a cloud that a file describes.

    :param commands: The commands with the same result, in the order in which
        the tool makes the changes.
    :param unread: Sentences about the parts of the file that were not read, or
        were left out, because the file does not have their values, or the tool
        would fail.
    :param kept: Sentences about what the tool does not change.
    """

    commands: Commands = ()
    unread: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @classmethod
    def of(cls, items: Iterable[Item], snapshot: Snapshot) -> 'Planned':
        """Return the changes of items, one after the other."""
        steps: list[Step] = []
        for item in items:
            some = tuple(item(snapshot))
            made = [step.change for step in some if isinstance(step, Command)]
            if made:
                snapshot = changes.made(snapshot, made)
            steps += some
        return cls(
            tuple(step for step in steps if isinstance(step, Command)),
            tuple(s.sentence for s in steps if isinstance(s, Unread)),
            tuple(s.sentence for s in steps if isinstance(s, Kept)),
        )


def unread(sentence: str) -> Item:
    """Return an item that was not read."""
    return lambda _: (Unread(sentence),)


def existing(
    things: Iterable[_Thing], number: str | None, name: str | None
) -> _Thing | None:
    """Return the object with an id or, if there is none, a name.

    Cloud files may leave the ids out.
    """
    things = tuple(things)
    for thing in things:
        if number and thing.id not in (None, '') and str(thing.id) == number:
            return thing
    return next((thing for thing in things if thing.name == name), None)


def changed(
    subject: str,
    thing: Aggregate | Flavor | Image,
    values: Mapping[str, str | None],
) -> Iterator[Step]:
    """Yield what changes values of an object; None removes the key."""
    what, field = _VALUES[type(thing)]
    old = getattr(thing, field)
    for key, value in sorted(values.items()):
        if value == old.get(key):
            continue
        if value is None:
            yield from commands.unset(thing, key)
        elif '=' in key:
            yield inexpressible(f'{subject}: {what}', key)
        else:
            yield commands.set_value(thing, key, value)


def expressible(
    subject: str, values: Mapping[str, str]
) -> tuple[dict[str, str], list[Step]]:
    """Return the values that a command can set, and sentences for others."""
    good = {key: value for key, value in values.items() if '=' not in key}
    others = sorted(values.keys() - good.keys())
    return good, [inexpressible(subject, key) for key in others]


def inexpressible(subject: str, key: str) -> Unread:
    return Unread(
        f'{subject} {quoted(key)} is left out, because the openstack client '
        'takes "=" as the end of a key.'
    )
