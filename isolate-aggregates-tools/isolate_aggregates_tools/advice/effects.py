# SPDX-License-Identifier: Apache-2.0
"""Says whom a repair lets in.

The repair is carried out in memory, and the access before and after it is
compared. This is done for the cloud as it is, and for the cloud as it will be
after ``sync``: a repair may open what ``sync`` completes only later.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import itertools
from typing import TYPE_CHECKING, Self

from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools.advice import many_repairs
from isolate_aggregates_tools.advice.admitted import (
    KnownOpenings,
    Opening,
    openings,
    sentence,
)
from isolate_aggregates_tools.answers import deciding, scope
from isolate_aggregates_tools.answers.deciding import Questions
from isolate_aggregates_tools.answers.offers import Offers
from isolate_aggregates_tools.answers.requests import Requests
from isolate_aggregates_tools.answers.scope import Asker
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.repairs import commands, outcome
from isolate_aggregates_tools.repairs.commands import Commands
from isolate_aggregates_tools.repairs.repair import Repair
from isolate_aggregates_tools.simulator.index import ProviderSet

if TYPE_CHECKING:
    from isolate_aggregates_tools.audit.cloud import AuditedCloud

_Hosts = frozenset[str]
_NONE: _Hosts = frozenset()
# Lets no server in.
_DELETE_FLAVOR = ('flavor', 'delete')


@dataclasses.dataclass(frozen=True)
class Advice:
    """A repair, ready to be shown.

    :param line: The commands as one line for a shell; empty if there are none.
    :param text: What to do, or what else the commands do and whom they let
        in; empty if that is nothing and nobody.
    :param opens: Whom they let in, as data.
    """

    line: str
    text: str
    safe: bool = False
    opens: tuple[Opening, ...] = ()
    is_tried: bool = True

    def __str__(self) -> str:
        if self.line and self.text:
            return f'{self.line} ({self.text})'
        return self.line or self.text


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Who may use which hosts before and after a repair.

    :param gains: The hosts that servers gain, also in between.
    :param losses: The hosts that they may use now, and lose.
    :param stranded: The servers that lose all hosts they had.
    """

    gains: Mapping[Asker, _Hosts]
    losses: Mapping[Asker, _Hosts]
    stranded: frozenset[Asker]


