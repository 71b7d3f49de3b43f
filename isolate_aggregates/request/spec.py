# SPDX-License-Identifier: Apache-2.0
"""The request: a flavor, an image, a project, hints, perhaps a host.

:class:`RequestSpec` is what a request filter sees, wherever it runs. Outside
nova-scheduler it is a :class:`Request`, made from Nova's API or a cloud file;
inside, it is made from Nova's own request spec.
"""

from collections.abc import Collection, Mapping
import dataclasses
import functools
from typing import Protocol

from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.request import implied, properties


@dataclasses.dataclass(frozen=True)
class Flavor:
    """The size of a server, with the units Nova's flavors have.

    :param name: Name, shown to people.
    :param id: Flavor id.
    :param vcpus: Number of virtual CPUs.
    :param ram: Memory in MiB.
    :param disk: Root disk in GiB.
    :param ephemeral: Ephemeral disk in GiB.
    :param swap: Swap disk in MiB.
    :param extra_specs: Extra specs by key.
    """

    name: str
    id: str = ''
    vcpus: int = 0
    ram: int = 0
    disk: int = 0
    ephemeral: int = 0
    swap: int = 0
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Image:
    """What the server boots from.

    :param name: Name, shown to people.
    :param id: Image id.
    :param properties: Custom properties by key, as Glance has them.
    :param owner: Id of the project that owns the image.
    :param visibility: Glance's visibility, such as ``public`` or ``shared``.
    :param disk_format: Its disk format, such as ``qcow2``; None if it is not
        known.
    """

    name: str
    id: str = ''
    properties: Mapping[str, str] = dataclasses.field(default_factory=dict)
    owner: str | None = None
    visibility: str | None = None
    disk_format: str | None = None


@dataclasses.dataclass(frozen=True)
class ComputeHost:
    """A host named in the request, as it was found in the cloud.

    :param name: The name as it was asked for.
    :param providers: Uuids of the compute node resource providers of that
        host: none when it is unknown, several for a bare metal service.
    """

    name: str
    providers: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class ResourceGroup:
    """What a port or a device profile asks for, beside flavor and image.

    One provider must give all of it.

    :param id: What Nova calls the group: the suffix in the query.
    :param resources: Amounts by resource class.
    :param required_traits: Traits the provider must have.
    :param forbidden_traits: Traits the provider must not have.
    """

    id: str
    resources: Mapping[str, int] = dataclasses.field(default_factory=dict)
    required_traits: frozenset[str] = frozenset()
    forbidden_traits: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class RequestedNetwork:
    """A network or a port that was asked for.

    :param name: What to call it.
    :param aggregates: Uuids of the aggregates of its segments, if it is
        routed; one of them is enough. None if they were not looked up.
    :param remote_managed: Whether it is a port of the type
        ``remote-managed``.
    :param broken: Why its segments are not usable, so that Nova refuses the
        request; empty if they are.
    """

    name: str
    aggregates: tuple[str, ...] | None = ()
    remote_managed: bool = False
    broken: str = ''


class RequestSpec(Protocol):
    """One request for servers, as the request filters see it.

    Filters read it and never change it.
    """

    @property
    def flavor(self) -> Flavor:
        """The flavor."""

    @property
    def image(self) -> Image | None:
        """The image; None if the server has none, or it is not known.

        Its properties are :attr:`image_properties`.
        """

    @property
    def image_properties(self) -> Mapping[str, str]:
        """The image properties that the loaded filters declare.

        They have Glance's values: the current ones for a new server, and those
        of the moment when it was accepted for an existing one.

        Required traits, as ``trait:<NAME>=required``, are always included. A
        property that no filter declares is never included.
        """

    @property
    def project_id(self) -> str | None:
        """The id of the project the server will belong to, if it is known."""

    @property
    def scheduler_hints(self) -> Mapping[str, tuple[str, ...]]:
        """The values of each scheduler hint; repeated hints have several."""

    @property
    def requested_host(self) -> ComputeHost | None:
        """The host that was asked for; inside nova-scheduler always None.

        Nova itself keeps the request to that host.
        """

    @property
    def num_instances(self) -> int:
        """How many servers are asked for at once."""

    @property
    def boot_from_volume(self) -> bool:
        """Whether the root disk is a volume, which takes none of a host."""

    @property
    def required_traits(self) -> frozenset[str]:
        """Every trait this request requires, in any request group.

        These are the traits that open an isolated aggregate, the same set as
        ``all_required_traits`` of Nova's ``ResourceRequest``.
        """

    @property
    def operator_traits(self) -> frozenset[str]:
        """Every required trait that no image, and so no tenant, can add."""

    def declaring(self, declared: properties.Declared) -> 'RequestSpec':
        """Return the request as filters with some declarations see it.

        The pipeline calls this before it runs the filters.

        :param declared: The image properties that the filters declare.
        :raises RequestRefused: if a declared property cannot be had.
        :raises ServiceError: if it cannot be read.
        """


