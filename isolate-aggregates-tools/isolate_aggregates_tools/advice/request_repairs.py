# SPDX-License-Identifier: Apache-2.0
"""Finds the commands after which a request gets a host.

Each change that ``proposals`` proposes is carried out on a copy of the cloud
in memory, and the request is decided on again. A change is returned only if it
gives the request a host, Nova does not refuse it, it takes the last host from
no other server, and no part of it can be left out. If no single change does,
pairs are tried.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import itertools

from isolate_aggregates.aggregates.aggregate import zone_of
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.text import named
from isolate_aggregates_tools import ranges, shell
from isolate_aggregates_tools.advice.effects import Effects
from isolate_aggregates_tools.advice.full_hosts import FullHosts
from isolate_aggregates_tools.advice.proposals import Ways
from isolate_aggregates_tools.answers import scope
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.repairs import commands, outcome, unpinning
from isolate_aggregates_tools.repairs.commands import SYNC, Commands
from isolate_aggregates_tools.repairs.repair import Repair
from isolate_aggregates_tools.request import Request

# The most ways that are returned.
_MOST = 6
# The most ways of which pairs are tried.
_PAIRED = 8


def mendings(effects: Effects, request: Request) -> tuple[Repair, ...]:
    """Return ways to give a host to a request that gets none.

    What gives a key comes first, and what takes a lock away last. If there is
    none, that is said.

    :param effects: The effects of repairs of the cloud.
    """
    ways = Ways(effects.snapshot, request, effects.pipeline, effects.filters)
    found = itertools.islice(_Mender(ways, effects).repairs(), _MOST)
    return tuple(dict.fromkeys(found)) or (
        Repair(
            text='No single change of the cloud, and no two together, would '
            'give it a host; ask for less, or add a host that has what it '
            'needs',
            is_tried=False,
        ),
    )


@dataclasses.dataclass(frozen=True)
class _Mender:
    ways: Ways
    effects: Effects

    @property
    def snapshot(self) -> Snapshot:
        return self.ways.snapshot

    @property
    def request(self) -> Request:
        return self.ways.request

    def repairs(self) -> Iterator[Repair]:
        additions, removals = (
            list(dict.fromkeys(map(_ordered, some)))
            for some in (self.ways.additions(), self.ways.removals())
        )
        yield from self._in_projects()
        ways = [way for way in additions if self._helps(way)]
        yield from self._kept(ways or self._pairs(additions))
        yield from self._other_requests()
        yield from self._full.repairs()
        yield from self._down()
        helping = [way for way in removals if self._helps(way)]
        yield from self._kept(helping)
        yield from self.ways.texts
        if not ways and not helping:
            yield from self._kept(self._pairs(removals))

    def _in_projects(self) -> Iterator[Repair]:
        """Yield the projects that get a host, if none was named.

        That of the request is a key which may only be missing in the question.
        """
        if self.request.project_id:
            return
        some = scope.projects(self.snapshot.aggregates, self.ways.pipeline)
        projects = [
            project
            for project in filter(None, some)
            if self.ways.hosts(
                self.snapshot,
                dataclasses.replace(self.request, project_id=project),
            )
        ]
        if projects:
            yield Repair(
                text='name the project of the server with --project: '
                f'{named("project", projects)} '
                f'{"get" if len(projects) > 1 else "gets"} a host'
            )

    def _pairs(self, ways: Sequence[Commands]) -> Iterator[Commands]:
        """Yield pairs of ways that help together, if need be with sync."""
        for first, second in itertools.combinations(ways[:_PAIRED], 2):
            for more in ((), SYNC):
                todo = _ordered((*first, *second, *more))
                if self._helps(todo):
                    yield todo
                    break

    def _kept(
        self, ways: Iterator[Commands] | Sequence[Commands]
    ) -> Iterator[Repair]:
        """Yield the ways that hold, without what can be left out."""
        for way in ways:
            todo = self._least(way)
            if not any(
                outcome.refused_steps(
                    self.snapshot, todo, self.effects.filters
                )
            ) and not any(
                # A project may be one that is misspelled.
                asker.project is None
                for asker in self.effects.compared(todo).stranded
            ):
                yield Repair(todo)

    def _least(self, todo: Commands) -> Commands:
        """Return commands without those that can be left out."""
        for part in parts(todo):
            rest = tuple(each for each in todo if each not in part)
            if rest and self._helps(rest):
                todo = rest
        return todo

    def _helps(self, todo: Commands) -> bool:
        return bool(todo and self._hosts_after(todo))

    def _hosts_after(self, todo: Commands) -> frozenset[str]:
        after = outcome.after(self.snapshot, todo, self.effects.filters)
        if after is self.snapshot:
            return frozenset()
        return self.ways.hosts(after, self._changed(after))

    def _changed(self, after: Snapshot) -> Request:
        """Return the request for the flavor and image as they are then."""
        flavor, image = self.request.flavor, self.request.image
        if self.ways.flavor:
            place = self.snapshot.flavors.index(self.ways.flavor)
            flavor = after.flavors[place]
        if image in self.snapshot.images:
            image = after.images[self.snapshot.images.index(image)]
        return dataclasses.replace(self.request, flavor=flavor, image=image)

    def _other_requests(self) -> Iterator[Repair]:
        """Yield what could be asked for instead."""
        zone, host = (
            self.request.availability_zone,
            self.request.requested_host,
        )
        if zone and self.request.is_accepted and not host:
            anywhere = dataclasses.replace(
                self.request, availability_zone=None
            )
            if self.ways.hosts(self.snapshot, anywhere):
                release = self.request.nova_release
                yield Repair(text=unpinning.advice('SERVER', zone, release))
            return
        other = self._other_zone() if zone else None
        if zone and other:
            yield Repair(
                text='request it with --availability-zone '
                f'{shell.quoted(other)} instead of {shell.quoted(zone)}'
            )
        if not host:
            return
        free = dataclasses.replace(
            self.request, requested_host=None, host_forced=False
        )
        hosts = self.ways.hosts(self.snapshot, free)
        if hosts:
            yield Repair(
                text='request no host, or one of '
                f'{ranges.folded(hosts)}, with --host'
            )
        elif zone:
            anywhere = dataclasses.replace(free, availability_zone=None)
            if self.ways.hosts(self.snapshot, anywhere):
                yield Repair(text='request neither a zone nor a host')

    def _other_zone(self) -> str | None:
        """Return another zone in which the request gets a host."""
        anywhere = dataclasses.replace(self.request, availability_zone=None)
        by_host = self.snapshot.index.by_host
        zones = dict.fromkeys(
            zone_of(aggregate)
            for host in sorted(self.ways.hosts(self.snapshot, anywhere))
            for aggregate in by_host.get(host, ())
        )
        for zone in zones:
            request = dataclasses.replace(self.request, availability_zone=zone)
            if (
                zone
                and zone != self.request.availability_zone
                and self.ways.hosts(self.snapshot, request)
            ):
                return zone
        return None

    @lazy_property
    def _full(self) -> FullHosts:
        return FullHosts(self.ways, self.effects.requests)

    def _down(self) -> Iterator[Repair]:
        """Yield the hosts that would do if their services were up."""
        down = self.snapshot.down_hosts
        if not down or self._full.hosts:
            return
        up = dataclasses.replace(self.snapshot, services=None)
        hosts = down & self.ways.hosts(up, self.request)
        if hosts:
            yield Repair(
                text=f'start nova-compute on {named("host", hosts)}, which '
                'would do but is down'
            )


def parts(todo: Commands) -> Iterator[frozenset[commands.Command]]:
    """Yield the parts of commands that could be left out.

    What sets and unsets values of one object is a single part: it replaces
    something.
    """
    by_object: dict[frozenset[tuple[str, str]], list[commands.Command]] = {}
    for command in todo:
        by_object.setdefault(command.things, []).append(command)
    for things, some in by_object.items():
        verbs = {command[2:3] for command in some}
        if len(verbs) > 1 and commands.EVERYTHING not in things:
            yield frozenset(some)
        else:
            yield from (frozenset({command}) for command in some)


def _ordered(todo: Commands) -> Commands:
    """Return commands without repetitions, and with sync last."""
    return tuple(sorted(dict.fromkeys(todo), key=lambda each: (each,) == SYNC))
