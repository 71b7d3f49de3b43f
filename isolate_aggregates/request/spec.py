# SPDX-License-Identifier: Apache-2.0
"""What is asked for: a flavor, an image, a project, hints, perhaps a host.

Plain immutable values. They are filled from Nova's API, from a cloud file or,
inside nova-scheduler, from Nova's own request spec, and never changed by the
filters that read them.
"""

from collections.abc import Mapping
import dataclasses
import functools

from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.request import implied


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
    """

    name: str
    id: str = ''
    properties: Mapping[str, str] = dataclasses.field(default_factory=dict)
    owner: str | None = None
    visibility: str | None = None


@dataclasses.dataclass(frozen=True)
class RequestedHost:
    """A host named in the request, as it was found in the cloud.

    :param name: The name as it was asked for.
    :param providers: Uuids of the compute node resource providers of that
        host: none when it is unknown, several for a bare metal service.
    """

    name: str
    providers: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class RequestSpec:
    """One request for servers, as the request filters see it.

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
    :param known_traits: All required traits, where Nova has worked them out
        already; None to work them out here.
    """

    flavor: Flavor
    image: Image | None = None
    project_id: str | None = None
    scheduler_hints: Mapping[str, tuple[str, ...]] = dataclasses.field(
        default_factory=dict
    )
    requested_host: RequestedHost | None = None
    num_instances: int = 1
    boot_from_volume: bool = False
    derived_traits: frozenset[str] = frozenset()
    known_traits: frozenset[str] | None = None

    @property
    def image_properties(self) -> Mapping[str, str]:
        """The image's properties; none without an image."""
        return self.image.properties if self.image else {}

    @functools.cached_property
    def required_traits(self) -> frozenset[str]:
        """Every trait this request requires, in any request group.

        These are the traits that open an isolated aggregate, the same set as
        ``all_required_traits`` of Nova's ``ResourceRequest``.
        """
        if self.known_traits is not None:
            return self.known_traits
        return self._traits(self.image_properties)

    @functools.cached_property
    def operator_traits(self) -> frozenset[str]:
        """Every required trait that no image, and so no tenant, can add."""
        return self._traits({})

    def _traits(self, properties: Mapping[str, str]) -> frozenset[str]:
        implications = implied.translate(
            self.flavor.extra_specs, properties, self.flavor.vcpus
        )
        return (
            xs.required_traits(self.flavor.extra_specs)
            | xs.image_required_traits(properties)
            | implications.required_traits
            | self.derived_traits
        )

    @functools.cached_property
    def description(self) -> str:
        """Who asks, for the middle of a sentence: flavor and image."""
        flavor = f'flavor {self.flavor.name}'
        return (
            f'{flavor} nor image {self.image.name}' if self.image else flavor
        )
