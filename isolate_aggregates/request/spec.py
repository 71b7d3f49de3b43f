# SPDX-License-Identifier: Apache-2.0
"""The request: a flavor, an image, a project, hints, possibly a host.

:class:`RequestSpec` is the interface for request filters. Outside
nova-scheduler the implementation is :class:`Request`, created from Nova's API
or a cloud file. Inside nova-scheduler, Nova's own request spec is wrapped.
"""

from collections.abc import Collection, Mapping
import dataclasses
from typing import Protocol

from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.request import implied
from isolate_aggregates.request.properties import DeclaredProperties


@dataclasses.dataclass(frozen=True)
class Flavor:
    """A flavor, with the units of Nova.

    :param name: The name.
    :param id: The flavor id.
    :param vcpus: The number of virtual CPUs.
    :param ram: The memory in MiB.
    :param disk: The root disk in GiB.
    :param ephemeral: The ephemeral disk in GiB.
    :param swap: The swap disk in MiB.
    :param extra_specs: The extra specs by key.
    """

    name: str
    id: str = ''
    vcpus: int = 0
    ram: int = 0
    disk: int = 0
    ephemeral: int = 0
    swap: int = 0
    extra_specs: Mapping[str, str] = dataclasses.field(
        default_factory=dict, hash=False
    )


@dataclasses.dataclass(frozen=True)
class Image:
    """An image.

    :param name: The name.
    :param id: The image id.
    :param properties: The custom properties by key, as in Glance.
    :param owner: The id of the project that owns the image.
    :param visibility: The visibility in Glance, for example ``public``.
    :param disk_format: The disk format, for example ``qcow2``; None if
        unknown.
    :param min_ram: The memory in MiB that it needs.
    :param min_disk: The root disk in GiB that it needs.
    :param size: The size of its data in bytes.
    """

    name: str
    id: str = ''
    properties: Mapping[str, str] = dataclasses.field(
        default_factory=dict, hash=False
    )
    owner: str | None = None
    visibility: str | None = None
    disk_format: str | None = None
    min_ram: int = 0
    min_disk: int = 0
    size: int = 0


@dataclasses.dataclass(frozen=True)
class ComputeHost:
    """A host that a request names.

    :param name: The requested name.
    :param providers: The uuids of the resource providers of the host's compute
        nodes: empty if the host is unknown, several for bare metal.
    :param suggestion: If the host is unknown, the most similar name as a
        question with a leading space; empty if there is none.
    """

    name: str
    providers: tuple[str, ...] = ()
    suggestion: str = ''


@dataclasses.dataclass(frozen=True)
class ResourceGroup:
    """A request group of a port or a device profile.

    It must be served by a single provider.

    :param id: The id of the group in Nova, which is the suffix in the query.
    :param resources: The amounts by resource class.
    :param required_traits: The traits that the provider must have.
    :param forbidden_traits: The traits that the provider must not have.
    """

    id: str
    resources: Mapping[str, int] = dataclasses.field(
        default_factory=dict, hash=False
    )
    required_traits: frozenset[str] = frozenset()
    forbidden_traits: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class RequestedNetwork:
    """A requested network or port.

    :param name: The name for messages.
    :param aggregates: For a routed network, the uuids of the aggregates of its
        segments, of which a host needs one. None if they were not read.
    :param remote_managed: Whether it is a port of type ``remote-managed``.
    :param broken: Why its segments are not usable, so that Nova refuses the
        request; empty if they are usable.
    """

    name: str
    aggregates: tuple[str, ...] | None = ()
    remote_managed: bool = False
    broken: str = ''


@dataclasses.dataclass(frozen=True)
class Past:
    """What is known of a server that was rebuilt, and is moved now.

    Nova records the image of a rebuild before anybody accepts it.

    :param is_refused: Whether the recorded image was refused; what the server
        was accepted with before is lost.
    :param is_directed: Whether an operator has named the host.
    :param flavor: The flavor before the request.
    :param host_keys: The aggregates that its host was in, and their metadata
        keys, both since before the last rebuild: pairs of uuid and key.
    """

    is_refused: bool
    is_directed: bool
    flavor: Flavor
    host_keys: frozenset[tuple[str, str]] = frozenset()


class RequestSpec(Protocol):
    """The interface of a request for servers.

    Filters must not modify it.
    """

    @property
    def flavor(self) -> Flavor:
        """The flavor."""

    @property
    def image(self) -> Image | None:
        """The image; None if the server has none or it is unknown.

        Filters read its properties from :attr:`image_properties`.
        """

    @property
    def image_properties(self) -> Mapping[str, str]:
        """The image properties that the loaded filters declare.

        The values are those in Glance when nova-api accepted the server; for a
        new server these are the current ones. After a rebuild, see
        :attr:`past`.

        Required traits, as ``trait:<NAME>=required``, are always included.
        Properties that no filter declares are never included.
        """

    @property
    def past(self) -> Past | None:
        """What is known of a server that was rebuilt; None for others."""

    @property
    def project_id(self) -> str | None:
        """The id of the project of the server; None if unknown."""

    @property
    def scheduler_hints(self) -> Mapping[str, tuple[str, ...]]:
        """The scheduler hints; a repeated hint has several values."""

    @property
    def requested_host(self) -> ComputeHost | None:
        """The requested host; always None inside nova-scheduler.

        Nova itself restricts the request to that host.
        """

    @property
    def num_instances(self) -> int:
        """The number of servers in the request."""

    @property
    def boot_from_volume(self) -> bool:
        """Whether the root disk is a volume, which uses no disk of a host."""

    @property
    def required_traits(self) -> frozenset[str]:
        """All traits that the request requires, in any request group.

        These traits open isolated aggregates. The set is the same as
        ``all_required_traits`` of Nova's ``ResourceRequest``.
        """

    @property
    def operator_traits(self) -> frozenset[str]:
        """Every required trait that no image, and so no tenant, can add."""

    def declaring(self, declaration: DeclaredProperties) -> 'RequestSpec':
        """Return the request with only the declared image properties.

        The pipeline calls this before it runs the filters.

        :param declaration: The image properties that the filters declare.
        :raises RequestRefused: if a declared property is not available.
        :raises ServiceError: if it cannot be read.
        """


