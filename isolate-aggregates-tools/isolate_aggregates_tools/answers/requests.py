# SPDX-License-Identifier: Apache-2.0
"""Builds requests, as nova-api passes them to nova-scheduler.

No other module of the tools does. A server is asked about with the same
request by every command.
"""

from collections.abc import Hashable, Sequence
import dataclasses
from typing import Any

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception, options
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import Flavor, Image, placed
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.cloud.cloud import Cloud
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import Port, Server
from isolate_aggregates_tools.request import (
    Request,
    RequestedNetwork,
    ResourceGroup,
    implied,
    resources,
)
from isolate_aggregates_tools.server_images import ServerImages, image_id

# A project that owns nothing.
STRANGER = '-'

# The first release of Nova that can require the trait OWNER_NOVA.
_OWNED = 34


def bare(
    flavor: Flavor | None = None, image: Image | None = None, **more: Any
) -> Request:
    """Return a request that Nova has not completed.

    It tells what a flavor, an image or other parts mean by themselves.
    """
    return Request(flavor or Flavor(''), image, **more)


# Overrides nothing.
_NOTHING = bare()


class Requests:
    """Builds the requests for a cloud.

    ``not_known`` lists what affects scheduling in Nova but is unknown here.

    :param conf: The configuration of nova-api and nova-scheduler.
    :param releases: The possible releases of its Nova; empty to use those that
        the cloud gives.
    """

    def __init__(
        self, cloud: Cloud, conf: cfg.ConfigOpts, releases: Sequence[int] = ()
    ) -> None:
        self._cloud = cloud
        self._conf = conf
        self._images = ServerImages(cloud.image)
        self.not_known: list[str] = []
        release = conf[ia_conf.GROUP].nova_release
        self.releases: Sequence[int] = (
            (release,)
            if release
            else (releases or cloud.nova_releases or (implied.NEWEST_NOVA,))
        )

    def on(self, snapshot: Snapshot) -> 'Requests':
        """Return what builds requests for a cloud after a change."""
        return Requests(SnapshotCloud(snapshot), self._conf, self.releases)

    def new(
        self,
        flavor: Flavor,
        image: Image | None = None,
        project: str | None = None,
        zone: str | None = None,
        **more: Any,
    ) -> Request:
        """Return the request of new servers.

        :param zone: The requested availability zone; None for the default of
            nova-api, if it has one.
        :param more: Other parts of the request.
        """
        return self.completed(
            bare(
                flavor,
                image,
                project_id=project,
                availability_zone=zone or self._conf.default_schedule_zone,
                **more,
            )
        )

    def of(
        self,
        server: Server,
        overrides: Request = _NOTHING,
        with_ports: bool = True,
    ) -> Request:
        """Return the request of a server, as Nova would send it again.

        :param overrides: What takes the place of its own flavor, image,
            project and hints.
        :param with_ports: Whether to add what its ports request.
        :raises InvalidRequest: if its flavor is unknown.
        """
        flavor = overrides.flavor if overrides.flavor.name else server.flavor
        if flavor is None:
            raise errors.InvalidRequest(
                f'The flavor of server {server.id} is unknown, because its '
                'cell was down.'
            )
        zone = server.availability_zone
        if not zone and not server.zone_known:
            self.not_known.append(
                f'the availability zone that server {server.id} was '
                'requested in, which Nova shows only from microversion 2.96; '
                'specify it with --availability-zone if there was one'
            )
        if not overrides.requested_host:
            self.not_known.append(
                f'whether a host was requested for server {server.id}, '
                'which Nova does not show; if so, specify it with --host'
            )
        if any(
            name.startswith(placed.PREFIX) for name in server.scheduler_hints
        ):
            self.not_known.append(
                f'what server {server.id} was placed with: another version of '
                'isolate-aggregates has recorded it; specify its image with '
                '--image'
            )
        image = overrides.image
        if image is None and (server.image_id or server.placed):
            image = self._image(server, image_id(server))
        elif image is None:
            self.not_known.append(
                f'the image of the volume that server {server.id} boots '
                'from; specify it with --image if it has relevant properties'
            )
        request = dataclasses.replace(
            overrides,
            flavor=flavor,
            image=image,
            project_id=overrides.project_id or server.project_id,
            scheduler_hints={
                **server.scheduler_hints,
                **overrides.scheduler_hints,
            },
            boot_from_volume=overrides.boot_from_volume or _is_volume(server),
            availability_zone=zone,
            is_accepted=True,
        )
        if with_ports:
            request = self._with_ports(request, server.id)
        return self.completed(request)

    def completed(self, request: Request) -> Request:
        """Return a request with what Nova adds to it."""
        profile = request.flavor.extra_specs.get('accel:device_profile')
        if profile:
            request = self._with_device(request, profile, '')
        if self.releases[-1] >= _OWNED:
            request = self._with_owner(request)
        request = self._with_pci(request)
        return dataclasses.replace(
            request,
            nova_release=self.releases[-1],
            pcpu_fallback=implied.is_pinned(
                request.flavor.extra_specs, request.image_properties
            )
            and not self._conf[
                options.WORKAROUNDS
            ].disable_fallback_pcpu_query,
        )

    def _with_pci(self, request: Request) -> Request:
        """Add the PCI devices of the flavor that Placement has to offer."""
        if not request.flavor.extra_specs.get(resources.PCI_ALIAS):
            return request
        request = dataclasses.replace(request, pci_aliases=self._pci_aliases)
        try:
            groups = self.pci_groups(request.flavor)
        except ValueError as exc:
            self.not_known.append(str(exc))
            return request
        return dataclasses.replace(
            request, resource_groups=(*request.resource_groups, *groups)
        )

    @lazy_property
    def _pci_aliases(self) -> frozenset[str] | None:
        """The names of the PCI aliases of nova-api; None if unknown.

        A configuration without any may lack them only here.
        """
        aliases = self._conf[options.PCI].alias
        if not aliases and not self._pci_in_placement:
            return None
        try:
            return frozenset(resources.pci_aliases(aliases))
        except ValueError:
            return None

    @property
    def _pci_in_placement(self) -> bool:
        return bool(self._conf[options.HOST_FILTERS].pci_in_placement)

    def pci_groups(self, flavor: Flavor) -> tuple[ResourceGroup, ...]:
        """Return what the PCI devices of a flavor request from Placement.

        :raises ValueError: if it is not known here; the message says what.
        """
        wanted = flavor.extra_specs.get(resources.PCI_ALIAS)
        if not wanted:
            return ()
        what = (
            f'which PCI devices {resources.PCI_ALIAS}={wanted} requests from '
            'Placement'
        )
        if not self._pci_in_placement:
            raise ValueError(
                f'{what} if [filter_scheduler] pci_in_placement is true'
            )
        try:
            return tuple(
                resources.pci_groups(wanted, self._conf[options.PCI].alias)
            )
        except ValueError as exc:
            raise ValueError(f'{what}: {exc}') from None

    def _image(self, server: Server, number: str) -> Image:
        """Return the image of a server, with the properties Nova stores."""
        known = self._images.of(server)
        if not known.is_whole:
            self.not_known.append(
                f'the properties of image {number}, which is no longer in '
                'Glance, apart from those that Nova shows; specify an image '
                'with the same properties with --image'
            )
        return known.image

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
        except (exception.ServiceError, errors.NotFound) as exc:
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


