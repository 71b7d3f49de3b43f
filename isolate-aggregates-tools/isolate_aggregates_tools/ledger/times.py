# SPDX-License-Identifier: Apache-2.0
"""Times of ledgers: whole seconds since 1970, as text in UTC."""

import datetime
import time


def now() -> int:
    """Return the time."""
    return int(time.time())


def as_text(seconds: int | None) -> str | None:
    """Return a time, such as ``2027-03-01T08:00:00Z``."""
    if seconds is None:
        return None
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.isoformat(timespec='seconds').replace('+00:00', 'Z')


def as_day(seconds: int) -> str:
    """Return the day of a time, such as ``2027-03-01``."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.date().isoformat()


def as_seconds(text: str) -> int:
    """Return the seconds since 1970 of a time, which is in UTC by default.

    :raises ValueError: if it is invalid.
    """
    moment = datetime.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return int(moment.timestamp())
