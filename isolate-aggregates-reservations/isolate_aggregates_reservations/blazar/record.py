# SPDX-License-Identifier: Apache-2.0
"""The record that the flavor of a Blazar reservation contains.

Everything else is in Blazar's database. A database can be restored from an old
backup, or be a wrong one. So no reservation is ended because it is missing in
the database, and none before the end that was agreed last: the flavor itself
records both.
"""

import dataclasses
import datetime
import json

from isolate_aggregates_reservations.record import (
    BLAZAR_MARK,
    TEXT,
    TIME,
    optional,
    values_of,
    written,
)
from isolate_aggregates_tools.compute.records import FlavorRecord

# The version of the format.
_VERSION = 1


@dataclasses.dataclass(frozen=True)
class End:
    by: str
    at: datetime.datetime


@dataclasses.dataclass(frozen=True)
class BlazarRecord:
    """The contents of a flavor's description.

    :param until: When its lease ends, as agreed last; None if the flavor does
        not tell.
    """

    reservation: str
    database: str
    end: End | None = None
    until: datetime.datetime | None = None

    def describe(self) -> str:
        return json.dumps({BLAZAR_MARK: _VERSION, **written(self, _FIELDS)})


_END = {'by': TEXT, 'at': TIME}
_FIELDS = {
    'database': TEXT,
    'until': optional(TIME),
    'end': optional(
        (
            lambda end: written(end, _END),
            lambda document: End(**values_of(document, _END)),
        )
    ),
}


def parse(flavor: FlavorRecord) -> BlazarRecord | None:
    """Parse a flavor; None if it has no record of a Blazar reservation."""
    try:
        document = json.loads(flavor.description)
        if document[BLAZAR_MARK] != _VERSION:
            return None
        return BlazarRecord(flavor.flavor.id, **values_of(document, _FIELDS))
    except (LookupError, TypeError, ValueError, AttributeError):
        return None