class Likeness:
    """Tells which servers have equal requests."""

    def __init__(self) -> None:
        # Of most servers of a flavor, the flavor is the same object. They are
        # kept, so that no others get their identity.
        self._flavors: dict[int, tuple[Flavor, Hashable]] = {}

    def key(self, server: Server, flavor: Flavor | None) -> Hashable:
        """Return a key; servers with equal keys have equal requests.

        :param flavor: The flavor that its request is built with.
        """
        return (
            flavor and self._of_flavor(flavor),
            server.image_id,
            None
            if server.image_properties is None
            else tuple(sorted(server.image_properties.items())),
            server.project_id,
            _of_hints(server) if server.scheduler_hints else (),
            _of_record(server.placed) if server.placed else None,
            server.availability_zone,
            _of_ports(server) if server.ports else (),
        )

    def _of_flavor(self, flavor: Flavor) -> Hashable:
        if id(flavor) not in self._flavors:
            self._flavors[id(flavor)] = (
                flavor,
                (
                    flavor.name,
                    flavor.vcpus,
                    flavor.ram,
                    flavor.disk,
                    flavor.ephemeral,
                    flavor.swap,
                    tuple(sorted(flavor.extra_specs.items())),
                ),
            )
        return self._flavors[id(flavor)][1]


def _is_volume(server: Server) -> bool:
    """Return whether a server boots from a volume.

    After a refused rebuild Nova tells an image of it.
    """
    return not server.image_id or bool(
        server.placed and not server.placed.image
    )


def _of_hints(server: Server) -> Hashable:
    return tuple(
        (key, values)
        for key, values in sorted(server.scheduler_hints.items())
        if key not in _OF_OTHERS
    )


def _of_record(record: placed.Placed) -> Hashable:
    properties = record.properties
    return (
        record.image,
        record.traits,
        None if properties is None else tuple(sorted(properties.items())),
    )


def _of_ports(server: Server) -> Hashable:
    return tuple(
        port.id
        if port.groups or port.device_profile
        else (port.network, port.remote_managed, port.segments)
        for port in server.ports or ()
        if port.groups
        or port.device_profile
        or port.remote_managed
        or port.segments
    )


# Hints that name other servers or groups of them: no request filter reads
# them.
_OF_OTHERS = ('group', 'same_host', 'different_host', 'query')


def _said(exc: exception.IsolateAggregatesError) -> str:
    return str(exc).rstrip('.')
