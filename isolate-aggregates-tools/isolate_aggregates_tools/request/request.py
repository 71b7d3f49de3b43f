# SPDX-License-Identifier: Apache-2.0
"""A request of commands and tests, with all that Nova derives from it."""

from collections.abc import Collection, Mapping
import dataclasses

from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import trait_requirements
from isolate_aggregates.request.plain import PlainRequest
from isolate_aggregates.request.spec import Flavor
from isolate_aggregates_tools.request import implied


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
class Request(PlainRequest):
    """A request with all that Nova derives from flavor, image and ports.

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
    :param pci_aliases: The names of the PCI aliases that nova-api has; None if
        unknown.
    :param pcpu_fallback: Whether Nova sends a second query, for VCPU instead
        of PCPU.
    :param pinned_as_vcpu: Whether this is the request of that second query.
    """

    availability_zone: str | None = None
    resource_groups: tuple[ResourceGroup, ...] = ()
    same_subtree: tuple[frozenset[str], ...] = ()
    networks: tuple[RequestedNetwork, ...] = ()
    nova_release: int = implied.NEWEST_NOVA
    host_forced: bool = False
    owner_nova: bool | None = None
    is_accepted: bool = False
    pci_aliases: frozenset[str] | None = None
    pcpu_fallback: bool = False
    pinned_as_vcpu: bool = False

    @property
    def variants(self) -> 'tuple[Request, ...]':
        """The request of each query that Nova sends; a host needs one."""
        if not self.pcpu_fallback:
            return (self,)
        fallback = dataclasses.replace(
            self, pcpu_fallback=False, pinned_as_vcpu=True
        )
        return self, fallback

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
            trait_requirements.required_traits(flavor.extra_specs)
            | trait_requirements.image_required_traits(properties)
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


def operator_traits_of(
    flavor: Flavor,
    derived_traits: Collection[str] = (),
    nova: int = implied.NEWEST_NOVA,
) -> frozenset[str]:
    """Return all required traits that no image can add."""
    return (
        trait_requirements.required_traits(flavor.extra_specs)
        | implied.required_traits(flavor.extra_specs, {}, nova)
        | frozenset(derived_traits)
    )
