# SPDX-License-Identifier: Apache-2.0
"""Builds a request from arguments, and from the data of a server."""

import argparse
from collections.abc import Mapping, Sequence
import dataclasses

from oslo_config import cfg

from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.request import ComputeHost
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.answers.requests import Requests, bare
from isolate_aggregates_tools.cli import base
from isolate_aggregates_tools.cloud.cloud import Cloud
from isolate_aggregates_tools.mirrored.compute_services import zone_of_host
from isolate_aggregates_tools.request import (
    Request,
    RequestedNetwork,
    ResourceGroup,
)


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
        self._requests = Requests(cloud, conf)
        self.not_known = self._requests.not_known
        self.releases = tuple(self._requests.releases)

    def request(self) -> Request:
        """Return the request, and complete ``not_known``."""
        request = self._from_arguments()
        if not self._args.flavor:
            return self._of_server(request)
        return self._requests.completed(request)

    def _from_arguments(self) -> Request:
        args, cloud = self._args, self._cloud
        hints: dict[str, tuple[str, ...]] = {}
        for key, value in args.hint:
            hints[key] = (*hints.get(key, ()), value)
        ports: Sequence[PortRequest] = args.port_request
        forced_host = _known(self._forced_host())
        if forced_host and args.host:
            raise errors.InvalidArgument(
                '--host and a host in --availability-zone exclude each other '
                'in Nova; specify one of them.'
            )
        return bare(
            # Without a flavor, it is that of the server.
            flavor=cloud.flavor(args.flavor) if args.flavor else None,
            image=cloud.image(args.image) if args.image else None,
            project_id=base.project_from(args, cloud),
            scheduler_hints=hints,
            requested_host=_known(cloud.requested_host(args.host))
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
        return zone

    def _of_server(self, request: Request) -> Request:
        """Add what the request of a server contained."""
        args = self._args
        server = self._cloud.server(args.server)
        if args.availability_zone.zone:
            server = dataclasses.replace(
                server, availability_zone=request.availability_zone
            )
        return self._requests.of(server, request, not args.port_request)


def _known(host: ComputeHost | None) -> ComputeHost | None:
    """Return a host that an argument names, if there is one."""
    if host and not host.providers:
        raise errors.InvalidRequest(
            f'There is no compute host named {host.name}{host.suggestion}.'
        )
    return host


@dataclasses.dataclass(frozen=True)
class RequestedZone:
    """A zone as in the body of ``POST /servers``.

    :param zone: The zone; None if there is none.
    :param host: The compute service that is forced; None if there is none.
    :param node: The compute node that is forced; None if there is none.
    """

    zone: str | None = None
    host: str | None = None
    node: str | None = None

    @property
    def forced(self) -> str | None:
        """The forced compute node or service.

        A node belongs to one host, so the host is not needed beside it.
        """
        return self.node or self.host

    def used(
        self, default: str | None, unnamed: str, cloud: AggregateIndex
    ) -> tuple[str | None, str]:
        """Return the zone that nova-api requests, and why it is another one.

        If a host is forced, nova-api ignores the zone unless it is that of
        the host (``ServersController._validate_host_availability_zone``, bug
        1934770). It looks up no host for a forced node.

        :param default: The zone of requests without one.
        :param unnamed: The zone of hosts in no aggregate with a zone.
        """
        zone = self.zone or default
        if not zone or not self.forced:
            return zone, ''
        if zone == zone_of_host(cloud, self.host or '', unnamed):
            return zone, ''
        return None, (
            f'forced host {self.host} is not in availability zone {zone}, so '
            'Nova ignores the zone'
            if self.host
            else f'Nova ignores availability zone {zone}, because a compute '
            'node is forced'
        )


def requested_zone(text: str) -> RequestedZone:
    """Parse a zone with an optional forced host or node, as Nova does."""
    if not text:
        raise argparse.ArgumentTypeError('must not be empty')
    zone, *target = text.split(':')
    if len(target) > 2:
        raise argparse.ArgumentTypeError(
            f'{text!r} is not a valid availability zone; write <zone>, '
            '<zone>:<host> or <zone>::<node>'
        )
    host, node = (*target, '', '')[:2]
    return RequestedZone(zone or None, host or None, node or None)