@dataclasses.dataclass(frozen=True)
class Request:
    """A request outside nova-scheduler.

    :param flavor: The flavor.
    :param image: The image; None if the server boots from a volume whose image
        properties are unknown.
    :param project_id: The id of the project of the server.
    :param scheduler_hints: The scheduler hints; a repeated hint has several
        values.
    :param requested_host: The requested host, if any.
    :param num_instances: The number of servers in the request.
    :param boot_from_volume: Whether the root disk is a volume, which uses no
        disk of a host.
    :param derived_traits: Required traits that do not come from flavor or
        image, for example those of ports and device profiles.
    :param known_traits: All required traits, if they are known already; None
        to compute them.
    :param availability_zone: The requested availability zone.
    :param resource_groups: The request groups of ports and device profiles.
    :param same_subtree: The ids of groups that must be in one subtree.
    :param networks: The requested networks and ports.
    :param nova_release: The release of Nova, as newer ones derive more from a
        request.
    :param host_forced: Whether the requested host is forced, so that Nova
        skips its host filters.
    :param owner_nova: Whether all compute nodes have the trait OWNER_NOVA, so
        that Nova requires it; None if unknown.
    :param is_accepted: Whether nova-api has accepted it: the request of a
        server that exists.
    :param pcpu_fallback: Whether Nova sends a second query, for VCPU instead
        of PCPU.
    :param pinned_as_vcpu: Whether this is the request of that second query.
    """

    flavor: Flavor
    image: Image | None = None
    project_id: str | None = None
    scheduler_hints: Mapping[str, tuple[str, ...]] = dataclasses.field(
        default_factory=dict
    )
    requested_host: ComputeHost | None = None
    num_instances: int = 1
    boot_from_volume: bool = False
    derived_traits: frozenset[str] = frozenset()
    known_traits: frozenset[str] | None = None
    availability_zone: str | None = None
    resource_groups: tuple[ResourceGroup, ...] = ()
    same_subtree: tuple[frozenset[str], ...] = ()
    networks: tuple[RequestedNetwork, ...] = ()
    nova_release: int = implied.NEWEST_NOVA
    host_forced: bool = False
    owner_nova: bool | None = None
    is_accepted: bool = False
    pcpu_fallback: bool = False
    pinned_as_vcpu: bool = False
    past: Past | None = None

    @property
    def variants(self) -> 'tuple[Request, ...]':
        """The request of each query that Nova sends; a host needs one."""
        if not self.pcpu_fallback:
            return (self,)
        fallback = dataclasses.replace(
            self, pcpu_fallback=False, pinned_as_vcpu=True
        )
        return self, fallback

    @property
    def image_properties(self) -> Mapping[str, str]:
        """The properties of the image; empty without an image."""
        return self.image.properties if self.image else {}

    @lazy_property
    def required_traits(self) -> frozenset[str]:
        """Every trait this request requires, in any request group."""
        if self.known_traits is not None:
            return self.known_traits
        flavor, properties = self.flavor, self.image_properties
        implications = implied.translate(
            flavor.extra_specs, properties, flavor.vcpus, self.nova_release
        )
        return (
            xs.required_traits(flavor.extra_specs)
            | xs.image_required_traits(properties)
            | implications.required_traits
            | self._derived_traits
        )

    @lazy_property
    def operator_traits(self) -> frozenset[str]:
        """Every required trait that no image, and so no tenant, can add."""
        return operator_traits_of(
            self.flavor, self._derived_traits, self.nova_release
        )

    @property
    def _derived_traits(self) -> frozenset[str]:
        return self.derived_traits.union(
            *(group.required_traits for group in self.resource_groups)
        )

    def declaring(self, declaration: DeclaredProperties) -> 'Request':
        """Return the request without the properties that no filter declares.

        :param declaration: The image properties that the filters declare.
        """
        if self.image is None:
            return self
        properties = declaration.among(self.image.properties)
        return dataclasses.replace(
            self,
            image=dataclasses.replace(self.image, properties=properties),
            # Some traits are derived from properties that are removed.
            known_traits=self.required_traits,
        )


def operator_traits_of(
    flavor: Flavor,
    derived_traits: Collection[str] = (),
    nova: int = implied.NEWEST_NOVA,
) -> frozenset[str]:
    """Return all required traits that no image can add."""
    return (
        xs.required_traits(flavor.extra_specs)
        | implied.required_traits(flavor.extra_specs, {}, nova)
        | frozenset(derived_traits)
    )
