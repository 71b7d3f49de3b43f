# SPDX-License-Identifier: Apache-2.0
"""The request for a server that the arguments of a command describe."""

import argparse
from collections.abc import Iterator, Sequence
import contextlib
import dataclasses

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.cli import base
from isolate_aggregates.cloud.cloud import Cloud
from isolate_aggregates.cloud.servers import Port, Server
from isolate_aggregates.decision import Decision
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.constraints import Remark
from isolate_aggregates.filters.mirrored import MIRRORS
from isolate_aggregates.inspect import candidates
from isolate_aggregates.request import (
    Flavor,
    Image,
    Request,
    implied,
    nova_image,
)
from isolate_aggregates.request.spec import RequestedNetwork, ResourceGroup

# The release of Nova that asks whose a host is.
_OWNED = 34

_OURS = 'IsolatedAggregatesFilter'
_NO_HOST_FILTERS = (
    'which host filters run after Placement: [filter_scheduler] '
    'enabled_filters is not set here'
)


def add_arguments(
    parser: argparse.ArgumentParser, server: bool = False
) -> None:
    """Add the arguments that describe a request for a server.

    :param server: Whether an existing server may stand for its request.
    """
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument('--flavor', metavar='<flavor>', help='Name or id')
    if server:
        what.add_argument(
            '--server',
            metavar='<server>',
            help='Id of a server of the live cloud, whose flavor, image, '
            'zone, ports, project and hints are used where they are not given',
        )
    parser.add_argument('--image', metavar='<image>', help='Name or id')
    parser.add_argument(
        '--availability-zone',
        type=_zone,
        default=(None, None),
        metavar='<zone>',
        help='Availability zone to use, or <zone>:<host> to force a host',
    )
    parser.add_argument(
        '--port-request',
        action='append',
        default=[],
        type=_port_request,
        metavar='<class>=<amount>[,...][,<trait>...]',
        help='Resources and traits that a port asks for; may be repeated',
    )
    base.add_project_arguments(parser)
    parser.add_argument(
        '--hint',
        action='append',
        default=[],
        type=base.pair('scheduler hint'),
        metavar='<key>=<value>',
        help='Scheduler hint; may be repeated',
    )
    parser.add_argument(
        '--host',
        metavar='<host>',
        help='Name of the one host, or compute node, to use',
    )
    parser.add_argument(
        '--boot-from-volume',
        action='store_true',
        help='The root disk is a volume, so none is taken from the host',
    )
    base.add_snapshot_argument(parser)


def add_limit_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--limit`` to the parser of a command that asks Placement."""
    parser.add_argument(
        '--limit',
        type=base.positive,
        metavar='<number>',
        help='Most allocation candidates to ask for; default: [scheduler] '
        'max_placement_results',
    )


def _zone(text: str) -> tuple[str | None, str | None]:
    """Return the zone and the host that an argument names, as Nova does.

    :raises ArgumentTypeError: if it names more.
    """
    zone, *forced = text.split(':')
    if len(forced) > 2:
        raise argparse.ArgumentTypeError(
            f'{text!r} is no availability zone; write <zone>, <zone>:<host> '
            'or <zone>::<node>'
        )
    # A node is of one host.
    return zone or None, ''.join(forced[-1:]) or ''.join(forced[:1]) or None


def _port_request(text: str) -> tuple[dict[str, int], frozenset[str]]:
    """Return the resources and the traits that an argument names.

    :raises ArgumentTypeError: if it names no resources.
    """
    resources: dict[str, int] = {}
    traits = set()
    for part in text.split(','):
        name, equals, amount = part.partition('=')
        if equals:
            resources[name] = base.positive(amount)
        else:
            traits.add(name)
    if not resources or not all((*resources, *traits)):
        raise argparse.ArgumentTypeError(
            f'{text!r} is no request of a port; write '
            '<class>=<amount>,...,<trait>,...'
        )
    return resources, frozenset(traits)


@dataclasses.dataclass(frozen=True)
class Question:
    """A request, and what the request filters make of it in a cloud.

    :param not_known: What Nova knows and these do not, each a sentence
        without a full stop.
    """

    cloud: Cloud
    request: Request
    decision: Decision
    not_known: tuple[str, ...] = ()


@contextlib.contextmanager
def asked(app: base.Program, args: argparse.Namespace) -> Iterator[Question]:
    """Open the cloud and decide on the request that the arguments describe.

    :raises CloudFileError: if a cloud file does not describe a cloud.
    :raises NotFound: if flavor, image or project does not exist.
    """
    with base.opened(app, args) as cloud:
        pipeline = loading.as_in_nova(app.conf)
        asking = _Asking(args, cloud, app.conf)
        request = asking.request()
        limit = limit_from(args, app.conf)
        requests = [
            dataclasses.replace(request, nova_release=release)
            for release in reversed(asking.releases)
        ]
        request = requests[0]
        decision, *others = (
            candidates.decide_on(
                cloud,
                pipeline,
                each,
                limit,
                app.conf[ia_conf.GROUP].max_query_length,
            )
            for each in requests
        )
        if any(
            other.destination.root_required
            != decision.destination.root_required
            or older.required_traits != request.required_traits
            for older, other in zip(requests[1:], others, strict=True)
        ):
            asking.not_known.append(
                'whether Nova is of release '
                f'{" or ".join(map(str, asking.releases))}, which ask for '
                'other traits here; set [isolate_aggregates] nova_release'
            )
        remarks = (
            conclusion.constraint.reason
            for conclusion in decision.destination.conclusions
            if isinstance(conclusion.constraint, Remark)
        )
        yield Question(
            cloud,
            request,
            decision,
            (*asking.not_known, *remarks, *_afterwards(app.conf)),
        )
        base.warn_if_unguarded(cloud, app.conf)


def _afterwards(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Say what chooses among the hosts that are left."""
    enabled = conf[ia_conf.HOST_FILTERS].enabled_filters
    if enabled is None:
        yield _NO_HOST_FILTERS
        return
    known = {mirror.name for mirror in MIRRORS if mirror.host_filter}
    # It drops what the request filters keep out, which are all here.
    known.add(_OURS)
    others = [name for name in enabled if name not in known]
    if others:
        yield (
            f'what the host filters {", ".join(others)} drop after Placement'
        )


