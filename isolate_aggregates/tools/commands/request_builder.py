# SPDX-License-Identifier: Apache-2.0
"""Builds a request from arguments, and from the data of a server."""

import argparse
from collections.abc import Mapping, Sequence
import dataclasses

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.compute.servers import Port, Server
from isolate_aggregates.request import (
    ComputeHost,
    Flavor,
    Image,
    Request,
    implied,
    nova_image,
)
from isolate_aggregates.request.spec import RequestedNetwork, ResourceGroup
from isolate_aggregates.tools.cli import base
from isolate_aggregates.tools.cloud.cloud import Cloud
from isolate_aggregates.tools.commands import requested_zone
from isolate_aggregates.tools.commands.requested_zone import RequestedZone

# The first release of Nova that can require the trait OWNER_NOVA.
_OWNED = 34


@dataclasses.dataclass(frozen=True)
class PortRequest:
    """What a port of a new server requests."""

    resources: Mapping[str, int]
    traits: frozenset[str]
    is_remote_managed: bool = False


class RequestBuilder:
    """Builds the request that the arguments describe.

    ``not_known`` lists what affects scheduling in Nova but is unknown here.
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
        """Return the request, and complete ``not_known``."""
        request = self._from_arguments()
        if not self._args.flavor:
            request = self._of_server(request)
        profile = request.flavor.extra_specs.get('accel:device_profile')
        if profile:
            request = self._with_device(request, profile, '')
        if self.releases[-1] >= _OWNED:
            request = self._with_owner(request)
        self._tell_of_devices(request)
        return dataclasses.replace(
            request,
            pcpu_fallback=implied.is_pinned(
                request.flavor.extra_specs, request.image_properties
            )
            and not self._conf[
                ia_conf.WORKAROUNDS
            ].disable_fallback_pcpu_query,
        )

    def _tell_of_devices(self, request: Request) -> None:
        """Note what Nova may add to the query by options that are not read."""
        alias = request.flavor.extra_specs.get('pci_passthrough:alias')
        if alias:
            self.not_known.append(
                f'which PCI devices pci_passthrough:alias={alias} requests '
                'from Placement if [filter_scheduler] pci_in_placement is true'
            )

    def _from_arguments(self) -> Request:
        args, cloud = self._args, self._cloud
        hints: dict[str, tuple[str, ...]] = {}
        for key, value in args.hint:
            hints[key] = (*hints.get(key, ()), value)
        ports: Sequence[PortRequest] = args.port_request
        forced_host = self._forced_host()
        if forced_host and args.host:
            raise exception.InvalidRequest(
                '--host and a host in --availability-zone exclude each other '
                'in Nova; specify one of them.'
            )
        return Request(
            # The empty flavor is replaced by that of the server.
            flavor=cloud.flavor(args.flavor) if args.flavor else Flavor(''),
            image=cloud.image(args.image) if args.image else None,
            project_id=base.project_from(args, cloud),
            scheduler_hints=hints,
            requested_host=cloud.requested_host(args.host)
            if args.host
            else forced_host,
            host_forced=bool(forced_host),
            boot_from_volume=args.boot_from_volume,
            availability_zone=self._zone(),
            networks=(
                RequestedNetwork(
                    'the network of the server',
                    # No argument describes the segments for a new server.
                    None if args.flavor else (),
                    any(port.is_remote_managed for port in ports),
                ),
            ),
            resource_groups=tuple(
                ResourceGroup(f'_port_{number}', port.resources, port.traits)
                for number, port in enumerate(ports, 1)
                if port.resources
            ),
        )

    def _forced_host(self) -> ComputeHost | None:
        """Return the forced host, which Nova finds by the name of its kind."""
        zone: RequestedZone = self._args.availability_zone
        if not zone.forced:
            return None
        host = self._cloud.requested_host(zone.forced)
        services = self._cloud.compute_nodes
        nodes = self._cloud.provider_names if zone.node else {}
        providers = tuple(
            uuid
            for uuid in host.providers
            if zone.node in (None, nodes.get(uuid))
            and zone.host in (None, services.get(uuid, zone.host))
        )
        if providers == host.providers:
            return host
        return ComputeHost(
            f'{zone.host or ""}:{zone.node}' if zone.node else zone.forced,
            providers,
            ' (write <zone>:<host>:<node>, <zone>:<host> or <zone>::<node>)',
        )

    def _zone(self) -> str | None:
        """Return the availability zone that Nova requests."""
        conf = self._conf
        requested: RequestedZone = self._args.availability_zone
        zone, why_other = requested.used(
            # For an existing server, Nova returns the zone.
            conf.default_schedule_zone if self._args.flavor else None,
            conf.default_availability_zone,
            self._cloud.index,
        )
        if why_other:
            self.not_known.append(why_other)
        if zone and self._args.flavor and not requested.host:
            requested_zone.check(
                zone,
                conf.default_availability_zone,
                self._cloud.index,
                self._cloud.compute_nodes.values(),
            )
        return zone

    def _of_server(self, request: Request) -> Request:
        """Add what the request of a server contained."""
        args = self._args
        server = self._cloud.server(args.server)
        if server.flavor is None:
            raise exception.InvalidRequest(
                f'The flavor of server {server.id} is unknown, because its '
                'cell was down.'
            )
        zone = (
            request.availability_zone
            if args.availability_zone.zone
            else server.availability_zone
        )
        if not zone and not server.zone_known:
            self.not_known.append(
                f'the availability zone that server {server.id} was '
                'requested in, which Nova shows only from microversion 2.96; '
                'specify it with --availability-zone if there was one'
            )
        if not request.requested_host:
            self.not_known.append(
                f'whether a host was requested for server {server.id}, '
                'which Nova does not show; if so, specify it with --host'
            )
        image = request.image
        if image is None and server.image_id:
            image = self._image(server)
        elif image is None:
            self.not_known.append(
                f'the image of the volume that server {server.id} boots '
                'from; specify it with --image if it has relevant properties'
            )
        request = dataclasses.replace(
            request,
            flavor=server.flavor,
            image=image,
            project_id=request.project_id or server.project_id,
            scheduler_hints={
                **server.scheduler_hints,
                **request.scheduler_hints,
            },
            boot_from_volume=request.boot_from_volume or not server.image_id,
            availability_zone=zone,
            is_accepted=True,
        )
        if args.port_request:
            return request
        return self._with_ports(request, server.id)

    def _image(self, server: Server) -> Image:
        """Return the image of a server, with the properties Nova stores."""
        number = server.image_id or ''
        try:
            image = self._cloud.image(number)
        except exception.NotFound:
            # Servers outlive their images.
            image = Image('', number)
            self.not_known.append(
                f'the properties of image {number}, which is no longer in '
                'Glance, apart from those that Nova shows; specify an image '
                'with the same properties with --image'
            )
        if server.image_properties is None:
            return image
        # Nova does not return properties that it does not know.
        others = {
            name: value
            for name, value in image.properties.items()
            if name not in nova_image.TOLD
        }
        return dataclasses.replace(
            image, properties={**others, **server.image_properties}
        )

    def _with_ports(self, request: Request, server_id: str) -> Request:
        """Add what the ports of a server request."""
        uses_segments = self._conf[
            ia_conf.SCHEDULER
        ].query_placement_for_routed_network_aggregates
        try:
            ports = self._cloud.ports(server_id)
        except exception.ServiceError as exc:
            self.not_known.append(
                f'what the ports of server {server_id} request: {_said(exc)}'
            )
            return request
        if ports is None:
            self.not_known.append(
                f'what the ports of server {server_id} request, which are not '
                'in the cloud file; specify it with --port-request'
            )
        elif not ports:
            self.not_known.append(
                f'the networks that server {server_id} was requested with: it '
                'has no ports now; specify what they requested with '
                '--port-request'
            )
        for port in ports or ():
            request = dataclasses.replace(
                request,
                resource_groups=(*request.resource_groups, *port.groups),
                same_subtree=(*request.same_subtree, port.same_subtree)
                if port.same_subtree
                else request.same_subtree,
                networks=(
                    *request.networks,
                    self._network(port, uses_segments),
                ),
            )
            if port.device_profile:
                request = self._with_device(
                    request, port.device_profile, port.id
                )
        return request

    def _network(self, port: Port, uses_segments: bool) -> RequestedNetwork:
        """Return the network of a port."""
        name = f'port {port.id}'
        if not uses_segments:
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
        """Add what a device profile requests."""
        try:
            groups = self._cloud.device_groups(profile, owner)
        except (exception.ServiceError, exception.NotFound) as exc:
            self.not_known.append(
                f'what device profile {profile} requests: {_said(exc)}'
            )
            return request
        return dataclasses.replace(
            request, resource_groups=(*request.resource_groups, *groups)
        )

    def _with_owner(self, request: Request) -> Request:
        """Add whether Nova requires the trait OWNER_NOVA."""
        try:
            with_owner, others = self._cloud.owned_nodes
        except exception.ServiceError as exc:
            self.not_known.append(
                f'whether Nova requires trait OWNER_NOVA: {_said(exc)}'
            )
            return request
        if with_owner and others:
            self.not_known.append(
                f'whether Nova requires trait OWNER_NOVA, which {others} of '
                f'{with_owner + others} compute nodes lack: it does once all '
                'compute services run release 34'
            )
        return dataclasses.replace(
            request, owner_nova=bool(with_owner and not others)
        )


def _said(exc: exception.IsolateAggregatesError) -> str:
    return str(exc).rstrip('.')
