# SPDX-License-Identifier: Apache-2.0
"""Parses points in time (ISO 8601 with a time zone) and durations."""

import argparse
import datetime
import re
from typing import overload

Moment = datetime.datetime | datetime.timedelta

_NOW = 'now'
_NEVER = 'never'

# 2h or 1d12h, and the same in ISO 8601. Months (P1M) are not supported.
_SHORT = re.compile(
    r'(?:(?P<weeks>\d+)w)?(?:(?P<days>\d+)d)?(?:(?P<hours>\d+)h)?'
    r'(?:(?P<minutes>\d+)m)?(?:(?P<seconds>\d+)s)?'
)
_ISO = re.compile(
    r'P(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?'
    r'(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?'
    r'(?:(?P<seconds>\d+)S)?)?'
)


def moment(text: str) -> Moment:
    """Parse an argument as a point in time or a duration.

    :param text: The argument; ``now`` is a duration of zero.
    """
    if text == _NOW:
        return datetime.timedelta()
    length = _duration(text)
    if length is not None:
        return length
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'{text!r} is neither a time such as 2027-03-01T08:00Z nor a '
            'duration such as 2h, 7d or PT90M'
        ) from None
    if time.tzinfo is None:
        raise argparse.ArgumentTypeError(
            f'{text!r} has no time zone; write 2027-03-01T08:00Z, or '
            '2027-03-01T08:00+01:00'
        )
    try:
        return time.astimezone(datetime.UTC)
    except OverflowError:
        raise argparse.ArgumentTypeError(
            f'{text!r} is not between the years 1 and 9999 in UTC'
        ) from None


def past(text: str) -> Moment:
    parsed = moment(text)
    return -parsed if isinstance(parsed, datetime.timedelta) else parsed


def end(text: str) -> Moment | None:
    return None if text == _NEVER else moment(text)


def duration(text: str) -> datetime.timedelta:
    length = _duration(text)
    if length is None:
        raise argparse.ArgumentTypeError(
            f'{text!r} is not a duration such as 2h, 7d or PT90M'
        )
    return length


def resolve(moment: Moment, since: datetime.datetime) -> datetime.datetime:
    if isinstance(moment, datetime.datetime):
        return moment
    try:
        return since + moment
    except OverflowError:
        raise argparse.ArgumentTypeError(
            f'the time {moment.days} days after {text(since)} is out of range'
        ) from None


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@overload
def text(time: datetime.datetime) -> str: ...


@overload
def text(time: datetime.datetime | None) -> str | None: ...


def text(time: datetime.datetime | None) -> str | None:
    """Format a point in time for output; None for never."""
    if time is None:
        return None
    return time.astimezone(datetime.UTC).isoformat(timespec='seconds')


def length(duration: datetime.timedelta | None) -> str | None:
    """Format a duration for output, as it can be given."""
    if duration is None:
        return None
    return f'{int(duration.total_seconds())}s'


def _duration(text: str) -> datetime.timedelta | None:
    match = _SHORT.fullmatch(text) or _ISO.fullmatch(text)
    units = {
        unit: int(number)
        for unit, number in (match.groupdict() if match else {}).items()
        if number is not None
    }
    if not units:
        return None
    try:
        return datetime.timedelta(**units)
    except OverflowError:
        raise argparse.ArgumentTypeError(
            f'{text!r} is too long a duration'
        ) from None
