# SPDX-License-Identifier: Apache-2.0
"""Finds servers that run where a new one like them would not be let."""

from collections.abc import Hashable, Iterator, Mapping
import dataclasses
from typing import cast

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.cloud.servers import PlacedServer
from isolate_aggregates.decision import decide
from isolate_aggregates.filters.destination import Destination
from isolate_aggregates.filters.judge import objections
from isolate_aggregates.inspect.audit import repairs
from isolate_aggregates.inspect.audit.facts import Facts, Servers
from isolate_aggregates.inspect.audit.finding import Finding, Severity
from isolate_aggregates.request import Flavor, Request

# What each filter reads of an image; of others nothing is known.
_BUILT_IN = {
    'isolate_aggregates',
    'reservation_prefix',
    'requested_host',
    'compute_status',
    'isolate_tenants',
    'blazar_reservation',
}

# From these Nova migrates, live or not.
_LIVE = ('ACTIVE', 'PAUSED')
_COLD = ('SHUTOFF',)


def misplaced(facts: Facts) -> Iterator[Finding]:
    """Find servers whose request would be kept from their host."""
    if facts.servers is None:
        return
    judge = _Judge(facts, facts.servers)
    for server in facts.servers.placed:
        if server.host and server.flavor:
            yield from judge.findings(server, server.host, server.flavor)


def unknown(facts: Facts) -> Iterator[Finding]:
    """Say of which servers something is not known."""
    if facts.servers is None:
        return
    placed = facts.servers.placed
    lost = [server for server in placed if server.flavor is None]
    if lost:
        yield _about_some(
            'servers-out-of-reach',
            Severity.WARNING,
            len(lost),
            'are in a cell that is down',
            'they were not looked at, and there may be more of them',
        )
    here = [server for server in placed if server.host and server.flavor]
    blind = [s for s in here if s.image_id not in facts.servers.images]
    if blind and _images_matter(facts):
        yield _about_some(
            'servers-image-unknown',
            Severity.INFO,
            len(blind),
            'boot from a volume, or their image is gone',
            'they were judged without image properties',
        )
    if here and not facts.servers.hints_known and _hints_matter(facts):
        yield _about_some(
            'servers-hints-unknown',
            Severity.INFO,
            len(here),
            'may have scheduler hints, which Nova tells from 2.100 on',
            'they were judged without hints',
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
class _Judge:
    """Judges servers, remembering what was concluded of others like them."""

    facts: Facts
    servers: Servers
    destinations: dict[Hashable, Destination | str] = dataclasses.field(
        default_factory=dict
    )
    reasons: dict[Hashable, list[str]] = dataclasses.field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        self._images_matter = _images_matter(self.facts)
        self._hints_matter = _hints_matter(self.facts)
        self._aggregates: Mapping[str, frozenset[str]] = {
            host: frozenset(a.uuid for a in held)
            for host, held in self.facts.aggregates_of.items()
        }

    def findings(
        self, server: PlacedServer, host: str, flavor: Flavor
    ) -> Iterator[Finding]:
        """Yield what is to be said of a server on a host."""
        key = _likeness(server, flavor)
        destination = self.destinations.get(key)
        if destination is None:
            destination = self._conclude(server, flavor)
            self.destinations[key] = destination
        if isinstance(destination, str):
            yield _not_judged(server, host, destination)
            return
        held = self._aggregates.get(host, frozenset())
        reasons = self.reasons.get((key, held))
        if reasons is None:
            reasons = objections(destination, held)
            self.reasons[key, held] = reasons
        if not reasons:
            return
        doubt = self._doubt(server)
        if doubt:
            problem = f'{"; ".join(reasons)}, unless {doubt}'
            yield _not_judged(server, host, problem)
            return
        yield Finding(
            'server-misplaced',
            Severity.ERROR,
            f'server {server.name} ({server.id})',
            f'runs on host {host}: {"; ".join(reasons)}',
            f'project {server.project_id} uses a host it would not get',
            None if destination.refusals else _migration(server),
        )

    def _conclude(
        self, server: PlacedServer, flavor: Flavor
    ) -> Destination | str:
        """Return what the filters conclude, or why they can not."""
        request = Request(
            flavor=flavor,
            image=self.servers.images.get(server.image_id or ''),
            project_id=server.project_id,
            scheduler_hints=server.scheduler_hints,
            boot_from_volume=not server.image_id,
        )
        try:
            return decide(
                request, self.facts.index, self.facts.pipeline
            ).destination
        except exception.InvalidRequest as exc:
            return str(exc).rstrip('.')

    def _doubt(self, server: PlacedServer) -> str:
        """Return what could open the host that is not known."""
        if self._images_matter and server.image_id not in self.servers.images:
            return (
                'the properties of its image, which is gone, open it'
                if server.image_id
                else 'the image properties of its volume open it'
            )
        if self._hints_matter and not self.servers.hints_known:
            return 'its scheduler hints open it'
        return ''


def _likeness(server: PlacedServer, flavor: Flavor) -> Hashable:
    """Return what servers have in common of which the same is concluded."""
    return (
        flavor.name,
        flavor.vcpus,
        tuple(sorted(flavor.extra_specs.items())),
        server.image_id,
        server.project_id,
        tuple(sorted(server.scheduler_hints.items())),
    )


def _not_judged(server: PlacedServer, host: str, problem: str) -> Finding:
    return Finding(
        'server-not-judged',
        Severity.INFO,
        f'server {server.name} ({server.id})',
        f'runs on host {host}: {problem}',
        'it can not be told whether it may run there',
    )


def _migration(server: PlacedServer) -> str | None:
    if server.status in _LIVE + _COLD:
        return repairs.migrate(server.id, live=server.status in _LIVE)
    return None


def _images_matter(facts: Facts) -> bool:
    """Tell whether the properties of an image may open something."""
    if facts.enabled - _BUILT_IN:
        return True
    traits = 'isolate_aggregates' in facts.enabled and facts.images_open
    return traits or 'image' in _reservation_sources(facts)


def _hints_matter(facts: Facts) -> bool:
    """Tell whether the scheduler hints may open something."""
    if facts.enabled - _BUILT_IN or 'blazar_reservation' in facts.enabled:
        return True
    return 'hint' in _reservation_sources(facts)


def _reservation_sources(facts: Facts) -> list[str]:
    option = 'placement_req_required_member_prefix'
    if 'reservation_prefix' not in facts.enabled:
        return []
    if not facts.settings[ia_conf.SCHEDULER, option]:
        return []
    return cast(
        'list[str]', facts.settings[ia_conf.GROUP, 'reservation_key_sources']
    )
