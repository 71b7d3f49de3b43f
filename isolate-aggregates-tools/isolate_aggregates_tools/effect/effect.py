# SPDX-License-Identifier: Apache-2.0
"""Computes the effect of a change: the answers after it, and before it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
import dataclasses
from typing import Annotated, TypeVar

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.aggregates.aggregate import zone_of
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools import filter_keys
from isolate_aggregates_tools.answers import deciding, offers, scope
from isolate_aggregates_tools.answers.deciding import Question, Questions
from isolate_aggregates_tools.answers.offers import Offers
from isolate_aggregates_tools.audit import CHECKS, AuditedCloud, Finding, audit
from isolate_aggregates_tools.audit.servers import (
    OutOfPlace,
    misplaced,
    out_of_place,
)
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import Servers

_K = TypeVar('_K')
_V = TypeVar('_V')
_Hosts = frozenset[str]
_NONE: _Hosts = frozenset()

# Nothing is known about these servers, before or after the change.
_UNKNOWN = 'server-not-evaluated'


@dataclasses.dataclass(frozen=True)
class AccessChange:
    """The hosts and the room for servers of a flavor, before and after.

    :param flavor: The name of the flavor; empty for any flavor without extra
        specs.
    :param image: The name of the image; None for images without keys.
    :param gained: The hosts that servers may use only after the change,
        whether there is room or not.
    :param lost: The hosts that servers may use only before the change.
    :param hosts: The numbers of hosts that servers may use.
    :param slots: The numbers of servers for which there is room.
    """

    flavor: str
    image: str | None
    gained: frozenset[str]
    lost: frozenset[str]
    hosts: tuple[int, int]
    slots: tuple[int, int]

    @property
    def is_stranded(self) -> bool:
        """Whether no host is left."""
        return self.hosts[1] == 0 < self.hosts[0]


@dataclasses.dataclass(frozen=True)
class ProjectChange:
    """The hosts that servers of a project gain or lose, as in a document.

    The servers are of any flavor.

    :param project: The id of a project that aggregates name.
    """

    project: str
    gained: frozenset[str]
    lost: frozenset[str]


@dataclasses.dataclass(frozen=True)
class LockChange:
    """The hosts that get or lose a lock, a reservation or a zone.

    :param lock: The name of the lock or of the availability zone, or the
        metadata key of the reservation.
    """

    lock: str
    gained: frozenset[str]
    lost: frozenset[str]


@dataclasses.dataclass(frozen=True)
class UserChange:
    """Who may use a flavor, before and after, as in a document.

    :param flavor: The name of the flavor.
    """

    flavor: str
    before: Annotated[
        frozenset[str] | None, 'The ids of the projects; null for all.'
    ]
    after: frozenset[str] | None


@dataclasses.dataclass(frozen=True)
class Effect:
    """What a change does.

    :param servers_known: Whether the servers of the cloud are known.
    :param displaced: The servers that are out of place only after it.
    :param placed: The servers that are out of place only before it.
    :param doubtful: Those of which it is not known whether they are out of
        place after the change.
    :param flavors: The flavors, with images, whose hosts or room change.
    :param users: The flavors that other projects may use than before.
    :param projects: The projects whose hosts change.
    :param locks: The locks whose hosts change.
    :param reservations: The reservations whose hosts change.
    :param zones: The availability zones whose hosts change.
    :param new_findings: The findings of an audit that appear, without those on
        servers.
    :param old_findings: The findings that go.
    :param longest_query: The lengths of the longest query to Placement in
        bytes, before it is shortened.
    :param max_query_length: The configured limit; 0 for none.
    """

    servers_known: bool
    displaced: tuple[OutOfPlace, ...]
    placed: tuple[OutOfPlace, ...]
    doubtful: tuple[OutOfPlace, ...]
    flavors: tuple[AccessChange, ...]
    users: tuple[UserChange, ...]
    projects: tuple[ProjectChange, ...]
    locks: tuple[LockChange, ...]
    reservations: tuple[LockChange, ...]
    zones: tuple[LockChange, ...]
    new_findings: tuple[Finding, ...]
    old_findings: tuple[Finding, ...]
    longest_query: tuple[int, int]
    max_query_length: int

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return (
            any(
                getattr(self, field)
                for field in (
                    'displaced',
                    'placed',
                    'doubtful',
                    'flavors',
                    'users',
                    'projects',
                    'locks',
                    'reservations',
                    'zones',
                    'new_findings',
                    'old_findings',
                )
            )
            or self.longest_query[0] != self.longest_query[1]
        )

    @property
    def stranded_flavors(self) -> tuple[str, ...]:
        """The names of the flavors that are left without any host.

        With images that open locks, too.
        """
        return _stranded((each.flavor, each) for each in self.flavors)

    @property
    def stranded_images(self) -> tuple[str, ...]:
        """The names of the images with which no flavor has a host left.

        Images without keys are left out: the flavors say it.
        """
        return _stranded(
            (each.image, each) for each in self.flavors if each.image
        )


def effect(
    before: Snapshot,
    after: Snapshot,
    conf: cfg.ConfigOpts,
    moved: Servers | None = None,
) -> Effect:
    """Return the effect of a change.

    :param before: The cloud before the change, with its servers if these shall
        be judged.
    :param after: The cloud after the change. The servers are those of before.
    :param conf: The configuration of nova-scheduler.
    :param moved: The servers after the change, if it moves some.
    """
    with deciding.silent():
        return _effect(before, after, conf, moved or before.servers)


def _effect(
    before: Snapshot,
    after: Snapshot,
    conf: cfg.ConfigOpts,
    moved: Servers | None,
) -> Effect:
    servers = before.servers
    old = AuditedCloud.of(before, conf, servers=servers)
    new = AuditedCloud.of(
        after, conf, servers=moved and _with_images(moved, after)
    )
    worlds = _World(old), _World(new)
    flavors = tuple(_access_changes(*worlds))
    was, now = _misplaced(old), _misplaced(new)
    doubts = _doubtful(old), _doubtful(new)
    findings = _findings(old), _findings(new)
    projects = tuple(_project_changes(*worlds))
    return Effect(
        servers_known=servers is not None,
        displaced=_only_in(now, was),
        placed=_only_in(was, now),
        doubtful=_only_in(doubts[1], doubts[0]),
        flavors=flavors,
        users=tuple(_user_changes(before, after)),
        projects=projects,
        locks=tuple(_lock_changes(_hosts_by_lock(old), _hosts_by_lock(new))),
        reservations=tuple(
            _lock_changes(
                _hosts_by_reservation(old), _hosts_by_reservation(new)
            )
        ),
        zones=tuple(
            _lock_changes(_hosts_by_zone(before), _hosts_by_zone(after))
        ),
        new_findings=_only_in(findings[1], findings[0]),
        old_findings=_only_in(findings[0], findings[1]),
        # After all questions.
        longest_query=(worlds[0].longest, worlds[1].longest),
        max_query_length=conf[ia_conf.GROUP].max_query_length,
    )


def _only_in(some: Mapping[_K, _V], others: Mapping[_K, _V]) -> tuple[_V, ...]:
    """Return the values of which the others do not have the key."""
    return tuple(each for key, each in some.items() if key not in others)


class _World:
    """The answers for a cloud."""

    def __init__(self, cloud: AuditedCloud) -> None:
        self.pipeline = Pipeline((*cloud.running, *cloud.mirrors))
        self.snapshot = cloud.snapshot
        self.longest = 0
        self._questions = Questions(
            cloud.snapshot, self.pipeline, cloud.requests
        )
        self._offers = Offers(cloud.snapshot)
        self.flavors = {
            scope.identity(f): f for f in scope.flavors(cloud.snapshot)
        }
        self.images = {
            scope.identity(image): image for image in cloud.snapshot.images
        }

    def question(
        self, flavor: Flavor, image: Image | None, project: str | None
    ) -> Question | None:
        """Return the query of servers; None if they are refused."""
        question = self._questions.of(flavor, image, project)
        self._measure(question)
        return question

    def _measure(self, question: Question | None) -> None:
        for query in question.queries if question else ():
            self.longest = max(self.longest, len(query.to_querystring()))

    def hosts_by_project(
        self, projects: Collection[str]
    ) -> Mapping[str, _Hosts]:
        """Return the hosts that projects may use, with any of the flavors.

        There are as many questions as pairs of a project and a flavor, so none
        is kept.
        """
        nodes = dict.fromkeys(projects, 0)
        for flavor in self.flavors.values():
            for project in projects:
                question = self._questions.once(flavor, None, project)
                self._measure(question)
                if question:
                    nodes[project] |= self._offers.once(question)
        return {
            project: self._offers.hosts_of(some)
            for project, some in nodes.items()
        }

    def hosts(self, question: Question | None) -> _Hosts:
        """Return the hosts that servers may use."""
        return self._offers.hosts(question)

    def slots(self, question: Question | None) -> int:
        """Return the number of servers for which there is room."""
        return offers.room(self.snapshot, question, self._offers)


def _access_changes(old: _World, new: _World) -> Iterator[AccessChange]:
    kinds = [
        None if image is None else scope.identity(image)
        for image in scope.images(old.snapshot, old.pipeline)
    ]
    for number in old.flavors | new.flavors:
        flavors = old.flavors.get(number), new.flavors.get(number)
        for kind in kinds:
            images = (
                None if kind is None else old.images[kind],
                None if kind is None else new.images.get(kind),
            )
            questions = [
                world.question(flavor, image, None)
                if flavor and (kind is None or image)
                else None
                for world, flavor, image in zip(
                    (old, new), flavors, images, strict=True
                )
            ]
            was, now = old.hosts(questions[0]), new.hosts(questions[1])
            slots = old.slots(questions[0]), new.slots(questions[1])
            if was != now or slots[0] != slots[1]:
                some = flavors[1] or flavors[0]
                image = images[1] or images[0]
                yield AccessChange(
                    some.name if some else '',
                    image.name if image else None,
                    now - was,
                    was - now,
                    (len(was), len(now)),
                    slots,
                )


def _user_changes(before: Snapshot, after: Snapshot) -> Iterator[UserChange]:
    old = {scope.identity(flavor): flavor for flavor in before.flavors}
    # A flavor that is made anew has another id, but is asked for by its name.
    remaining = {scope.identity(flavor) for flavor in after.flavors}
    replaced = {
        flavor.name: flavor
        for key, flavor in old.items()
        if key not in remaining
    }
    for flavor in after.flavors:
        was = old.get(scope.identity(flavor)) or replaced.get(flavor.name)
        users = _users(flavor)
        old_users = _users(was) if was else _NONE
        if users != old_users:
            yield UserChange(flavor.name, old_users, users)


def _users(flavor: Flavor) -> frozenset[str] | None:
    return None if flavor.is_public else flavor.projects


def _project_changes(old: _World, new: _World) -> Iterator[ProjectChange]:
    aggregates = [
        *_other_aggregates(old.snapshot, new.snapshot),
        *_other_aggregates(new.snapshot, old.snapshot),
    ]
    projects = [
        project
        for project in scope.projects(aggregates, new.pipeline)
        if project is not None
    ]
    was, now = (world.hosts_by_project(projects) for world in (old, new))
    for project in projects:
        gained = now[project] - was[project]
        lost = was[project] - now[project]
        if gained or lost:
            yield ProjectChange(project, gained, lost)


def _lock_changes(
    was: Mapping[str, _Hosts], now: Mapping[str, _Hosts]
) -> Iterator[LockChange]:
    for name in sorted(was.keys() | now.keys()):
        before, after = was.get(name, _NONE), now.get(name, _NONE)
        if before != after:
            yield LockChange(
                name,
                after - before,
                before - after,
            )


def _hosts_by_lock(cloud: AuditedCloud) -> Mapping[str, _Hosts]:
    return {
        lock.name: _NONE.union(*(a.hosts for a in lock.aggregates))
        for lock in cloud.locks
    }


def _hosts_by_reservation(cloud: AuditedCloud) -> Mapping[str, _Hosts]:
    prefixes = tuple(
        prefix
        for entry in cloud.running
        for prefix in filter_keys.of_reservations(
            entry.request_filter
        ).required
    )
    hosts: dict[str, _Hosts] = {}
    for aggregate in cloud.snapshot.aggregates:
        for key in aggregate.metadata:
            if key.startswith(prefixes):
                hosts[key] = hosts.get(key, _NONE) | aggregate.hosts
    return hosts


def _hosts_by_zone(snapshot: Snapshot) -> Mapping[str, _Hosts]:
    hosts: dict[str, _Hosts] = {}
    for aggregate in snapshot.aggregates:
        zone = zone_of(aggregate)
        if zone:
            hosts[zone] = hosts.get(zone, _NONE) | aggregate.hosts
    return hosts


def _misplaced(cloud: AuditedCloud) -> Mapping[str, OutOfPlace]:
    return {
        each.server.id: each
        for each in out_of_place(cloud)
        if each.kind != _UNKNOWN
    }


def _doubtful(cloud: AuditedCloud) -> Mapping[tuple[str, str], OutOfPlace]:
    return {
        (each.server.id, each.text): each
        for each in out_of_place(cloud)
        if each.kind == _UNKNOWN
    }


def _findings(cloud: AuditedCloud) -> Mapping[tuple[str, ...], Finding]:
    checks = [check for check in CHECKS if check is not misplaced]
    return {
        (each.kind, each.subject, each.problem): each
        for each in audit(cloud, checks)
    }


def _with_images(servers: Servers, snapshot: Snapshot) -> Servers:
    """Return servers with the images of another snapshot.

    Images that only servers know stay as they are.
    """
    images = {image.id: image for image in snapshot.images}
    return dataclasses.replace(servers, images={**servers.images, **images})


def _other_aggregates(one: Snapshot, other: Snapshot) -> list[Aggregate]:
    """Return the aggregates of a cloud that another does not have so."""
    others = {aggregate.uuid: aggregate for aggregate in other.aggregates}
    return [a for a in one.aggregates if a != others.get(a.uuid)]


def _stranded(changes: Iterable[tuple[str, AccessChange]]) -> tuple[str, ...]:
    had, has = set[str](), set[str]()
    for name, change in changes:
        if change.hosts[0]:
            had.add(name)
        if change.hosts[1]:
            has.add(name)
    return tuple(sorted(had - has))