@dataclasses.dataclass(frozen=True)
class Request:
    """A request outside nova-scheduler.

    :param flavor: The flavor.
    :param image: The image; None when the server boots from a volume whose
        image properties are not known.
    :param project_id: The project the server will belong to.
    :param scheduler_hints: Scheduler hints; a hint that may be repeated has
        several values.
    :param requested_host: The host that was asked for, if any.
    :param num_instances: How many servers are asked for at once.
    :param boot_from_volume: Whether the root disk is a volume, so that none
        is taken from the host.
    :param derived_traits: Required traits that come from elsewhere than the
        flavor and the image, such as ports and device profiles.
    :param known_traits: All required traits, if they are already computed;
        None to compute them here.
    :param availability_zone: The availability zone that was asked for.
    :param resource_groups: What ports and device profiles ask for.
    :param same_subtree: Ids of groups that one subtree must serve.
    :param networks: The networks and ports that were asked for.
    :param nova_release: The release of Nova that is asked; each adds more to a
        request.
    :param host_forced: Whether the requested host is forced, so that Nova
        asks no host filter.
    :param owner_nova: Whether all compute nodes say that they are Nova's,
        which Nova then requires; None if that is not known.
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

    @property
    def image_properties(self) -> Mapping[str, str]:
        """The image's properties; none without an image."""
        return self.image.properties if self.image else {}

    @functools.cached_property
    def required_traits(self) -> frozenset[str]:
        """Every trait this request requires, in any request group."""
        if self.known_traits is not None:
            return self.known_traits
        return self._traits(self.image_properties)

    @functools.cached_property
    def operator_traits(self) -> frozenset[str]:
        """Every required trait that no image, and so no tenant, can add."""
        return self._traits({})

    def _traits(self, properties: Mapping[str, str]) -> frozenset[str]:
        return traits_of(
            self.flavor,
            properties,
            self.derived_traits.union(
                *(group.required_traits for group in self.resource_groups)
            ),
            self.nova_release,
        )

    def declaring(self, declared: properties.Declared) -> 'Request':
        """Return the request without the properties that no filter declares.

        :param declared: The image properties that the filters declare.
        """
        if self.image is None:
            return self
        kept = declared.among(self.image.properties)
        return dataclasses.replace(
            self,
            image=dataclasses.replace(self.image, properties=kept),
            # Some follow from properties that are left out.
            known_traits=self.required_traits,
        )


def traits_of(
    flavor: Flavor,
    image_properties: Mapping[str, str],
    derived_traits: Collection[str] = (),
    nova: int = implied.NEWEST_NOVA,
) -> frozenset[str]:
    """Return every trait that a flavor and an image require.

    :param flavor: The flavor.
    :param image_properties: All properties of the image.
    :param derived_traits: Required traits that come from elsewhere.
    :param nova: The release of Nova that is asked.
    """
    implications = implied.translate(
        flavor.extra_specs, image_properties, flavor.vcpus, nova
    )
    return (
        xs.required_traits(flavor.extra_specs)
        | xs.image_required_traits(image_properties)
        | implications.required_traits
        | frozenset(derived_traits)
    )
