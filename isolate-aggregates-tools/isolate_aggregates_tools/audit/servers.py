# SPDX-License-Identifier: Apache-2.0
"""Finds servers on hosts that an equal new server could not use.

Either the filters would keep the server itself out, or a new server of its
flavor and image, which may have changed since.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
import dataclasses
import functools

import os_traits

from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request.extra_specs import TRAIT_PREFIX
from isolate_aggregates.text import listed, named, quoted
from isolate_aggregates_tools import errors, filter_keys, marks
from isolate_aggregates_tools.answers.deciding import decided, objections
from isolate_aggregates_tools.answers.requests import Likeness, bare
from isolate_aggregates_tools.audit.cloud import AuditedCloud
from isolate_aggregates_tools.audit.demands import traits_if_valid
from isolate_aggregates_tools.audit.finding import About, Finding, Severity
from isolate_aggregates_tools.compute.servers import Server, Servers
from isolate_aggregates_tools.mirrored import nova_image
from isolate_aggregates_tools.mirrored.nova_api import moves
from isolate_aggregates_tools.mirrored.nova_api.moves import MoveKind
from isolate_aggregates_tools.repairs import commands, unpinning
from isolate_aggregates_tools.repairs.repair import Repair
from isolate_aggregates_tools.request import Request
from isolate_aggregates_tools.server_images import image_id

# The ways to move a server, the gentlest first, with their commands.
_WAYS: Mapping[MoveKind, Callable[[str], commands.Commands]] = {
    MoveKind.LIVE: functools.partial(commands.migrate, live=True),
    MoveKind.COLD: functools.partial(commands.migrate, live=False),
    MoveKind.EVACUATE: commands.evacuate,
}
_STOPPED = 'the server arrives stopped: start it then'


@dataclasses.dataclass(frozen=True)
class OutOfPlace:
    """A server on a host that an equal new server could not use.

    :param kind: The kind of finding.
    :param reasons: Why not, without full stops.
    :param text: The problem, for a finding.
    :param is_refused: Whether no host would do.
    :param is_pinned: Whether it may not use its host only because it is pinned
        to the default zone, which an aggregate has got since.
    """

    server: Server
    kind: str
    reasons: tuple[str, ...]
    text: str
    is_refused: bool = False
    is_pinned: bool = False


def out_of_place(cloud: AuditedCloud) -> Iterator[OutOfPlace]:
    """Yield the servers whose host an equal new server could not use.

    Also those of which this is unknown.
    """
    if cloud.servers is None:
        return
    check = _ServerCheck(cloud, cloud.servers)
    for server in cloud.servers.placed:
        if server.host and server.flavor:
            yield from check.verdicts(server, server.host, server.flavor)


def misplaced(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find servers whose host the filters would exclude now."""
    for each in out_of_place(cloud):
        server = each.server
        subject = f'server {quoted(server.name)} ({server.id})'
        problem = f'runs on host {server.host}{each.text}'
        of_server = {
            'hosts': [server.host] if server.host else [],
            'flavors': [server.flavor.name] if server.flavor else [],
            'projects': [server.project_id],
            'servers': [server.id],
        }
        match each.kind:
            case 'server-misplaced':
                yield Finding(
                    'server-misplaced',
                    Severity.ERROR,
                    subject,
                    problem,
                    f'project {server.project_id} uses a host that a new '
                    'server would not get',
                    () if each.is_refused else tuple(_ways_out(each, cloud)),
                    about=About.of(**of_server),
                )
            case 'server-changed':
                yield Finding(
                    'server-changed',
                    Severity.WARNING,
                    subject,
                    problem,
                    'it keeps its copy of the flavor, so moving it does not '
                    'help',
                    about=About.of(**of_server),
                )
            case _:
                yield Finding(
                    'server-not-evaluated',
                    Severity.INFO,
                    subject,
                    problem,
                    'it is not known whether it may run there',
                    about=About.of(**of_server),
                )


