# SPDX-License-Identifier: Apache-2.0
"""Stays of servers, from what Nova keeps. Does no input or output."""

from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses

from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.compute.past import (
    Event,
    InstanceAction,
    Migration,
    PastServer,
)
from isolate_aggregates_tools.ledger.stays import Stay
from isolate_aggregates_tools.ledger.times import as_text

# Returns the locks that a server with a flavor has the keys to.
KeysOf = Callable[[Flavor | None], frozenset[str] | None]

# Events after which a server is on the host of the event.
_BUILD = 'compute__do_build_and_run_instance'
_REBUILD = 'compute_rebuild_instance'
_LIVE = 'compute_post_live_migration_at_destination'
_UNSHELVE = 'compute_unshelve_instance'
_RESIZE = 'compute_finish_resize'
_REVERT = 'compute_finish_revert_resize'
_CROSS_CELL = {
    'compute_finish_snapshot_based_resize_at_dest': _RESIZE,
    'compute_finish_revert_snapshot_based_resize_at_source': _REVERT,
}
_ARRIVALS = frozenset(
    {
        _BUILD,
        _REBUILD,
        _RESIZE,
        _REVERT,
        *_CROSS_CELL,
        _LIVE,
        _UNSHELVE,
    }
)
# Events after which it is on no host.
_OFFLOAD = 'compute_shelve_offload_instance'
_OFFLOADED = 'SHELVED_OFFLOADED'
_CREATE = 'create'
_SHELVES = frozenset({'shelve', 'shelveOffload'})
# Actions that move a server or launch it again.
_MOVES = _SHELVES | {
    'evacuate',
    'live-migration',
    'migrate',
    'rebuild',
    'resize',
    'revertResize',
    'unshelve',
}


@dataclasses.dataclass(frozen=True)
class Records:
    """The stays of one server, and what Nova does not tell of it.

    :param gaps: One sentence each.
    """

    stays: Sequence[Stay] = ()
    gaps: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class _Step:
    """A server came to a host, or left it.

    :param host: None if it is on no host.
    :param by: The latest time; None if ``time`` is exact.
    """

    time: int
    host: str | None
    event: str = ''
    action: str = ''
    by: int | None = None


def needs_actions(
    past: PastServer, migrations: Sequence[Migration], since: int
) -> bool:
    """Return whether the actions on a server have to be read.

    Not those of a server that Nova has not changed or launched since.
    """
    if past.launched is None and not migrations:
        return past.server.host is not None
    return (
        bool(migrations)
        or past.updated >= since
        or (past.launched or since) >= since
    )


def is_plain(
    actions: Iterable[InstanceAction], migrations: Sequence[Migration]
) -> bool:
    """Return whether a server was created, and has never moved."""
    names = [action.name for action in actions]
    return (
        not migrations
        and names.count(_CREATE) == 1
        and _MOVES.isdisjoint(names)
    )


def moving(actions: Iterable[InstanceAction]) -> Iterable[InstanceAction]:
    """Yield the actions with events that may have moved a server.

    :param actions: All actions on the server, the oldest first.
    """
    is_shelved = False
    for action in actions:
        if action.name == _CREATE or action.name in _MOVES or is_shelved:
            yield action
        # The periodic task that offloads a server adds an event to the last
        # action, whatever it is.
        is_shelved = action.name in _SHELVES or (
            is_shelved and action.name != 'unshelve'
        )


def of_unmoved(past: PastServer, keys: KeysOf) -> Records:
    """Return the only stay of a server that has never moved."""
    host = past.server.host
    if past.launched is None or host is None:
        return Records()
    step = _Step(past.launched, host)
    return Records([_stay(past, step, past.server.flavor, keys, _end(past))])


def of_moved(
    past: PastServer,
    events: Mapping[InstanceAction, Sequence[Event]],
    migrations: Sequence[Migration],
    flavors: Mapping[int, Flavor],
    keys: KeysOf,
    now: int,
) -> Records:
    """Return the stays of a server.

    :param events: The events of its actions.
    :param migrations: Its migrations.
    :param flavors: Flavors by their numbers in migrations.
    """
    server = past.server
    steps = _steps(past, events)
    gaps: list[str] = []
    if not any(action.name == _CREATE for action in events):
        gaps.append(
            f'server {server.id}: Nova keeps no record of its creation; how '
            f'it moved since {as_text(past.created)} may be incomplete'
        )
    end = _end(past)
    last = steps[-1].host if steps else None
    if server.host and steps and last != server.host:
        gaps.append(
            f'server {server.id}: Nova keeps no record of how it came from '
            f'{f"host {last}" if last else "being shelved"} to host '
            f'{server.host} between {as_text(steps[-1].time)} and '
            f'{as_text(end or now)}'
        )
        steps.append(_Step(steps[-1].time, server.host, by=end or now))
    elif server.host and not steps and past.launched is not None:
        steps.append(_Step(past.launched, server.host))
    stays = list(_stays(past, steps, end, migrations, flavors, keys))
    gaps += (
        f'server {server.id}: the flavor that it had on host {stay.host} from '
        f'{as_text(stay.start)} to {as_text(stay.end)}, before it was resized'
        for stay in stays
        if stay.flavor is None and server.flavor is not None
    )
    return Records(stays, gaps)


