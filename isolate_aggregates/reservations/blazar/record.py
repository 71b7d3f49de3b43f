# SPDX-License-Identifier: Apache-2.0
"""What the flavor of a reservation of Blazar says of it.

Blazar's database knows the rest. What a database knows can be lost, with a
backup that is older, or with a wrong connection; that a reservation is to end
is therefore written into the flavor, and nothing ends because a database does
not know it.
"""

import dataclasses
import datetime
import json

from isolate_aggregates.reservations.record import Record

# The key that tells these descriptions from those of others, and the version.
_MARK = 'isolate-aggregates-blazar'
_VERSION = 1


@dataclasses.dataclass(frozen=True)
class End:
    """That a reservation is to end.

    :param by: Who or what ended it.
    """

    by: str
    at: datetime.datetime


@dataclasses.dataclass(frozen=True)
class BlazarRecord:
    """What the flavor says.

    :param database: The id of the database of the Blazar it belongs to.
    :param end: That it is to end, if it is.
    """

    reservation: str
    database: str
    end: End | None = None

    def describe(self) -> str:
        """Return the description of the flavor."""
        document = {_MARK: _VERSION, 'database': self.database}
        if self.end is not None:
            document['end'] = {
                'by': self.end.by,
                'at': self.end.at.isoformat(timespec='seconds'),
            }
        return json.dumps(document)


def parse(flavor: Record) -> BlazarRecord | None:
    """Return what a flavor says; None if it is not one of Blazar."""
    try:
        document = json.loads(flavor.description)
        if document[_MARK] != _VERSION:
            return None
        end = document.get('end')
        return BlazarRecord(
            flavor.flavor.id,
            str(document['database']),
            end
            and End(
                str(end['by']), datetime.datetime.fromisoformat(end['at'])
            ),
        )
    except (LookupError, TypeError, ValueError):
        return None
