# SPDX-License-Identifier: Apache-2.0
"""The JSON document of an effect."""

from collections.abc import Iterable
from dataclasses import dataclass
import json
import os
from typing import Annotated, Any

import jsonschema

from isolate_aggregates_tools import documents, files
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.audit.finding import About
from isolate_aggregates_tools.documents import Names, one_of
from isolate_aggregates_tools.effect.effect import ProjectChange, UserChange
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.outcome import Refusal


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server whose place changes."""

    id: str
    name: Annotated[str, 'Chosen by its owner.']
    project: str
    host: str | None
    flavor: str | None
    kind: Annotated[
        str,
        one_of('server-misplaced', 'server-changed'),
        'The kind of finding, as of an audit.',
    ]
    reasons: Names


@dataclass(frozen=True, kw_only=True)
class Servers:
    """The servers whose place changes."""

    out_of_place: Annotated[
        tuple[Server, ...],
        'On hosts that an equal new server could not use after the change, '
        'but could before.',
    ]
    in_place: Annotated[
        tuple[Server, ...],
        'On hosts that an equal new server could use after the change, but '
        'could not before.',
    ]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A number before and after the change."""

    before: int
    after: int


@dataclass(frozen=True, kw_only=True)
class Flavor:
    """A flavor whose hosts or room change."""

    flavor: Annotated[
        str | None,
        'Its name; null for any flavor without extra specs.',
    ]
    image: Annotated[
        str | None, 'The name of the image; null for images without keys.'
    ]
    hosts: Annotated[
        Pair, 'The number of hosts that its servers may use, full or not.'
    ]
    slots: Annotated[
        Pair, 'The number of its servers for which there is room.'
    ]
    gained: Names
    lost: Names


@dataclass(frozen=True, kw_only=True)
class Nowhere:
    """Who has no host left."""

    flavors: tuple[str | None, ...]
    images: Names


@dataclass(frozen=True, kw_only=True)
class LockChange:
    """A lock whose hosts change."""

    lock: str
    gained: Names
    lost: Names


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """A reservation whose hosts change."""

    key: str
    gained: Names
    lost: Names


@dataclass(frozen=True, kw_only=True)
class Zone:
    """An availability zone whose hosts change."""

    zone: str
    gained: Names
    lost: Names


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A step that Nova refuses."""

    step: Annotated[str, 'The step as a command.']
    reason: str


def refused(steps: Iterable[Refusal]) -> tuple[Refused, ...]:
    """Return the steps that Nova refuses, for a document."""
    return tuple(
        Refused(step=commands.shown([each.command]), reason=each.reason)
        for each in steps
    )


@dataclass(frozen=True, kw_only=True)
class _Text:
    kind: str
    severity: Annotated[str, one_of('info', 'warning', 'error')]
    subject: str
    problem: str


@dataclass(frozen=True, kw_only=True)
class Finding(About, _Text):
    """A finding of an audit that appears or goes."""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The findings of an audit that appear and go."""

    new: tuple[Finding, ...]
    resolved: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True)
class LongestQuery(Pair):
    """The longest query to Placement."""

    limit: int | None


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What changes of a cloud do."""

    servers: Annotated[
        Servers | None,
        'The servers whose place changes; null if the servers are not known.',
    ]
    flavors: Annotated[
        tuple[Flavor, ...],
        'The flavors whose hosts or room change, alone and with each kind of '
        'image that opens locks; who is let in comes first.',
    ]
    nowhere: Annotated[Nowhere, 'Who has no host left.']
    users: Annotated[
        tuple[UserChange, ...],
        'The flavors that other projects may use than before.',
    ]
    projects: Annotated[
        tuple[ProjectChange, ...],
        'The projects whose hosts change, by what tags of aggregates say of '
        'them.',
    ]
    locks: Annotated[tuple[LockChange, ...], 'The locks whose hosts change.']
    reservations: Annotated[
        tuple[Reservation, ...],
        'The reservations whose hosts change, by the key in the metadata of '
        'their aggregates.',
    ]
    zones: Annotated[
        tuple[Zone, ...], 'The availability zones whose hosts change.'
    ]
    findings: Annotated[
        Findings,
        'The findings of an audit that appear and go, without those on '
        'servers.',
    ]
    longest_query: Annotated[
        LongestQuery,
        'The length in bytes of the longest query to Placement, before it is '
        'shortened, and the limit.',
    ]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A difference to the cloud file of ``--to``."""

    kind: str
    name: str
    what: Annotated[str, 'The part that differs; empty for the whole object.']
    before: Annotated[Any, 'Null if it did not exist.']
    after: Annotated[Any, 'Null if it no longer exists.']


@dataclass(frozen=True, kw_only=True)
class PlannedEffect(Effect):
    """What the changes that ``effect show`` was given do, step by step."""

    differences: Annotated[
        tuple[Difference, ...], 'What differs in the file of --to.'
    ]
    steps: Annotated[Names, 'The changes as commands, in their order.']
    gaps: Annotated[Names, 'Who is let in or refused between the steps.']
    refused: Annotated[
        tuple[Refused, ...],
        'The steps that Nova refuses, which are left out.',
    ]
    unknown: Annotated[Names, 'What is not known of the effect.']
    unread: Annotated[
        Names,
        'What was not read of a file of another tool, or was left out; the '
        'effect is without it.',
    ]


EFFECT = documents.schema(PlannedEffect, 'What changes of a cloud do')


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read an effect that ``effect show -f json`` has written.

    :raises ChangesFileError: if it cannot be read or is no effect.
    """
    return document(path, 'an effect', EFFECT, 'effect show', 'rehearse')


def document(
    path: str | os.PathLike[str],
    what: str,
    schema: dict[str, Any],
    *commands: str,
) -> dict[str, Any]:
    """Read a document that a command has written with ``-f json``.

    :param what: The document in words, such as ``an effect``.
    :param commands: The commands that write it.
    :raises ChangesFileError: if it cannot be read or is something else.
    """
    try:
        content = json.loads(files.read_text(path))
        jsonschema.validate(content, documents.with_id(schema, *commands))
    except OSError as exc:
        problem = f'cannot be read: {exc.strerror}'
    except ValueError as exc:
        problem = f'is not JSON: {exc}'
    except jsonschema.ValidationError as exc:
        place = '.'.join(map(str, exc.absolute_path)) or 'its top'
        problem = f'is not {what}: {place}: {exc.message}'
    else:
        result: dict[str, Any] = content
        return result
    raise tools_errors.ChangesFileError(str(path), f' {problem}')