def unknown(cloud: AuditedCloud) -> Iterator[Finding]:
    """Report the servers that cannot be checked completely."""
    if cloud.servers is None:
        return
    servers = cloud.servers.placed
    unreachable = [server for server in servers if server.flavor is None]
    if unreachable:
        yield _about_some(
            'servers-out-of-reach',
            Severity.WARNING,
            len(unreachable),
            'are in a cell that is down',
            'they were not checked, and there may be more of them',
        )
    here = [server for server in servers if server.host and server.flavor]
    blind = [
        server
        for server in here
        if not _image_known(server, cloud.servers.images)
    ]
    if blind and _matters(cloud, 'image'):
        yield _about_some(
            'servers-image-unknown',
            Severity.INFO,
            len(blind),
            'boot from a volume, or their image is gone',
            'they were evaluated without image properties',
        )
    if here and not cloud.servers.hints_known and _matters(cloud, 'hint'):
        yield _about_some(
            'servers-hints-unknown',
            Severity.INFO,
            len(here),
            'may have scheduler hints, which Nova shows only since '
            'microversion 2.100',
            'they were evaluated without hints',
        )


def _about_some(
    kind: str,
    severity: Severity,
    number: int,
    problem: str,
    consequence: str,
) -> Finding:
    return Finding(kind, severity, f'servers: {number}', problem, consequence)


