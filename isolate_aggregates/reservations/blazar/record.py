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
from typing import Any

from isolate_aggregates.reservations.record import BLAZAR_MARK, FlavorRecord

# The version of the format.
_VERSION = 1


@dataclasses.dataclass(frozen=True)
class End:
    """The fact that a reservation is to end."""

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
        """Return the description of the flavor."""
        document: dict[str, Any] = {
            BLAZAR_MARK: _VERSION,
            'database': self.database,
        }
        if self.until is not None:
            document['until'] = self.until.isoformat(timespec='seconds')
        if self.end is not None:
            document['end'] = {
                'by': self.end.by,
                'at': self.end.at.isoformat(timespec='seconds'),
            }
        return json.dumps(document)


def parse(flavor: FlavorRecord) -> BlazarRecord | None:
    """Parse a flavor; None if it has no record of a Blazar reservation."""
    try:
        document = json.loads(flavor.description)
        if document[BLAZAR_MARK] != _VERSION:
            return None
        end = document.get('end')
        until = document.get('until')
        return BlazarRecord(
            flavor.flavor.id,
            str(document['database']),
            end
            and End(
                str(end['by']), datetime.datetime.fromisoformat(end['at'])
            ),
            until and datetime.datetime.fromisoformat(until),
        )
    except (LookupError, TypeError, ValueError):
        return None
