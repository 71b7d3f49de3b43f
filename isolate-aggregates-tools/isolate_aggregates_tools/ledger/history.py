# SPDX-License-Identifier: Apache-2.0
"""Reads a ledger file: who was where, and who could be where."""

from collections.abc import Callable, Collection, Iterable, Mapping
import contextlib
import dataclasses
import os
from typing import Any

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.ledger import chain, sizes
from isolate_aggregates_tools.ledger.days import HostSize
from isolate_aggregates_tools.ledger.state import Placement, State
from isolate_aggregates_tools.ledger.stays import Span, Stay
from isolate_aggregates_tools.ledger.times import as_seconds


@dataclasses.dataclass
class History:
    """What a ledger file has recorded.

    :param looks: The times between which the cloud was looked at all the time.
    :param stays: The stays of servers on hosts.
    :param could: When each host was one that the servers could use.
    :param state: The last state.
    :param sizes: The sizes of hosts, as they were last known.
    :param problems: What is wrong with the file, one sentence each.
    :param digests: The SHA-256 of the first and the last line.
    """

    looks: list[Span] = dataclasses.field(default_factory=list)
    stays: list[Stay] = dataclasses.field(default_factory=list)
    could: dict[str, list[Span]] = dataclasses.field(default_factory=dict)
    state: State = dataclasses.field(default_factory=State)
    sizes: dict[str, HostSize] = dataclasses.field(default_factory=dict)
    problems: list[str] = dataclasses.field(default_factory=list)
    files: list[str] = dataclasses.field(default_factory=list)
    lines: int = 0
    digests: tuple[str, str] = ('', '')


# Returns the hosts that the servers of a ledger can use.
Usable = Callable[[State], Collection[str]]


def gaps_between(looks: Iterable[Span], since: int, until: int) -> list[Span]:
    """Return the parts of a period in which nothing was looked at."""
    gaps = []
    position = since
    for look in sorted(looks, key=lambda each: each.start):
        if look.start > position:
            gaps.append(Span(position, min(look.start, until)))
        position = max(position, look.end or look.start)
        if position >= until:
            return gaps
    gaps.append(Span(position, until))
    return gaps


def aggregates(path: str | os.PathLike[str]) -> dict[str, Aggregate]:
    """Return all aggregates in a ledger file, as they were last, by uuid."""
    state = State()
    for file in chain.files(path):
        for line in chain.lines(file):
            part = (line.document or {}).get('aggregates', {})
            entries = {uuid: one for uuid, one in part.items() if one}
            with contextlib.suppress(LookupError, TypeError, ValueError):
                state.change({'aggregates': entries})
    return {u: each.aggregate(u) for u, each in state.aggregates.items()}


def read(
    path: str | os.PathLike[str],
    usable: Usable,
    is_counted: Callable[[Placement], bool] = lambda placement: True,
) -> History:
    """Read a ledger file and those that it was rotated to.

    :param is_counted: Whether the stays of a server are to be returned.
    :raises LedgerError: if it cannot be read, or has no line.
    """
    files = chain.files(path)
    if not files:
        raise tools_errors.LedgerError(str(path), 'there is no such file')
    reader = _Reader(usable, is_counted)
    for file in files:
        reader.history.files.append(str(file))
        for line in chain.lines(file):
            reader.read(line)
    return reader.finished(path)


