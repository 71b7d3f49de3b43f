# SPDX-License-Identifier: Apache-2.0
"""Nova's request spec as ours, and our conclusions back onto it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import functools

from nova import objects
from nova.scheduler import utils as scheduler_utils

from isolate_aggregates import exception
from isolate_aggregates.decision import Decision
from isolate_aggregates.nova import images
from isolate_aggregates.request import ComputeHost, Flavor, Image
from isolate_aggregates.request.properties import Declared
from isolate_aggregates.request.spec import traits_of

# Only its length matters.
_A_UUID = '00000000-0000-0000-0000-000000000000'


class NovaRequest:
    """Nova's request spec as a ``RequestSpec`` for the request filters.

    It is converted only as far as a filter reads it; most filters read little,
    and this is done for every request. The required traits are Nova's own, so
    those it derives from settings, ports and device profiles count too.

    :param spec: Nova's request spec; not changed.
    :param declared: The image properties that the filters declare.
    :param read_record: Reads what the server keeps of its image.
    """

    # Nova itself keeps the request to a host that was asked for.
    requested_host: ComputeHost | None = None

    def __init__(
        self,
        spec: objects.RequestSpec,
        declared: Declared = Declared(),  # noqa: B008
        read_record: images.Read = images.read,
    ) -> None:
        self._spec = spec
        self._declared = declared
        self._read_record = read_record

    def declaring(self, declared: Declared) -> NovaRequest:
        """Return the request as filters with some declarations see it.

        :raises RequestRefused: if a declared property cannot be had.
        :raises ServiceError: if Nova's databases cannot be read.
        """
        request = NovaRequest(self._spec, declared, self._read_record)
        # Now, so that a missing property refuses the request, and no filter
        # waits # for a database.
        _ = request._accepted
        return request

    @functools.cached_property
    def _accepted(self) -> images.AcceptedImage | None:
        spec = self._spec
        if 'image' not in spec or not spec.image:
            return None
        return images.AcceptedImage(spec, self._declared, self._read_record)

    @functools.cached_property
    def flavor(self) -> Flavor:
        """The flavor."""
        return _flavor(self._spec.flavor)

    @functools.cached_property
    def image(self) -> Image | None:
        """The image, with the declared properties."""
        if self._accepted is None:
            return None
        image = self._spec.image
        identity = image.id if 'id' in image else ''
        return Image(
            # A server that boots from a volume has an image without a name.
            name=(image.name if 'name' in image else '')
            or identity
            or 'unnamed',
            id=identity,
            properties=self._accepted.properties,
            owner=image.owner if 'owner' in image else None,
        )

    @property
    def image_properties(self) -> Mapping[str, str]:
        """The declared properties of the image."""
        return self._accepted.properties if self._accepted else {}

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
        if self._accepted is not None and not self._accepted.is_known:
            return self.operator_traits
        known = scheduler_utils.ResourceRequest.from_request_spec(self._spec)
        return frozenset(known.all_required_traits)

    @functools.cached_property
    def operator_traits(self) -> frozenset[str]:
        """Those that no image, and so no tenant, can add."""
        return traits_of(self.flavor, {}, _outside_traits(self._spec))


def query_length(spec: objects.RequestSpec) -> int:
    """Return how many bytes Nova's query will have, at most.

    It is Nova's own query string, so it must be all that the request filters
    must say; of two queries for pinned CPUs the longer one counts.

    :param spec: Nova's request spec.
    """
    asked = _resource_request(spec)
    lengths = [len(asked.to_querystring())]
    if asked.cpu_pinning_requested:
        asked = _resource_request(spec, enable_pinning_translate=False)
        lengths.append(len(asked.to_querystring()))
    return max(lengths)


def _resource_request(
    spec: objects.RequestSpec, enable_pinning_translate: bool = True
) -> scheduler_utils.ResourceRequest:
    """Return what ``resources_from_request_spec`` of Nova will return.

    That one must look for the compute nodes of a target.
    """
    asked = scheduler_utils.ResourceRequest.from_request_spec(
        spec, enable_pinning_translate
    )
    target = (
        spec.requested_destination if 'requested_destination' in spec else None
    )
    group = asked.get_request_group(None)
    # Nova's objects set what is not set when it is read.
    if target and target.obj_attr_is_set('aggregates') and target.aggregates:
        group.aggregates = [each.split(',') for each in target.aggregates]
    if (
        target
        and target.obj_attr_is_set('forbidden_aggregates')
        and target.forbidden_aggregates
    ):
        group.forbidden_aggregates = set(target.forbidden_aggregates)
    if forced(spec) or (target and ('host' in target or 'node' in target)):
        group.in_tree = _A_UUID
    if asked.get_num_of_suffixed_groups() > 1 and not asked.group_policy:
        asked.group_policy = 'none'
    return asked


def forced(
    spec: objects.RequestSpec,
) -> tuple[Sequence[str], Sequence[str]] | None:
    """Return the hosts and the nodes that a request is forced to.

    Nova asks no host filter about these.

    :returns: None if it is not.
    """
    hosts = spec.force_hosts if 'force_hosts' in spec else None
    nodes = spec.force_nodes if 'force_nodes' in spec else None
    return (hosts or (), nodes or ()) if hosts or nodes else None


def apply(decision: Decision, spec: objects.RequestSpec) -> None:
    """Add a decision to Nova's request spec, except what it forbids.

    Existing constraints stay.

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
    if decision.destination.host_objections:
        raise exception.RequestRefused(
            [
                'a request filter drops hosts after Placement has answered, '
                'which Nova leaves to host filters'
            ]
        )
    if decision.destination.root_required:
        spec.root_required.update(decision.destination.root_required)
    if decision.destination.root_forbidden:
        spec.root_forbidden.update(decision.destination.root_forbidden)
    for choice in decision.required:
        _destination(spec).require_aggregates(sorted(choice))


def complete(
    decision: Decision, applied: Decision, spec: objects.RequestSpec
) -> None:
    """Put what a decision forbids onto Nova's request spec.

    :param decision: The decision, with a query that fits.
    :param applied: The decision as it was applied.
    :raises RequestRefused: if the request was refused.
    """
    decision.check()
    for choice in applied.required:
        if choice not in decision.required:
            _without(_destination(spec), ','.join(sorted(choice)))
    for choice in decision.required:
        if choice not in applied.required:
            _destination(spec).require_aggregates(sorted(choice))
    if decision.forbidden:
        _destination(spec).append_forbidden_aggregates(decision.forbidden)


def _without(destination: objects.Destination, choice: str) -> None:
    """Require a choice of aggregates once less.

    Another request filter may require the same, and keeps doing so.
    """
    required = list(destination.aggregates or ())
    if choice in required:
        required.remove(choice)
        destination.aggregates = required


def _destination(spec: objects.RequestSpec) -> objects.Destination:
    if (
        'requested_destination' not in spec
        or spec.requested_destination is None
    ):
        spec.requested_destination = objects.Destination()
    return spec.requested_destination


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