def told_not_known(sentences: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table that say what is not known.

    That nothing is known of host filters is said in documents alone.
    """
    told = [each for each in sentences if each != _NO_HOST_FILTERS]
    if told:
        yield 'Not known here:'
        for sentence in told:
            yield f'  {sentence}'
        yield ''


def limit_from(args: argparse.Namespace, conf: cfg.ConfigOpts) -> int:
    """Return the most candidates to ask for, once the cloud is open.

    A cloud file may say how many it is. Not every command has the argument.
    """
    given = getattr(args, 'limit', None)
    return int(given or conf[ia_conf.SCHEDULER].max_placement_results)


class _Asking:
    """Makes the request that the arguments describe.

    ``not_known`` has what Nova knows and this does not.
    """

    def __init__(
        self, args: argparse.Namespace, cloud: Cloud, conf: cfg.ConfigOpts
    ) -> None:
        self._args = args
        self._cloud = cloud
        self._conf = conf
        self.not_known: list[str] = []
        release = conf[ia_conf.GROUP].nova_release
        self.releases: tuple[int, ...] = (
            (release,)
            if release
            else (cloud.nova_releases or (implied.NEWEST_NOVA,))
        )

    def request(self) -> Request:
        """Return the request.

        :raises NotFound: if flavor, image or project does not exist.
        """
        request = self._given()
        if not self._args.flavor:
            request = self._of_server(request)
        profile = request.flavor.extra_specs.get('accel:device_profile')
        if profile:
            request = self._with_device(request, profile, '')
        if self.releases[-1] >= _OWNED:
            request = self._with_owner(request)
        self._tell_of_devices_and_pinning(request)
        return request

    def _tell_of_devices_and_pinning(self, request: Request) -> None:
        """Say what Nova may ask on top, by options that are not read here."""
        alias = request.flavor.extra_specs.get('pci_passthrough:alias')
        if alias:
            self.not_known.append(
                f'what PCI devices pci_passthrough:alias={alias} asks of '
                'Placement where [filter_scheduler] pci_in_placement is true'
            )
        settings = implied.Settings(
            request.flavor.extra_specs, request.image_properties
        )
        name = 'hw:cpu_policy'
        if (settings.flavor(name) or settings.image(name)) == 'dedicated':
            self.not_known.append(
                'which hosts without PCPU Nova finds by asking once more, for '
                'VCPU in its place, unless [workarounds] '
                'disable_fallback_pcpu_query is true'
            )

    def _given(self) -> Request:
        args, cloud = self._args, self._cloud
        hints: dict[str, tuple[str, ...]] = {}
        for key, value in args.hint:
            hints[key] = (*hints.get(key, ()), value)
        zone, forced = args.availability_zone
        host = forced or args.host
        return Request(
            # Replaced if a server stands for the flavor.
            flavor=cloud.flavor(args.flavor) if args.flavor else Flavor(''),
            image=cloud.image(args.image) if args.image else None,
            project_id=base.project_from(args, cloud),
            scheduler_hints=hints,
            requested_host=cloud.requested_host(host) if host else None,
            host_forced=bool(forced),
            boot_from_volume=args.boot_from_volume,
            availability_zone=zone,
            resource_groups=tuple(
                ResourceGroup(f'_port_{number}', resources, traits)
                for number, (resources, traits) in enumerate(
                    args.port_request, 1
                )
            ),
        )

    def _of_server(self, given: Request) -> Request:
        """Return the request, with what a server was asked for with."""
        args = self._args
        server = self._cloud.server(args.server)
        zone = given.availability_zone or server.availability_zone
        if not zone and not server.zone_known:
            self.not_known.append(
                f'the availability zone that server {args.server} was asked '
                'for in, which Nova tells from 2.96 on; give it with '
                '--availability-zone if it had any'
            )
        if not given.requested_host:
            self.not_known.append(
                f'whether a host was requested for server {args.server}, '
                'which Nova does not tell; give it with --host'
            )
        image = given.image
        if image is None and server.image_id:
            image = self._image(server)
        request = dataclasses.replace(
            given,
            flavor=server.flavor,
            image=image,
            project_id=given.project_id or server.project_id,
            scheduler_hints={
                **server.scheduler_hints,
                **given.scheduler_hints,
            },
            boot_from_volume=given.boot_from_volume or not server.image_id,
            availability_zone=zone,
        )
        return request if args.port_request else self._with_ports(request)

    def _image(self, server: Server) -> Image:
        """Return an image, with what the server keeps of it."""
        image = self._cloud.image(server.image_id or '')
        if server.image_properties is None:
            return image
        # Of what Nova does not know it tells nothing.
        others = {
            name: value
            for name, value in image.properties.items()
            if name not in nova_image.TOLD
        }
        return dataclasses.replace(
            image, properties={**others, **server.image_properties}
        )

    def _with_ports(self, request: Request) -> Request:
        """Return the request, with what the ports of a server ask for."""
        server_id = self._args.server
        routed = self._conf[
            ia_conf.SCHEDULER
        ].query_placement_for_routed_network_aggregates
        try:
            ports = self._cloud.ports(server_id)
        except exception.ServiceError as exc:
            self.not_known.append(
                f'what the ports of server {server_id} ask for: '
                f'{str(exc).rstrip(".")}'
            )
            return request
        if not ports:
            self.not_known.append(
                f'the networks that server {server_id} was asked for with: it '
                'has no ports now; give what they ask for with --port-request'
            )
        for port in ports:
            request = dataclasses.replace(
                request,
                resource_groups=(*request.resource_groups, *port.groups),
                same_subtree=(*request.same_subtree, port.same_subtree)
                if port.same_subtree
                else request.same_subtree,
                networks=(*request.networks, self._network(port, routed)),
            )
            if port.device_profile:
                request = self._with_device(
                    request, port.device_profile, port.id
                )
        return request

    def _network(self, port: Port, routed: bool) -> RequestedNetwork:
        """Return the network of a port.

        :param routed: Whether its segments matter.
        """
        name = f'port {port.id}'
        if not routed:
            return RequestedNetwork(name, (), port.remote_managed)
        try:
            segments = self._cloud.segment_aggregates(port)
        except exception.ServiceError:
            return RequestedNetwork(name, None, port.remote_managed)
        return RequestedNetwork(
            name,
            tuple(sorted(frozenset().union(*segments))),
            port.remote_managed,
            ''
            if all(segments)
            else f'a segment of the network of {name} has no aggregate',
        )

    def _with_device(
        self, request: Request, profile: str, owner: str
    ) -> Request:
        """Return the request, with what a device profile asks for.

        :param owner: Id of the port that names it; empty for the flavor.
        """
        try:
            groups = self._cloud.device_groups(profile, owner)
        except (exception.ServiceError, exception.NotFound) as exc:
            self.not_known.append(
                f'what device profile {profile} asks for: '
                f'{str(exc).rstrip(".")}'
            )
            return request
        return dataclasses.replace(
            request, resource_groups=(*request.resource_groups, *groups)
        )

    def _with_owner(self, request: Request) -> Request:
        """Return the request; it knows whether all hosts are Nova's."""
        owned, others = self._cloud.owned_nodes
        if owned and others:
            self.not_known.append(
                f'whether Nova requires trait OWNER_NOVA, which {others} of '
                f'{owned + others} compute nodes lack: it does once all '
                'compute services are of release 34'
            )
        return dataclasses.replace(
            request, owner_nova=bool(owned and not others)
        )
