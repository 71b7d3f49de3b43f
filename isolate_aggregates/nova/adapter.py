# SPDX-License-Identifier: Apache-2.0
"""Nova's request spec as ours, and our conclusions back onto it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
import functools

from nova import objects
from nova.scheduler import utils as scheduler_utils

from isolate_aggregates.filters.destination import Destination
from isolate_aggregates.placement.group import RequestGroup
from isolate_aggregates.request import Flavor, Image, RequestSpec
from isolate_aggregates.request.extra_specs import REQUIRED, TRAIT_PREFIX


class NovaRequest(RequestSpec):
    """Nova's request spec as the request filters want it.

    It is taken apart only as far as a filter looks at it; most look at little,
    and this is done for every request. The required traits are Nova's own, so
    that those it derives from settings, ports and device profiles count too.

    :param spec: Nova's request spec; not changed.
    :param properties: Image properties that Nova has dropped.
    """

    _spec: objects.RequestSpec
    _properties: Mapping[str, str]

    def __init__(
        self,
        spec: objects.RequestSpec,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        # All else is frozen.
        self.__dict__.update(_spec=spec, _properties=properties or {})

    @functools.cached_property
    def flavor(self) -> Flavor:
        """The flavor."""
        return _flavor(self._spec.flavor)

    @functools.cached_property
    def image(self) -> Image | None:
        """The image."""
        return _image(self._spec, self._properties)

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
    def derived_traits(self) -> frozenset[str]:
        """Required traits of ports and device profiles."""
        return _outside_traits(self._spec)

    @functools.cached_property
    def known_traits(self) -> frozenset[str]:
        """All required traits, as Nova works them out."""
        known = scheduler_utils.ResourceRequest.from_request_spec(self._spec)
        return frozenset(known.all_required_traits)


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


def apply(
    destination: Destination,
    spec: objects.RequestSpec,
    forbidden: Collection[str] | None = None,
) -> None:
    """Put what the filters concluded onto Nova's request spec.

    What is there already stays. Nova itself sees to the requested host and to
    disabled compute services, so only aggregates are put there.

    :param destination: What the filters concluded; not a refusal.
    :param spec: Nova's request spec.
    :param forbidden: Uuids of aggregates that stand for those that are
        forbidden; None for those themselves.
    :raises RequestRefused: if the request was refused.
    """
    destination.check()
    required = destination.required_aggregates
    if forbidden is None:
        forbidden = destination.forbidden_aggregates
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


def _image(
    spec: objects.RequestSpec, properties: Mapping[str, str]
) -> Image | None:
    if 'image' not in spec or not spec.image:
        return None
    image = spec.image
    kept = image.properties if 'properties' in image else {}
    traits = kept.get('traits_required', []) if kept else []
    identity = image.id if 'id' in image else ''
    return Image(
        # A server that boots from a volume has an image without a name.
        name=(image.name if 'name' in image else '') or identity or 'unnamed',
        id=identity,
        properties={
            **properties,
            **{f'{TRAIT_PREFIX}{trait}': REQUIRED for trait in traits},
        },
        owner=image.owner if 'owner' in image else None,
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
