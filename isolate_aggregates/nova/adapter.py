# SPDX-License-Identifier: Apache-2.0
"""Nova's request spec as ours, and our conclusions back onto it."""

from __future__ import annotations

from collections.abc import Mapping
import functools

from nova import objects
from nova.scheduler import utils as scheduler_utils

from isolate_aggregates import exception
from isolate_aggregates.decision import Decision
from isolate_aggregates.nova import images
from isolate_aggregates.placement.group import RequestGroup
from isolate_aggregates.request import ComputeHost, Flavor, Image
from isolate_aggregates.request.properties import Declared
from isolate_aggregates.request.spec import traits_of


class NovaRequest:
    """Nova's request spec as the request filters want it.

    It is taken apart only as far as a filter looks at it; most look at little,
    and this is done for every request. The required traits are Nova's own, so
    that those it derives from settings, ports and device profiles count too.

    :param spec: Nova's request spec; not changed.
    :param read_image: Returns all properties of an image by its id, None if
        they cannot be had.
    :param declared: The image properties that the filters declare.
    """

    # Nova itself keeps the request to a host that was asked for.
    requested_host: ComputeHost | None = None

    def __init__(
        self,
        spec: objects.RequestSpec,
        read_image: images.Read,
        declared: Declared = Declared(),  # noqa: B008
    ) -> None:
        self._spec = spec
        self._read_image = read_image
        self._declared = declared

    def declaring(self, declared: Declared) -> NovaRequest:
        """Return the request as filters with some declarations see it.

        :raises RequestRefused: if a declared property cannot be had.
        :raises ServiceError: if Glance gives no usable answer.
        """
        request = NovaRequest(self._spec, self._read_image, declared)
        if declared.patterns:
            # Now, so that what cannot be had refuses the request.
            _ = request.image
        return request

    @functools.cached_property
    def flavor(self) -> Flavor:
        """The flavor."""
        return _flavor(self._spec.flavor)

    @functools.cached_property
    def image(self) -> Image | None:
        """The image, with the declared properties."""
        spec = self._spec
        if 'image' not in spec or not spec.image:
            return None
        image = spec.image
        identity = image.id if 'id' in image else ''
        return Image(
            # A server that boots from a volume has an image without a name.
            name=(image.name if 'name' in image else '')
            or identity
            or 'unnamed',
            id=identity,
            properties=images.properties(
                image, self._declared, self._read_image
            ),
            owner=image.owner if 'owner' in image else None,
        )

    @property
    def image_properties(self) -> Mapping[str, str]:
        """The declared properties of the image."""
        return self.image.properties if self.image else {}

    @functools.cached_property
    def project_id(self) -> str | None:
        """The project."""
        spec = self._spec
        return spec.project_id if 'project_id' in spec else None

    @functools.cached_property
    def scheduler_hints(self) -> Mapping[str, tuple[str, ...]]:
        """The scheduler hints."""
        return _hints(self._spec)

    @functools.cached_property
    def num_instances(self) -> int:
        """How many servers are asked for at once."""
        spec = self._spec
        return spec.num_instances if 'num_instances' in spec else 1

    @functools.cached_property
    def boot_from_volume(self) -> bool:
        """Whether the root disk is a volume."""
        spec = self._spec
        return bool('is_bfv' in spec and spec.is_bfv)

    @functools.cached_property
    def required_traits(self) -> frozenset[str]:
        """All required traits, as Nova works them out."""
        known = scheduler_utils.ResourceRequest.from_request_spec(self._spec)
        return frozenset(known.all_required_traits)

    @functools.cached_property
    def operator_traits(self) -> frozenset[str]:
        """Those that no image, and so no tenant, can add."""
        return traits_of(self.flavor, {}, _outside_traits(self._spec))


def asked_so_far(spec: objects.RequestSpec) -> RequestGroup:
    """Return what a request spec says of aggregates already.

    :param spec: Nova's request spec.
    """
    group = RequestGroup()
    asked = (
        spec.requested_destination if 'requested_destination' in spec else None
    )
    if asked is not None and asked.obj_attr_is_set('aggregates'):
        # Each is a text: uuids with commas between them.
        group.aggregates = [
            frozenset(choice.split(',')) for choice in asked.aggregates or ()
        ]
    if asked is not None and asked.obj_attr_is_set('forbidden_aggregates'):
        group.forbidden_aggregates = set(asked.forbidden_aggregates or ())
    return group


def apply(decision: Decision, spec: objects.RequestSpec) -> None:
    """Put a decision onto Nova's request spec.

    What is there already stays.

    :raises RequestRefused: if the request was refused, or a filter restricts
        it to a provider tree, which a request spec cannot say.
    """
    decision.check()
    if decision.destination.in_tree:
        raise exception.RequestRefused(
            [
                'a request filter restricts it to one provider tree, which '
                'Nova does not let a request filter ask for'
            ]
        )
    if decision.destination.root_forbidden:
        spec.root_forbidden.update(decision.destination.root_forbidden)
    required = decision.destination.required_aggregates
    forbidden = decision.forbidden
    if not required and not forbidden:
        return
    if (
        'requested_destination' not in spec
        or spec.requested_destination is None
    ):
        spec.requested_destination = objects.Destination()
    for choice in required:
        spec.requested_destination.require_aggregates(sorted(choice))
    if forbidden:
        spec.requested_destination.append_forbidden_aggregates(set(forbidden))


def _flavor(flavor: objects.Flavor) -> Flavor:
    return Flavor(
        name=flavor.name if 'name' in flavor else '',
        id=flavor.flavorid if 'flavorid' in flavor else '',
        vcpus=flavor.vcpus,
        ram=flavor.memory_mb,
        disk=flavor.root_gb,
        ephemeral=flavor.ephemeral_gb,
        swap=flavor.swap,
        extra_specs=flavor.extra_specs if 'extra_specs' in flavor else {},
    )


def _hints(spec: objects.RequestSpec) -> dict[str, tuple[str, ...]]:
    if 'scheduler_hints' not in spec or not spec.scheduler_hints:
        return {}
    hints = {}
    for name, value in spec.scheduler_hints.items():
        values = (value,) if isinstance(value, str) else tuple(value or ())
        # Nova takes an only and empty value for no hint.
        if values and values != ('',):
            hints[name] = values
    return hints


def _outside_traits(spec: objects.RequestSpec) -> frozenset[str]:
    """Return the traits of ports and device profiles."""
    if 'requested_resources' not in spec:
        return frozenset()
    return frozenset().union(
        *(group.required_traits for group in spec.requested_resources or ())
    )