class Effects:
    """Computes whom repairs of a cloud let in.

    :param pipeline: The filters that decide, and those of Nova.
    :param filters: All configured filters, whose locks ``sync`` maintains.
    :param requests: Builds the requests of servers.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        pipeline: Pipeline,
        filters: Pipeline,
        requests: Requests,
    ) -> None:
        self.snapshot = snapshot
        self.pipeline = pipeline
        self.filters = filters
        self.requests = requests
        self._compared: dict[Commands, Comparison] = {}
        self._opened: dict[Commands, tuple[tuple[Opening, ...], str]] = {}
        self._known: KnownOpenings = {}
        # The last changed cloud; its questions are asked more than once.
        self._changed: tuple[Snapshot, Questions] | None = None

    @classmethod
    def of(cls, cloud: 'AuditedCloud') -> Self:
        """Return the effects of the repairs of a cloud."""
        return cls(
            cloud.snapshot,
            cloud.pipeline,
            Pipeline(cloud.filters),
            cloud.requests,
        )

    def advice(self, repairs: Iterable[Repair]) -> Iterator[Advice]:
        """Yield the repairs that can be shown, in order."""
        for repair in repairs:
            line = commands.shown(repair.commands, self._names)
            if line:
                opens, said = self._opens(repair.commands)
                if more := openings(dict(repair.together), self._known):
                    text = self._sentence(more)
                    made = 'after the first repair of each other finding, also'
                    said = '; '.join(filter(None, (said, f'{made} {text}')))
                said = '; '.join(filter(None, (repair.note, said)))
                yield Advice(line, said, repair.safe, (*opens, *more))
            elif repair.text:
                yield Advice('', repair.text, is_tried=repair.is_tried)

    def _opens(self, todo: Commands) -> tuple[tuple[Opening, ...], str]:
        """Return whom commands let in, and the same in words."""
        # A repair like sync is that of many findings.
        if todo not in self._opened:
            self._opened[todo] = self._openings(todo)
        return self._opened[todo]

    def _openings(self, todo: Commands) -> tuple[tuple[Opening, ...], str]:
        compared = self.compared(todo)
        some = openings(compared.gains, self._known)
        names = {name for opening in some for name in opening.flavors}
        former_hosts = _NONE.union(
            *(
                compared.losses.get(asker, _NONE)
                for asker in compared.gains
                if asker.flavor in names
            )
        )
        return some, self._sentence(some, former_hosts)

    def _sentence(
        self, some: Iterable[Opening], former_hosts: _Hosts = _NONE
    ) -> str:
        flavors = len(self.snapshot.flavors)
        return sentence(some, flavors, former_hosts, self._owned)

    @lazy_property
    def _owned(self) -> _Hosts:
        """The hosts in aggregates that name projects."""
        naming = scope.project_naming(self.pipeline)
        return _NONE.union(
            *(each.hosts for each in self.snapshot.aggregates if naming(each))
        )

    def compared(self, todo: Commands) -> Comparison:
        """Return who may use which hosts before and after commands."""
        if todo not in self._compared:
            with deciding.silent():
                self._compared[todo] = self._compare(todo)
        return self._compared[todo]

    def compare(self, some: Iterable[Commands]) -> None:
        """Compare the clouds before and after commands, many at once.

        Those that depend on each other are compared when they are asked for.
        """
        unknown = (todo for todo in some if todo not in self._compared)
        repairs = many_repairs.local(self.snapshot, unknown)
        if len(repairs.hosts) > 1:
            with deciding.silent():
                self._compared.update(self._compared_at_once(repairs))

    def _compared_at_once(
        self, repairs: many_repairs.Local
    ) -> Mapping[Commands, Comparison]:
        """Return comparisons; none if something else has changed too."""
        before, after = self.snapshot, repairs.after
        worlds = [self._everywhere]
        worlds.append(self._worlds(after, None, *worlds))
        shares = [
            many_repairs.Shares(repairs.hosts, *each)
            for each in zip(*worlds, strict=True)
        ]
        projects = self._projects_at(repairs)
        known = [offers.traits for offers in itertools.chain(*worlds)]
        traits = known[0].union(*known) - known[0].intersection(*known)
        old_questions = self.questions(before)
        questions = self.questions(after)
        # Most servers use the same of the hosts that matter.
        alike: dict[
            tuple[str | None, tuple[many_repairs.Use, ...]], list[Asker]
        ]
        alike = {}
        for flavor, image, project in itertools.product(
            scope.flavors(before),
            tuple(scope.images(before, self.pipeline)),
            dict.fromkeys(p for some in projects.values() for p in some),
        ):
            old = old_questions.of(flavor, image, project)
            new = questions.of(flavor, image, project)
            if not many_repairs.is_local(old, new, traits):
                return {}
            uses = tuple(each.use(old, new) for each in shares)
            alike.setdefault((project, uses), []).append(
                Asker(flavor.name, image.name if image else None, project)
            )
        gains: _Gains = {todo: {} for todo in repairs.hosts}
        losses: _Gains = {todo: {} for todo in repairs.hosts}
        stranded: dict[Commands, list[Asker]] = {todo: [] for todo in gains}
        for (project, uses), askers in alike.items():
            moves = [
                each.of(use) for each, use in zip(shares, uses, strict=True)
            ]
            for todo in dict.fromkeys(itertools.chain(*moves)):
                if project not in projects[todo]:
                    continue
                both = [each[todo] for each in moves if todo in each]
                more, less = map(_NONE.union, *both)
                lost = less & worlds[0][0].hosts_of(uses[0].was)
                if more:
                    gains[todo] |= dict.fromkeys(askers, more)
                if lost:
                    losses[todo] |= dict.fromkeys(askers, lost)
                if less:
                    had = uses[0].was or uses[0].elsewhere
                    if had and shares[-1].strands(todo, uses[-1]):
                        stranded[todo] += askers
        return {
            todo: Comparison(gains[todo], losses[todo], frozenset(some))
            for todo, some in stranded.items()
        }

    def _projects_at(
        self, repairs: many_repairs.Local
    ) -> Mapping[Commands, tuple[str | None, ...]]:
        """Return the projects to ask about for the hosts of each repair."""
        named: dict[str, frozenset[str]] = {}
        naming = scope.project_naming(self.pipeline)
        for snapshot in (self.snapshot, repairs.after):
            for each in snapshot.aggregates:
                if names := naming(each):
                    named[each.uuid] = named.get(each.uuid, _NONE) | names
        uuids_of = self.snapshot.index.aggregates_of
        return {
            todo: scope.first_projects(
                project
                for uuid in _NONE.union(*(uuids_of[host] for host in hosts))
                for project in named.get(uuid, ())
            )
            for todo, hosts in repairs.hosts.items()
        }

    def gains(self, after: Snapshot) -> Mapping[Asker, _Hosts]:
        """Return the hosts that servers gain in a changed cloud."""
        with deciding.silent():
            return {a: more for a, more, _, _ in self._differences(after)}

    @lazy_property
    def _names(self) -> Mapping[str, str]:
        return {
            **commands.names(self.snapshot.flavors),
            **commands.names(self.snapshot.images),
        }

    def questions(self, snapshot: Snapshot) -> Questions:
        """Return the questions to the cloud, or to it after a change."""
        if scope.decided_alike(self.snapshot, snapshot):
            return self._questions
        if self._changed is None or self._changed[0] != snapshot:
            questions = Questions(snapshot, self.pipeline, self.requests)
            self._changed = snapshot, questions
        return self._changed[1]

    @lazy_property
    def _questions(self) -> Questions:
        return Questions(self.snapshot, self.pipeline, self.requests)

    def offers(self, snapshot: Snapshot) -> Offers:
        """Return the offers of the cloud, or of it after a change."""
        return _offers(snapshot, *self._everywhere)

    @lazy_property
    def _everywhere(self) -> '_Worlds':
        return self._worlds(self.snapshot, None, ())

    def _worlds(
        self,
        snapshot: Snapshot,
        hosts: frozenset[str] | None,
        before: Sequence[Offers],
    ) -> '_Worlds':
        """Return a cloud as it is and after sync.

        :param hosts: The hosts that matter; None for all.
        :param before: The same with these hosts before a change, if known.
        """
        complete = scope.completed(snapshot, self.snapshot.index.by_host)
        if hosts is not None:
            snapshot = scope.among(snapshot, hosts)
            complete = scope.among(complete, hosts)
        first = _offers(snapshot, *before)
        later = outcome.synced(complete, self.filters, self.snapshot)
        return first, _offers(later, *before[::-1], first)

    def _compare(self, todo: Commands) -> Comparison:
        gains: dict[Asker, _Hosts] = {}
        losses: dict[Asker, _Hosts] = {}
        stranded: set[Asker] = set()
        # Each command is compared: nothing may be open only in between.
        afters = outcome.outcomes(self.snapshot, todo, self.filters)
        for command, after in zip(todo, afters, strict=True):
            if after is self.snapshot or command[1:3] == _DELETE_FLAVOR:
                continue
            losses, stranded = {}, set()
            for asker, more, less, is_stranded in self._differences(after):
                gains[asker] = gains.get(asker, frozenset()) | more
                losses[asker] = less
                if is_stranded:
                    stranded.add(asker)
        return Comparison(
            {asker: hosts for asker, hosts in gains.items() if hosts},
            {asker: hosts for asker, hosts in losses.items() if hosts},
            frozenset(stranded),
        )

    def _differences(
        self, after: Snapshot
    ) -> Iterator[tuple[Asker, _Hosts, _Hosts, bool]]:
        """Yield the hosts that servers gain and lose, and if that is all."""
        old_questions = self.questions(self.snapshot)
        questions = self.questions(after)
        hosts = scope.affected(self.snapshot, after)
        if hosts is None or self._everywhere[1].is_of(after):
            hosts = None
            old_worlds = self._everywhere
        else:
            old_worlds = self._worlds(self.snapshot, hosts, ())
        new_worlds = self._worlds(after, hosts, old_worlds)
        # Most servers use the same.
        moved: dict[object, tuple[_Hosts, ...]] = {}
        for asker, was, now in self._affected_servers(after):
            old, new = old_questions.of(*was), questions.of(*now)
            if old is None and new is not None:
                # It is no longer refused, so it may use other hosts too.
                worlds = (*self._everywhere, *new_worlds)
                more = _NONE.union(*(world.hosts(new) for world in worlds))
                yield asker, more, _NONE, False
                continue
            uses = tuple(
                (before.usable(old), later.usable(new))
                for before, later in zip(old_worlds, new_worlds, strict=True)
            )
            if uses not in moved:
                moves = map(_moved, old_worlds, new_worlds, uses)
                moved[uses] = tuple(map(_NONE.union, *moves))
            more, less = moved[uses]
            is_stranded = False
            if less and not new_worlds[-1].usable(new):
                # After sync, those among the affected hosts are gone.
                now_, later = (world.hosts(old) for world in self._everywhere)
                rest = later - hosts if hosts is not None else _NONE
                is_stranded = bool(now_ and later and not rest)
            # What sync alone would open is nobody's yet.
            lost = less & old_worlds[0].hosts_of(uses[0][0]) if less else less
            yield asker, more, lost, is_stranded

    def _affected_servers(
        self, after: Snapshot
    ) -> Iterator[tuple[Asker, '_Servers', '_Servers']]:
        """Yield the servers that a change may affect, before and after it."""
        before = self.snapshot
        flavors = {
            scope.identity(flavor): flavor for flavor in scope.flavors(before)
        }
        images = {scope.identity(image): image for image in before.images}
        kinds: dict[str | None, None] = dict.fromkeys(
            scope.identity(image) if image else None
            for image in scope.images(before, self.pipeline)
        )
        now = {scope.identity(image): image for image in after.images}
        changed_images: dict[str | None, None] = dict.fromkeys(
            number for number, image in now.items() if image != images[number]
        )
        everybody = (
            before.aggregates is not after.aggregates
            or before.providers is not after.providers
            or before.traits is not after.traits
        )
        projects = self._projects(after)
        for flavor in scope.flavors(after):
            old = flavors[scope.identity(flavor)]
            is_affected_servers = everybody or flavor != old
            for number in kinds if is_affected_servers else changed_images:
                was = None if number is None else images[number]
                image = None if number is None else now[number]
                for project in projects:
                    yield (
                        Asker(
                            flavor.name, image.name if image else None, project
                        ),
                        (old, was, project),
                        (flavor, image, project),
                    )

    def _projects(self, after: Snapshot) -> tuple[str | None, ...]:
        """Return the projects to ask about."""
        hosts = scope.affected(self.snapshot, after)
        return scope.projects(
            (
                aggregate
                for snapshot in (self.snapshot, after)
                for aggregate in snapshot.aggregates
                # Hosts may be in others, too, which name projects.
                if hosts is None or not hosts.isdisjoint(aggregate.hosts)
            ),
            self.pipeline,
        )


def _offers(snapshot: Snapshot, *known: Offers) -> Offers:
    """Return what a cloud offers, which may be known.

    :param known: The offers of the cloud before a change, and of others.
    """
    # Few changes change anything in Placement, and some are sync alone.
    same = next((one for one in known if one.is_of(snapshot)), None)
    return same or Offers(snapshot, before=known[0] if known else None)


def _moved(
    before: Offers, after: Offers, use: tuple[ProviderSet, ProviderSet]
) -> tuple[_Hosts, _Hosts]:
    """Return the hosts that servers gain and lose."""
    was, now = use
    if was == now and before.index.host_of == after.index.host_of:
        return _NONE, _NONE
    hosts_before, hosts_now = before.hosts_of(was), after.hosts_of(now)
    return hosts_now - hosts_before, hosts_before - hosts_now


_Gains = dict[Commands, dict[Asker, _Hosts]]
_Servers = tuple[Flavor, Image | None, str | None]


# A cloud as it is, and as it will be after ``sync``.
_Worlds = tuple[Offers, Offers]
