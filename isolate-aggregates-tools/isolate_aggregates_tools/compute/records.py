# SPDX-License-Identifier: Apache-2.0
"""The flavors that hold records of reservations, as plain values.

Their descriptions are written and parsed by isolate-aggregates-reservations.
"""

import dataclasses
import datetime

from isolate_aggregates.request import Flavor

# The name of such a flavor is this and its id.
NAME = 'reservation:'


@dataclasses.dataclass(frozen=True)
class FlavorRecord:
    """A flavor with the name of a reservation's flavor.

    :param description: Its description in Nova; empty if it has none.
    """

    flavor: Flavor
    description: str


@dataclasses.dataclass(frozen=True)
class ReservationRecords:
    """The records of all reservations of a cloud.

    :param read_at: When they were read, with a time zone: what a reservation
        is depends on the time.
    :param flavors: The flavors that hold them, in the order of their ids.
    """

    read_at: datetime.datetime
    flavors: tuple[FlavorRecord, ...] = ()