@dataclasses.dataclass
class _ServerCheck:
    """Checks servers, with a cache for servers that are alike."""

    cloud: AuditedCloud
    servers: Servers
    destinations: dict[Hashable, Destination | str] = dataclasses.field(
        default_factory=dict
    )
    reasons: dict[Hashable, list[str]] = dataclasses.field(
        default_factory=dict
    )

    # The same for new servers, by likeness; and why they would not get a host,
    # by likeness and host.
    of_newcomers: dict[Hashable, Destination | str] = dataclasses.field(
        default_factory=dict
    )
    newcomers: dict[Hashable, list[str]] = dataclasses.field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        snapshot = self.cloud.snapshot
        self._flavors = {one.name: one for one in snapshot.flavors}
        self._shared = frozenset[str]().union(
            *(one.traits for one in snapshot.providers if one.is_sharing)
        )
        self._images_matter = _matters(self.cloud, 'image')
        self._likeness = Likeness()
        self._hints_matter = _matters(self.cloud, 'hint')

    def verdicts(
        self, server: Server, host: str, flavor: Flavor
    ) -> Iterator[OutOfPlace]:
        """Yield why an equal new server could not use the host of a server."""
        key = self._likeness.key(server, flavor)
        destination = self.destinations.get(key)
        if destination is None:
            destination = self._conclude(self.cloud.requests.of(server))
            self.destinations[key] = destination
        if isinstance(destination, str):
            yield _not_evaluated(server, destination)
            return
        aggregates = self.cloud.index.aggregates_of.get(host, frozenset())
        reasons = self.reasons.get((key, host))
        if reasons is None:
            reasons = objections(destination, aggregates, host)
            self.reasons[key, host] = reasons
        if not reasons:
            unlicensed = self._unlicensed(server, host, flavor)
            if unlicensed:
                yield OutOfPlace(
                    server,
                    'server-misplaced',
                    (unlicensed,),
                    f': {unlicensed}',
                )
            else:
                yield from self._changed(server, host, flavor, aggregates)
            return
        # Of what is unknown, host filters would only drop more.
        doubt = destination.objections(aggregates) and self._doubt(
            server, destination
        )
        if doubt:
            problem = f'{"; ".join(reasons)}, unless {doubt}'
            yield _not_evaluated(server, problem)
            return
        yield OutOfPlace(
            server,
            'server-misplaced',
            tuple(reasons),
            f': {"; ".join(reasons)}',
            bool(destination.refusals),
            self._is_pinned(server, host, aggregates),
        )

    def _is_pinned(
        self, server: Server, host: str, aggregates: frozenset[str]
    ) -> bool:
        """Return whether only the default zone keeps a server from a host."""
        zone = server.availability_zone
        if not zone or zone != self.cloud.conf.default_availability_zone:
            return False
        request = dataclasses.replace(
            self.cloud.requests.of(server), availability_zone=None
        )
        destination = self._conclude(request)
        return not isinstance(destination, str) and not objections(
            destination, aggregates, host
        )

    def _unlicensed(self, server: Server, host: str, flavor: Flavor) -> str:
        """Return why a host has not the locks that a server has the keys to.

        What the image required when the server was placed counts. If that is
        not known, what it requires now does, unless the server's own copy is
        known to lack it.
        """
        image = self.servers.images.get(server.image_id or '')
        copy = server.image_properties
        if server.placed is not None:
            image = Image('', properties=server.placed.all_properties)
            copy = None
        from_image = {
            trait
            for trait in traits_if_valid(self.cloud, image=image)
            if self._images_matter
            and (copy is None or TRAIT_PREFIX + trait in copy)
        }
        lacking = (
            (traits_if_valid(self.cloud, flavor) | from_image)
            & self.cloud.required_by.keys()
        ) - self._traits_of(host)
        if not lacking:
            return ''
        requiring = {
            aggregate.name
            for trait in lacking
            for aggregate in self.cloud.required_by[trait]
        }
        return (
            f'it requires {named("trait", lacking)}, and the host is not in '
            f'{named("aggregate", requiring)}'
        )

    def _changed(
        self,
        server: Server,
        host: str,
        flavor: Flavor,
        aggregates: frozenset[str],
    ) -> Iterator[OutOfPlace]:
        """Yield why a new server like this would not get its host."""
        image = self.servers.images.get(server.image_id or '')
        if self._images_matter and image is None:
            # unknown() reports it.
            return
        now = self._flavors.get(flavor.name)
        if now is None:
            # No new server can have its flavor.
            return
        key = self._likeness.key(server, now), host
        why = self.newcomers.get(key)
        if why is None:
            why = self._objections(server, host, now, image, aggregates)
            self.newcomers[key] = why
        if why:
            yield OutOfPlace(
                server,
                'server-changed',
                tuple(why),
                f', which a new server like it would not get: '
                f'{"; ".join(why)}. '
                f'{_what_changed(server, flavor, now, image)}',
            )

    def _objections(
        self,
        server: Server,
        host: str,
        flavor: Flavor,
        image: Image | None,
        aggregates: frozenset[str],
    ) -> list[str]:
        """Return why a new server would not get a host."""
        key = self._likeness.key(server, flavor)
        destination = self.of_newcomers.get(key)
        if destination is None:
            request = self.cloud.requests.of(server, bare(flavor, image))
            destination = self._conclude(request)
            self.of_newcomers[key] = destination
        if isinstance(destination, str):
            # contradictions() reports the flavor or the image.
            return []
        required = traits_if_valid(self.cloud, flavor) | traits_if_valid(
            self.cloud, image=image
        )
        missing_traits = {
            trait
            for trait in required - self._traits_of(host)
            if trait in self.cloud.required_by or os_traits.is_custom(trait)
        }
        lacking = (
            f'the host has no {named("trait", missing_traits)}'
            if missing_traits
            else ''
        )
        return [
            *objections(destination, aggregates, host),
            *([lacking] if lacking else []),
        ]

    def _traits_of(self, host: str) -> frozenset[str]:
        """Return the traits that servers may find on a host after a sync.

        A host that has left an aggregate keeps its traits until then.
        """
        own = (
            provider.traits - self._left(host, provider.traits)
            for node in self.cloud.nodes.get(host, ())
            for provider in self.cloud.serving(node)
        )
        return self._shared.union(*own)

    def _left(self, host: str, traits: frozenset[str]) -> frozenset[str]:
        """Return the traits that sync will remove from a host."""
        return frozenset(
            trait
            for trait in marks.marked_traits(traits)
            if not any(
                host in aggregate.hosts
                for aggregate in self.cloud.required_by.get(trait, ())
            )
        )

    def _conclude(self, request: Request) -> Destination | str:
        """Return the conclusions of the filters, or why there are none."""
        try:
            return decided(
                request, self.cloud.index, self.cloud.pipeline
            ).destination
        except errors.InvalidRequest as exc:
            return str(exc).rstrip('.')

    def _doubt(self, server: Server, destination: Destination) -> str:
        """Return the unknown data that might open the host."""
        if self._images_matter and not _image_known(
            server, self.servers.images
        ):
            return (
                'the properties of its image, which is gone, open it'
                if server.image_id
                else 'the image properties of its volume open it'
            )
        if self._hints_matter and not self.servers.hints_known:
            return 'its scheduler hints open it'
        if (
            self._images_matter
            and destination.refusals
            and server.placed is None
        ):
            # The owner of the image can set any property on it.
            request = self.cloud.requests.of(server)
            without = self._conclude(dataclasses.replace(request, image=None))
            if isinstance(without, Destination) and not without.refusals:
                return (
                    'its image had other properties when the server was '
                    'accepted'
                )
        return ''


