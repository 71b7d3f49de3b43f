# SPDX-License-Identifier: Apache-2.0
"""A ledger: where servers ran in a period, and where they could run."""

from collections.abc import Collection, Iterable, Mapping, Sequence
import dataclasses
from typing import Annotated

from oslo_config import cfg

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import LoadedFilter
from isolate_aggregates.request.extra_specs import TRAIT_PREFIX
from isolate_aggregates_tools.documents import one_of
from isolate_aggregates_tools.ledger import days, keys
from isolate_aggregates_tools.ledger.days import HostDay, HostSize, Peaks
from isolate_aggregates_tools.ledger.history import History, gaps_between
from isolate_aggregates_tools.ledger.state import Placement, State
from isolate_aggregates_tools.ledger.stays import Span, Stay, merged
from isolate_aggregates_tools.ledger.times import as_text


@dataclasses.dataclass(frozen=True)
class Subject:
    """Whose ledger it is, as in its JSON document."""

    kind: Annotated[str, one_of('lock', 'aggregate', 'project')]
    name: Annotated[
        str,
        'The name of the lock, the uuid of the aggregate, or the id of the '
        'project.',
    ]
    label: Annotated[str, 'Its name as it was given.']

    def counts(self, placement: Placement) -> bool:
        """Return whether a server in a ledger file may belong to it."""
        if self.kind == 'lock':
            return placement.keys is None or self.name in placement.keys
        return self.kind != 'project' or placement.project == self.name

    def counts_stay(self, stay: Stay) -> bool:
        """Return whether a stay may belong to it."""
        if self.kind == 'lock':
            return stay.keys is None or self.name in stay.keys
        return self.kind != 'project' or stay.project == self.name


class UsableHosts:
    """Finds the hosts that the servers of a ledger can use."""

    def __init__(self, conf: cfg.ConfigOpts, subject: Subject) -> None:
        self._filters: tuple[LoadedFilter, ...] = loading.load(conf)
        self._subject = subject
        self._locks: dict[object, frozenset[str]] = {}
        # The aggregates that it was ever about, by uuid, as they were last.
        self.aggregates: dict[str, Aggregate] = {}

    def of(self, state: State) -> Collection[str]:
        """Return the hosts by name."""
        hosts: set[str] = set()
        name = self._subject.name
        if self._subject.kind == 'project':
            return hosts
        for uuid, aggregate in state.aggregates.items():
            whole = aggregate.aggregate(uuid)
            if self._subject.kind == 'aggregate':
                is_meant = uuid == name
            else:
                is_meant = name in self._names(whole)
            if is_meant:
                self.aggregates[uuid] = whole
                hosts.update(whole.hosts)
        if self._subject.kind == 'lock' and name.startswith(TRAIT_PREFIX):
            trait = name.removeprefix(TRAIT_PREFIX)
            hosts.update(
                host
                for host, each in state.hosts.items()
                if trait in each.traits
            )
        return hosts

    def locks(self, state: State) -> frozenset[str]:
        """Return the names of all locks."""
        return frozenset().union(
            *(
                self._names(each.aggregate(uuid))
                for uuid, each in state.aggregates.items()
            )
        )

    def _names(self, aggregate: Aggregate) -> frozenset[str]:
        kind = frozenset(aggregate.metadata.items())
        if kind not in self._locks:
            self._locks[kind] = keys.names_of(aggregate, self._filters)
        return self._locks[kind]


@dataclasses.dataclass(frozen=True)
class Ledger:
    """Where servers ran in a period, and where they could.

    :param could: When each host was one that the servers could use.
    :param unknown: The times without a record of this.
    :param gaps: What is not known, one sentence each.
    :param problems: What is wrong with the ledger file, one sentence each.
    :param has_nova: Whether Nova was read too.
    """

    subject: Subject
    since: int
    until: int
    stays: Sequence[Stay]
    could: Mapping[str, Sequence[Span]]
    unknown: Sequence[Span]
    sizes: Mapping[str, HostSize]
    gaps: Sequence[str] = ()
    problems: Sequence[str] = ()
    has_nova: bool = True

    @property
    def days(self) -> Iterable[HostDay]:
        """The days of each host on which servers ran, or could."""
        # Projects have no hosts of their own.
        unknown = self.unknown
        if self.subject.kind == 'project':
            unknown = [Span(self.since, self.until)]
        return days.host_days(
            self.stays, self.could, unknown, self.since, self.until
        )

    @property
    def peaks(self) -> Peaks:
        """The most that was in use at one time."""
        return days.peaks(self.stays, self.sizes, self.since, self.until)


def make(
    subject: Subject,
    period: tuple[int, int],
    stays: Iterable[Stay],
    could: Mapping[str, Iterable[Span]],
    looks: Sequence[Span],
    sizes: Mapping[str, HostSize],
    gaps: Sequence[str],
    problems: Sequence[str],
    has_nova: bool,
) -> Ledger:
    """Return the ledger of a period.

    :param looks: The times in which the locks are known.
    """
    since, until = period
    able = {
        host: [span for span in merged(spans) if span.overlaps(since, until)]
        for host, spans in could.items()
    }
    able = {host: spans for host, spans in able.items() if spans}
    if subject.kind == 'aggregate':
        stays = (stay for stay in stays if stay.host in could)
    return Ledger(
        subject,
        since,
        until,
        sorted(
            (
                _clipped(stay, since, until)
                for stay in stays
                if stay.overlaps(since, until)
            ),
            key=lambda stay: (stay.host, stay.start, stay.server),
        ),
        able,
        gaps_between(looks, since, until),
        sizes,
        gaps,
        problems,
        has_nova,
    )


def from_file(
    history: History,
    known: Mapping[str, Sequence[Stay]],
    since: int,
    until: int,
) -> tuple[list[Stay], list[str]]:
    """Return the stays that only a ledger file knows, and what Nova lacks.

    :param known: The stays of the servers that Nova knows.
    """
    stays, gaps = [], []
    for stay in history.stays:
        if not stay.overlaps(since, until):
            continue
        if stay.server in known:
            if any(_covers(other, stay) for other in known[stay.server]):
                continue
            gaps.append(
                f'server {stay.server}: the ledger file saw it on host '
                f'{stay.host} at {as_text(stay.start_by or stay.start)}, of '
                'which Nova keeps no record'
            )
        stays.append(stay)
    return stays, gaps


def _clipped(stay: Stay, since: int, until: int) -> Stay:
    """Return the part of a stay in a period.

    What began before the period begins with it; what did not end in it has no
    end.
    """
    has_ended = stay.end is not None and stay.end <= until
    start_by, end_from = stay.start_by, stay.end_from
    return dataclasses.replace(
        stay,
        start=max(stay.start, since),
        start_by=start_by if start_by and start_by > since else None,
        end=stay.end if has_ended else None,
        end_from=end_from
        if has_ended or (end_from or until) < until
        else None,
    )


def _covers(nova: Stay, recorded: Stay) -> bool:
    """Return whether Nova knows of a stay that was recorded."""
    start = recorded.start if recorded.start_by is None else recorded.start_by
    end = recorded.end if recorded.end_from is None else recorded.end_from
    return nova.host == recorded.host and nova.overlaps(
        # What starts and ends at one look has no length.
        start,
        max(start + 1, start if end is None else end),
    )
