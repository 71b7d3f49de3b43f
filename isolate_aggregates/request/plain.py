# SPDX-License-Identifier: Apache-2.0
"""A request as plain values: of tests of filters, checks and commands."""

from collections.abc import Mapping
import dataclasses
from typing import Self

from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import trait_requirements
from isolate_aggregates.request.properties import DeclaredProperties
from isolate_aggregates.request.spec import ComputeHost, Flavor, Image


@dataclasses.dataclass(frozen=True)
class PlainRequest:
    """A request outside nova-scheduler.

    It requires the traits that its flavor and image name, and those that are
    given. What Nova derives from other extra specs and properties, it does not
    know.

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

    @property
    def image_properties(self) -> Mapping[str, str]:
        """The properties of the image; empty without an image."""
        return self.image.properties if self.image else {}

    @lazy_property
    def required_traits(self) -> frozenset[str]:
        """Every trait this request requires, in any request group."""
        if self.known_traits is not None:
            return self.known_traits
        return self.operator_traits | trait_requirements.image_required_traits(
            self.image_properties
        )

    @lazy_property
    def operator_traits(self) -> frozenset[str]:
        """Every required trait that no image, and so no tenant, can add."""
        return (
            trait_requirements.required_traits(self.flavor.extra_specs)
            | self.derived_traits
        )

    def declaring(self, declaration: DeclaredProperties) -> Self:
        """Return the request without the properties that no filter declares.

        :param declaration: The image properties that the filters declare.
        """
        if self.image is None:
            return self
        properties = declaration.among(self.image.properties)
        return dataclasses.replace(
            self,
            image=dataclasses.replace(self.image, properties=properties),
            # Some traits may come from properties that are removed.
            known_traits=self.required_traits,
        )