def _what_changed(
    server: Server, then: Flavor, now: Flavor, image: Image | None
) -> str:
    """Return what has changed since a server was placed."""
    specs = _difference(then.extra_specs, now.extra_specs)
    if specs:
        return f'Since then, flavor {now.name} has {specs}'
    old_properties = server.image_properties
    if image and old_properties is not None:
        # Nova does not tell all properties, and no traits.
        new_properties = {
            key: value
            for key, value in image.properties.items()
            if key in old_properties or key in nova_image.TOLD
        }
        properties = _difference(old_properties, new_properties)
        if properties:
            return f'Since then, image {quoted(image.name)} has {properties}'
    return 'Since then, a lock, the traits of the host or the image changed'


def _difference(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return the keys that were added or removed, as text."""
    additions = [
        f'{quoted(k)}={quoted(v)}' for k, v in now.items() if then.get(k) != v
    ]
    removals = then.keys() - now.keys()
    parts = [f'got {listed(additions)}'] if additions else []
    if removals:
        parts.append(f'lost {listed(removals)}')
    return ' and '.join(parts)


def _image_known(server: Server, images: Mapping[str, Image]) -> bool:
    """Return whether the image properties of a server are known."""
    if server.placed is not None and server.placed.properties is not None:
        return True
    return image_id(server) in images


def _not_evaluated(server: Server, problem: str) -> OutOfPlace:
    return OutOfPlace(
        server, 'server-not-evaluated', (problem,), f': {problem}'
    )


def _ways_out(each: OutOfPlace, cloud: AuditedCloud) -> Iterator[Repair]:
    """Yield how a server gets a host that it may use, or may use its own."""
    server = each.server
    if each.is_pinned:
        # No move helps: the host is right.
        release = cloud.requests.releases[-1]
        zone = server.availability_zone or ''
        yield Repair(text=unpinning.advice(server.id, zone, release))
        return
    yield from _move(server, cloud)


def _move(server: Server, cloud: AuditedCloud) -> Iterator[Repair]:
    """Yield the gentlest move that Nova does not refuse."""
    servers = cloud.servers
    image = servers.images.get(server.image_id or '') if servers else None
    properties = {
        **(image.properties if image else {}),
        **(server.image_properties or {}),
    }
    is_up = server.host not in cloud.snapshot.down_hosts
    for action, command in _WAYS.items():
        if not any(
            moves.refusals(
                action, server, properties, cloud.nova_releases, is_up
            )
        ):
            stops = action is MoveKind.EVACUATE
            yield Repair(command(server.id), note=_STOPPED if stops else '')
            return


def _matters(cloud: AuditedCloud, source: str) -> bool:
    """Return whether keys from this source can open anything."""
    return any(
        source in filter_keys.sources(entry.request_filter)
        for entry in cloud.running
    )
