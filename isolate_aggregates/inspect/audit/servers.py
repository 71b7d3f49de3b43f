# SPDX-License-Identifier: Apache-2.0
"""Finds servers on hosts that an equal new server could not use."""

from collections.abc import Hashable, Iterator
import dataclasses

from isolate_aggregates import exception
from isolate_aggregates.cloud.servers import PlacedServer, Servers
from isolate_aggregates.decision import decide
from isolate_aggregates.filters.destination import Destination
from isolate_aggregates.filters.judge import objections
from isolate_aggregates.inspect.audit import repairs
from isolate_aggregates.inspect.audit.cloud import AuditedCloud
from isolate_aggregates.inspect.audit.finding import Finding, Severity
from isolate_aggregates.request import Flavor, Image, Request

# Nova can live-migrate servers in these states.
_LIVE = ('ACTIVE', 'PAUSED')
_COLD = ('SHUTOFF',)


def misplaced(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find servers whose host the filters would exclude now."""
    if cloud.servers is None:
        return
    judge = _Judge(cloud, cloud.servers)
    for server in cloud.servers.placed:
        if server.host and server.flavor:
            yield from judge.findings(server, server.host, server.flavor)


def unknown(cloud: AuditedCloud) -> Iterator[Finding]:
    """Report the servers that cannot be checked completely."""
    if cloud.servers is None:
        return
    placed = cloud.servers.placed
    lost = [server for server in placed if server.flavor is None]
    if lost:
        yield _about_some(
            'servers-out-of-reach',
            Severity.WARNING,
            len(lost),
            'are in a cell that is down',
            'they were not checked, and there may be more of them',
        )
    here = [server for server in placed if server.host and server.flavor]
    blind = [s for s in here if s.image_id not in cloud.servers.images]
    if blind and _matters(cloud, 'image'):
        yield _about_some(
            'servers-image-unknown',
            Severity.INFO,
            len(blind),
            'boot from a volume, or their image is gone',
            'they were judged without image properties',
        )
    if here and not cloud.servers.hints_known and _matters(cloud, 'hint'):
        yield _about_some(
            'servers-hints-unknown',
            Severity.INFO,
            len(here),
            'may have scheduler hints, which Nova shows only since '
            'microversion 2.100',
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
    """Checks servers, with a cache for servers that are alike."""

    cloud: AuditedCloud
    servers: Servers
    destinations: dict[Hashable, Destination | str] = dataclasses.field(
        default_factory=dict
    )
    reasons: dict[Hashable, list[str]] = dataclasses.field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        self._images_matter = _matters(self.cloud, 'image')
        self._hints_matter = _matters(self.cloud, 'hint')

    def findings(
        self, server: PlacedServer, host: str, flavor: Flavor
    ) -> Iterator[Finding]:
        """Yield the findings on a server on its host."""
        key = _likeness(server, flavor)
        destination = self.destinations.get(key)
        if destination is None:
            image = self.servers.images.get(server.image_id or '')
            destination = self._conclude(server, flavor, image)
            self.destinations[key] = destination
        if isinstance(destination, str):
            yield _not_judged(server, host, destination)
            return
        held = self.cloud.index.aggregates_of.get(host, frozenset())
        reasons = self.reasons.get((key, held))
        if reasons is None:
            reasons = objections(destination, held)
            self.reasons[key, held] = reasons
        if not reasons:
            return
        doubt = self._doubt(server, flavor, destination)
        if doubt:
            problem = f'{"; ".join(reasons)}, unless {doubt}'
            yield _not_judged(server, host, problem)
            return
        yield Finding(
            'server-misplaced',
            Severity.ERROR,
            f'server {server.name} ({server.id})',
            f'runs on host {host}: {"; ".join(reasons)}',
            f'project {server.project_id} uses a host that a new server would '
            'not get',
            () if destination.refusals else _migration(server),
        )

    def _conclude(
        self, server: PlacedServer, flavor: Flavor, image: Image | None
    ) -> Destination | str:
        """Return the conclusions of the filters, or why there are none."""
        request = Request(
            flavor=flavor,
            image=image,
            project_id=server.project_id,
            scheduler_hints=server.scheduler_hints,
            boot_from_volume=not server.image_id,
        )
        try:
            return decide(
                request, self.cloud.index, self.cloud.pipeline
            ).destination
        except exception.InvalidRequest as exc:
            return str(exc).rstrip('.')

    def _doubt(
        self, server: PlacedServer, flavor: Flavor, destination: Destination
    ) -> str:
        """Return the unknown data that might open the host."""
        if self._images_matter and server.image_id not in self.servers.images:
            return (
                'the properties of its image, which is gone, open it'
                if server.image_id
                else 'the image properties of its volume open it'
            )
        if self._hints_matter and not self.servers.hints_known:
            return 'its scheduler hints open it'
        if self._images_matter and destination.refusals:
            # The owner of the image can set any property on it.
            without = self._conclude(server, flavor, None)
            if isinstance(without, Destination) and not without.refusals:
                return (
                    'its image had other properties when the server was '
                    'accepted'
                )
        return ''


def _likeness(server: PlacedServer, flavor: Flavor) -> Hashable:
    """Return a key; servers with equal keys have the same conclusions."""
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
        'it is not known whether it may run there',
    )


def _migration(server: PlacedServer) -> repairs.Commands:
    if server.status in _LIVE + _COLD:
        return repairs.migrate(server.id, live=server.status in _LIVE)
    return ()


def _matters(cloud: AuditedCloud, source: str) -> bool:
    """Return whether keys from this source can open anything."""
    return any(source in loaded.key_sources for loaded in cloud.running)
