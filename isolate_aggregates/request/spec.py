# SPDX-License-Identifier: Apache-2.0
"""The request: a flavor, an image, a project, hints, possibly a host.

:class:`RequestSpec` is the interface for request filters. Inside
nova-scheduler it is Nova's own request spec, wrapped; for commands and tests
it is a ``Request``, created from Nova's API or a cloud file.
"""

from collections.abc import Mapping
import dataclasses
from typing import Protocol

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
    :param is_public: Whether all projects may use it.
    :param projects: The ids of the projects that may use it if it is private.
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
    is_public: bool = True
    projects: frozenset[str] = frozenset()


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

    @property
    def is_tenants(self) -> bool:
        """Whether a tenant may have written its properties.

        By default only operators can make images public. A cloud file may not
        say whether an image is public; then it does not count as a tenant's.
        """
        return self.visibility not in (None, 'public')


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
        new server these are the current ones. After a rebuild they are those
        of the image with which nova-scheduler has placed the server.

        Required traits, as ``trait:<NAME>=required``, are always included.
        Properties that no filter declares are never included.
        """

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