class _Reader:
    """Follows the lines of a ledger, one after the other."""

    def __init__(
        self, usable: Usable, is_counted: Callable[[Placement], bool]
    ) -> None:
        self.history = History()
        self._usable = usable
        self._is_counted = is_counted
        self._state = State()
        self._digest: str | None = None
        # The time of the last look, and since when there were looks.
        self._looked: int | None = None
        self._began: int | None = None
        # Whether the state is that of the last line: not if one is missing.
        self._is_whole = False
        # The earliest and latest time at which servers came to where they are,
        # and the earliest time at which hosts became usable.
        self._arrived: dict[str, tuple[int, int | None]] = {}
        self._usable_since: dict[str, int] = {}

    def read(self, line: chain.Line) -> None:
        """Follow one line."""
        place = f'{line.path}, line {line.place}'
        history = self.history
        document = line.document
        try:
            if document is None:
                raise ValueError
            time, number = as_seconds(document['time']), int(document['line'])
            before = document['before'] and as_seconds(document['before'])
            late = chain.LATE * int(document['interval'])
            last, is_full = document['last'], bool(document['full'])
            State().change(document)
        except (LookupError, TypeError, ValueError, AttributeError):
            history.problems.append(
                f'{place}: the line was cut off by a crash, or was changed; '
                'what it said is missing'
            )
            self._digest = line.digest
            self._end_looks()
            self._is_whole = False
            return
        if not history.lines:
            history.digests = (line.digest, line.digest)
            if number != 1:
                history.problems.append(
                    f'{place}: the lines of the ledger before line {number} '
                    'are missing'
                )
        elif last != self._digest:
            history.problems.append(
                f'{place}: the line before it is missing or was changed: its '
                f'SHA-256 is {self._digest}, but should be {last}'
            )
            self._end_looks()
            self._is_whole = False
        if before is not None and self._is_whole:
            # The looks since the last line saw no change.
            self._looked = max(self._looked or before, before)
        self._is_whole = self._is_whole or is_full
        if self._looked is not None and time - self._looked > late:
            self._end_looks()
        if self._began is None and self._is_whole:
            self._began = time
        self._follow(document, time)
        self._looked = time
        self._digest = line.digest
        history.lines += 1
        history.digests = (history.digests[0], line.digest)

    def finished(self, path: str | os.PathLike[str]) -> History:
        """Return the history, once all lines are read."""
        if self._looked is None:
            raise tools_errors.LedgerError(str(path), 'it has no valid line')
        self._end_looks()
        for server, placement in self._state.servers.items():
            self._add(server, placement, self._looked, self._looked)
        for host, since in self._usable_since.items():
            self._add_usable(host, since, self._looked)
        self.history.state = self._state
        return self.history

    def _end_looks(self) -> None:
        if self._began is not None:
            end = max(self._looked or self._began, self._began)
            self.history.looks.append(Span(self._began, end))
        self._began = None

    def _follow(self, document: Mapping[str, Any], time: int) -> None:
        """Change the state to that of a line."""
        state = self._state
        servers: Collection[str] = document.get('servers', {})
        if document['full']:
            servers = {*state.servers, *servers}
        moved = {server: state.servers.get(server) for server in servers}
        if document['full']:
            self._state = state = State()
        state.change(document)
        earliest = time if self._looked is None else self._looked
        for server, before in moved.items():
            self._move(server, before, earliest, time)
        if document['full'] or document.keys() & {'aggregates', 'hosts'}:
            self._use(self._usable(state), earliest, time)
            self.history.sizes = sizes.newer(
                self.history.sizes, sizes.sizes(state)
            )

    def _move(
        self, server: str, before: Placement | None, earliest: int, time: int
    ) -> None:
        """Note that a server was seen elsewhere than before, or is gone."""
        after = self._state.servers.get(server)
        if before and after and self._is_same(before, after):
            return
        if before:
            self._add(server, before, earliest, time)
        if after:
            launched = after.launched
            if launched is not None and earliest < launched <= time:
                self._arrived[server] = launched, None
            else:
                self._arrived[server] = earliest, time

    def _is_same(self, one: Placement, other: Placement) -> bool:
        return one[:4] == other[:4] and (
            self._is_counted(one) == self._is_counted(other)
        )

    def _add(
        self,
        server: str,
        placement: Placement,
        end_from: int | None,
        end: int | None,
    ) -> None:
        """Add the stay of a server that has left, or is still there."""
        start, start_by = self._arrived.pop(server)
        if self._is_counted(placement):
            keys = placement.keys
            self.history.stays.append(
                Stay(
                    start,
                    end,
                    server,
                    placement.host,
                    placement.project,
                    placement.flavor,
                    placement.cores,
                    None if keys is None else frozenset(keys),
                    start_by,
                    end_from,
                )
            )

    def _use(self, hosts: Collection[str], earliest: int, time: int) -> None:
        """Note which hosts the servers can use from now on."""
        for host in self._usable_since.keys() - set(hosts):
            self._add_usable(host, self._usable_since.pop(host), time)
        for host in hosts:
            self._usable_since.setdefault(host, earliest)

    def _add_usable(self, host: str, start: int, end: int) -> None:
        # It was usable at the last second, too.
        span = Span(start, end + 1)
        self.history.could.setdefault(host, []).append(span)
