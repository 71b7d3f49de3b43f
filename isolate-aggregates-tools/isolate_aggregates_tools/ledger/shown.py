# SPDX-License-Identifier: Apache-2.0
"""Shows a ledger as lines, rows and a JSON document."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import hashlib
import json
from typing import Any

import pbr.version

from isolate_aggregates.text import counted, quoted
from isolate_aggregates_tools.documents import content
from isolate_aggregates_tools.ledger import documents
from isolate_aggregates_tools.ledger.days import HostDay, HostSize, Peak
from isolate_aggregates_tools.ledger.history import History
from isolate_aggregates_tools.ledger.ledger import Ledger
from isolate_aggregates_tools.ledger.stays import Stay
from isolate_aggregates_tools.ledger.times import as_text

DAY_COLUMNS = (
    'Host',
    'Day',
    'Could run',
    'Servers',
    'VCPUs',
    'Sockets',
    'Cores',
)
STAY_COLUMNS = (
    'Host',
    'Server',
    'Project',
    'Flavor',
    'VCPUs',
    'From',
    'To',
    'Exact',
)
# Gaps that people see without --long.
MOST = 20

_COULD = {True: 'yes', False: 'no', None: 'unknown'}


def day_row(day: HostDay, sizes: Mapping[str, HostSize]) -> tuple[Any, ...]:
    """Return a row of a table."""
    size = sizes.get(day.host, HostSize())
    return (
        day.host,
        day.day,
        _COULD[day.could],
        day.servers,
        day.vcpus,
        size.sockets,
        size.cores,
    )


def stay_row(stay: Stay) -> tuple[Any, ...]:
    """Return a row of a table."""
    return (
        stay.host,
        stay.server,
        stay.project,
        stay.flavor,
        stay.cores,
        as_text(stay.start),
        as_text(stay.end),
        'yes' if stay.is_exact else 'no',
    )


def lines(ledger: Ledger, days: Sequence[HostDay]) -> Iterator[str]:
    """Yield the sums of a ledger."""
    subject = ledger.subject
    yield (
        f'Ledger of {subject.kind} {quoted(subject.label)} from '
        f'{as_text(ledger.since)} to {as_text(ledger.until)}.'
    )
    peaks = ledger.peaks
    if peaks.hosts.at is None:
        yield 'No servers ran.'
    else:
        for name, peak in (
            ('hosts', peaks.hosts),
            ('sockets', peaks.sockets),
            ('cores', peaks.cores),
            ('servers', peaks.servers),
            ('VCPUs', peaks.vcpus),
        ):
            yield _peak(name, peak)
    ran = sum(bool(day.servers) for day in days)
    line = f'Host days: {ran} on which servers ran'
    if subject.kind != 'project':
        able = sum(day.could is True for day in days)
        line += f', {able} on which they could run'
    yield f'{line}.'


def gaps(ledger: Ledger, most: int | None) -> Iterator[str]:
    """Yield what is not known."""
    sentences = _sentences(ledger)
    if not sentences:
        return
    yield 'Not known:'
    for sentence in sentences[:most]:
        yield f'  {sentence}.'
    more = 0 if most is None else len(sentences) - most
    if more > 0:
        yield f'  {more} more; --long shows all.'


def document(
    ledger: Ledger, days: Iterable[HostDay], history: History | None
) -> documents.Ledger:
    """Return a ledger as a JSON document."""
    has_lock = ledger.subject.kind == 'lock'
    stays = tuple(_stay(stay, has_lock) for stay in ledger.stays)
    host_days = tuple(days)
    return documents.Ledger(
        subject=ledger.subject,
        since=_time(ledger.since),
        until=_time(ledger.until),
        version=pbr.version.VersionInfo('isolate-aggregates').release_string(),
        peaks=ledger.peaks,
        hosts={
            host: ledger.sizes.get(host, HostSize())
            for host in sorted({day.host for day in host_days})
        },
        days=host_days,
        stays=stays,
        gaps=tuple(
            documents.Gap(start=_time(gap.start), end=_time(gap.end))
            for gap in ledger.unknown
        ),
        not_known=tuple(_sentences(ledger)),
        file=None
        if history is None
        else documents.File(
            names=tuple(history.files),
            lines=history.lines,
            first=history.digests[0],
            last=history.digests[1],
        ),
        digests=documents.Digests(
            days=_digest(host_days), stays=_digest(stays)
        ),
    )


def _peak(name: str, peak: Peak) -> str:
    if peak.at is None:
        return f'Most {name} at a time: not known.'
    more = ''
    if peak.unknown:
        what = 'servers' if name == 'VCPUs' else 'hosts'
        more = (
            f', and those of {counted(peak.unknown, what[:-1])} whose '
            'number is not known'
        )
    return f'Most {name} at a time: {peak.number}, first at {peak.at}{more}.'


def _sentences(ledger: Ledger) -> list[str]:
    lost = 'servers that Nova has archived or whose actions were purged'
    what = {
        # By whether Nova was read, and whether locks matter.
        (True, True): f'locks and memberships, and of {lost}',
        (True, False): lost,
        (False, True): 'locks, memberships and servers',
        (False, False): 'servers',
    }[ledger.has_nova, ledger.subject.kind != 'project']
    return [
        *ledger.problems,
        *(
            f'between {as_text(gap.start)} and {as_text(gap.end)}, there is '
            f'no record of {what}'
            for gap in ledger.unknown
        ),
        *ledger.gaps,
    ]


def _stay(stay: Stay, has_lock: bool) -> documents.Stay:
    return documents.Stay(
        host=stay.host,
        server=stay.server,
        project=stay.project,
        flavor=stay.flavor,
        vcpus=stay.cores,
        # Stays without the key are not in the ledger of a lock.
        has_key=(stay.keys is not None or None) if has_lock else None,
        from_=_time(stay.start),
        from_by=as_text(stay.start_by),
        to=as_text(stay.end),
        to_from=as_text(stay.end_from),
    )


def _time(time: int | None) -> str:
    # A stay is clipped to the period, so it has a start.
    return as_text(time) or ''


def _digest(entries: Sequence[Any]) -> str:
    """Return the SHA-256 of entries as canonical JSON."""
    digest = hashlib.sha256()
    for entry in entries:
        text = json.dumps(
            content(entry), sort_keys=True, separators=(',', ':')
        )
        digest.update(text.encode() + b'\n')
    return digest.hexdigest()