def flavors_of(
    pasts: Iterable[tuple[PastServer, Sequence[Migration]]],
) -> dict[int, Flavor]:
    """Return flavors by their numbers in migrations.

    Nova's API does not show which flavors the numbers belong to; but a server
    has the flavor that its last resize has left it with.
    """
    flavors: dict[int, Flavor] = {}
    for past, migrations in pasts:
        resizes = [m for m in migrations if m.kind == 'resize']
        if past.server.flavor is None or not resizes:
            continue
        last = max(resizes, key=lambda migration: migration.created)
        before, after = last.flavors
        number = after if last.status in ('finished', 'confirmed') else before
        if number is not None:
            flavors[number] = past.server.flavor
    return flavors


def _end(past: PastServer) -> int | None:
    """Return when a server was deleted; None if it exists."""
    if past.terminated is None and past.is_deleted:
        return past.updated
    return past.terminated


def _steps(
    past: PastServer, events: Mapping[InstanceAction, Sequence[Event]]
) -> list[_Step]:
    """Return the moves of a server, in order."""
    steps: list[_Step] = []
    # When it was shelved, if it was not offloaded at once.
    shelved: int | None = None
    for action in sorted(events, key=lambda each: each.start):
        done = sorted(
            (each for each in events[action] if each.is_success),
            key=lambda each: (each.start, each.finish or each.start),
        )
        builds = [each for each in done if each.name == _BUILD]
        for event in done:
            if event.finish is None or event.host is None:
                continue
            last = steps[-1].host if steps else None
            if event.name == _OFFLOAD:
                steps.append(_Step(event.finish, None))
            if event.name not in _ARRIVALS:
                continue
            if event.name == _BUILD and (
                past.launched is None or event is not builds[-1]
            ):
                # It did not run there: it was scheduled again, or given up.
                continue
            if event.name == _UNSHELVE and last and shelved is not None:
                # Offloaded at once; this is no event of its own.
                steps.append(_Step(shelved, None))
            if event.name == _REBUILD and last == event.host:
                continue
            steps.append(
                _Step(
                    _arrival(past, event),
                    event.host,
                    _CROSS_CELL.get(event.name, event.name),
                    action.name,
                )
            )
        if action.name in _SHELVES:
            ends = [each.finish for each in done if each.finish is not None]
            shelved = max(ends, default=action.start)
    if (
        past.server.status == _OFFLOADED
        and steps
        and steps[-1].host
        and _end(past) is None
    ):
        if shelved is None:
            # Nova keeps no record of it.
            steps.append(_Step(steps[-1].time, None, by=past.updated))
        else:
            steps.append(_Step(shelved, None))
    return steps


def _arrival(past: PastServer, event: Event) -> int:
    """Return when a server began to run on a host."""
    finish = event.finish or event.start
    if event.name == _LIVE:
        # It runs there already; the rest is bookkeeping.
        return event.start
    if past.launched is not None and event.start <= past.launched <= finish:
        return past.launched
    return finish


def _stays(
    past: PastServer,
    steps: Sequence[_Step],
    end: int | None,
    migrations: Sequence[Migration],
    flavors: Mapping[int, Flavor],
    keys: KeysOf,
) -> Iterable[Stay]:
    """Yield the stays between the steps."""
    flavor = past.server.flavor
    stays: list[Stay] = []
    following: _Step | None = None
    for step in reversed(steps):
        if step.host:
            until, end_from = end, None
            if following:
                until, end_from = following.time, None
                if following.by is not None:
                    until, end_from = following.by, following.time
            stay = _stay(past, step, flavor, keys, until, end_from)
            after = stays[-1] if stays else None
            if (
                after
                and after.host == stay.host
                and after.flavor == stay.flavor
                and stay.end == after.start
            ):
                stays[-1] = dataclasses.replace(
                    after, start=stay.start, start_by=stay.start_by
                )
            else:
                stays.append(stay)
        flavor = _flavor_before(step, flavor, migrations, flavors)
        following = step
    return reversed(stays)


def _flavor_before(
    step: _Step,
    flavor: Flavor | None,
    migrations: Sequence[Migration],
    flavors: Mapping[int, Flavor],
) -> Flavor | None:
    """Return the flavor that a server had before a step; None if unknown."""
    if step.event not in (_RESIZE, _REVERT) or step.action == 'migrate':
        return flavor
    earlier = [m for m in migrations if m.created <= step.time]
    if not earlier:
        return None
    last = max(earlier, key=lambda migration: migration.created)
    before, after = last.flavors
    if before == after:
        return flavor
    number = before if step.event == _RESIZE else after
    return None if number is None else flavors.get(number)


def _stay(
    past: PastServer,
    step: _Step,
    flavor: Flavor | None,
    keys: KeysOf,
    end: int | None,
    end_from: int | None = None,
) -> Stay:
    return Stay(
        step.time,
        end,
        past.server.id,
        step.host or '',
        past.server.project_id,
        flavor.name if flavor else None,
        flavor.vcpus if flavor else None,
        keys(flavor),
        step.by,
        end_from,
    )
