# SPDX-License-Identifier: Apache-2.0
"""Converts Nova's request spec, decides, and applies decisions to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
import weakref

from nova import objects
from nova.scheduler import utils as scheduler_utils
from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.aggregates.aggregate import naming
from isolate_aggregates.decision import Decision, decide
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.nova import database, images, placed
from isolate_aggregates.request import (
    ComputeHost,
    DeclaredProperties,
    Flavor,
    Image,
)
from isolate_aggregates.request.placed import Placed, without_records
from isolate_aggregates.rest.deadline import Deadline
from isolate_aggregates.text import short

LOG = logging.getLogger(__name__)

# Seconds to wait for Nova's databases. Nova itself may wait for a minute.
LONGEST = 10.0

_NONE_DECLARED = DeclaredProperties()

# Only its length matters.
_A_UUID = '00000000-0000-0000-0000-000000000000'


class NovaRequest:
    """Nova's request spec as a ``RequestSpec`` for the request filters.

    Attributes are converted on first access, because filters read few of them.
    The required traits are computed by Nova, so they include those from
    settings, ports and device profiles.

    It does not keep Nova's request spec alive. So a filter, or a function in
    one of its constraints, may keep the request.
    """

    # Nova itself restricts the request to a requested host.
    requested_host: ComputeHost | None = None

    def __init__(
        self,
        spec: objects.RequestSpec,
        accepted: images.AcceptedImage,
        declaration: DeclaredProperties = _NONE_DECLARED,
    ) -> None:
        self._reference = weakref.ref(spec)
        self._accepted = accepted
        self._is_known = accepted.is_known
        #: The declared properties of the image.
        self.image_properties = declaration.recorded(
            accepted.properties,
            images.traits_of(spec) if accepted.is_known else (),
        )

    @property
    def _spec(self) -> objects.RequestSpec:
        spec = self._reference()
        if spec is None:
            raise ReferenceError('The request has ended in nova-scheduler.')
        return spec

    def declaring(self, declaration: DeclaredProperties) -> NovaRequest:
        """Return the request with only the declared image properties."""
        return NovaRequest(self._spec, self._accepted, declaration)

    @lazy_property
    def flavor(self) -> Flavor:
        """The flavor."""
        return _flavor(self._spec.flavor)

    @lazy_property
    def image(self) -> Image | None:
        """The image, with the declared properties."""
        if not has_image(self._spec):
            return None
        image = self._spec.image
        identity = _field(image, 'id', '')
        name, owner = _field(image, 'name'), _field(image, 'owner')
        if self._accepted.traits is not None and (
            self._accepted.image != (identity or '')
        ):
            # The image in the request was refused for the server.
            identity, name, owner = self._accepted.image, '', ''
        return Image(
            # The image of a server that boots from a volume has no name.
            name=name or identity or 'unnamed',
            id=identity,
            properties=self.image_properties,
            owner=owner,
        )

    @lazy_property
    def project_id(self) -> str | None:
        """The project."""
        project_id: str | None = _field(self._spec, 'project_id')
        return project_id

    @lazy_property
    def scheduler_hints(self) -> Mapping[str, tuple[str, ...]]:
        """The scheduler hints."""
        return scheduler_hints(_field(self._spec, 'scheduler_hints'))

    @lazy_property
    def num_instances(self) -> int:
        """The number of servers in the request."""
        number: int = _field(self._spec, 'num_instances', 1)
        return number

    @lazy_property
    def boot_from_volume(self) -> bool:
        """Whether the root disk is a volume."""
        return bool(_field(self._spec, 'is_bfv'))

    @lazy_property
    def required_traits(self) -> frozenset[str]:
        """All required traits, as computed by Nova."""
        if not self._is_known:
            return self.operator_traits
        return frozenset(_computed(self._spec).all_required_traits)

    @lazy_property
    def operator_traits(self) -> frozenset[str]:
        """The required traits that no image, and so no tenant, can add."""
        spec = _OfOperator(self._spec)
        return frozenset(_computed(spec).all_required_traits)


class Decider:
    """Runs the request filters for a request of nova-scheduler.

    :param all_recorded: Returns whether all servers have a record of what they
        were placed with, if anything of their image counts.
    """

    def __init__(self, all_recorded: Callable[[], bool]) -> None:
        self._all_recorded = all_recorded
        # By uuid of the cell: one that hangs must not hold up the others.
        self._deadlines: dict[str, Deadline] = {}

    def decide(
        self,
        spec: objects.RequestSpec,
        aggregates: AggregateIndex,
        pipeline: Pipeline,
    ) -> Decision:
        """Run the request filters.

        What the servers of the request are placed with is remembered.

        :param spec: Nova's request spec. If its server has a record of what it
            was placed with, its image requires the traits of that.
        :raises RequestRefused: if a needed image property is not available.
        """
        image, server = self.read(spec, pipeline)
        placed.remember(spec, server)
        return decide(NovaRequest(spec, image), aggregates, pipeline)

    def read(
        self, spec: objects.RequestSpec, pipeline: Pipeline
    ) -> tuple[images.AcceptedImage, Placed | None]:
        """Read the image that counts for a request.

        :returns: It, and what the servers of the request are placed with; None
            for the latter if nothing is to be recorded.
        """
        image = images.AcceptedImage({})
        # What the image requires counts for servers that exist, too.
        declares = bool(pipeline.image_properties.patterns)
        is_read = has_image(spec) and (is_for_existing(spec) or declares)
        if is_read:
            image = self._read(spec, cell_of(spec))
        if image.traits is not None:
            _require_traits(spec, image.traits)
        traits = tuple(images.traits_of(spec))
        if not image.is_known or not (
            declares or traits or placed.recorded(spec)
        ):
            return image, None
        return image, Placed(
            image.image if is_read else images.named_image(spec),
            traits,
            image.properties if is_read else None,
        )

    def _read(
        self, spec: objects.RequestSpec, cell: objects.CellMapping | None
    ) -> images.AcceptedImage:
        deadline = self._deadlines.setdefault(
            cell.uuid if cell is not None and 'uuid' in cell else '',
            Deadline("Nova's database", LONGEST),
        )
        return deadline.run(
            lambda: images.read(spec, cell, self._all_recorded())
        )


def _field(thing: Any, name: str, default: Any = None) -> Any:
    """Return a field of an object of Nova; reading an unset one may set it."""
    return getattr(thing, name) if name in thing else default


def field(thing: Any, name: str, default: Any = None) -> Any:
    """Return a field for a record, from where oslo.versionedobjects stores it.

    Decisions must not depend on where that is. But ``in`` makes a list of all
    fields first: 20 of them would take as long as all else of a record.
    """
    return vars(thing).get(f'_obj_{name}', default)


def scheduler_hints(
    given: Mapping[str, Any] | None,
) -> Mapping[str, tuple[str, ...]]:
    """Return scheduler hints without our records, each with its values."""
    hints = {}
    for name, value in without_records(given or {}).items():
        values = (value,) if isinstance(value, str) else (*(value or ()),)
        # Nova treats a single empty value as no hint.
        if values and values != ('',):
            hints[name] = values
    return hints


def has_image(spec: objects.RequestSpec) -> bool:
    """Return whether a request has an image; a volume may have none."""
    return bool(_field(spec, 'image'))


def destination_of(spec: objects.RequestSpec) -> objects.Destination | None:
    """Return the destination in a request."""
    return _field(spec, 'requested_destination')


def cell_of(spec: objects.RequestSpec) -> objects.CellMapping | None:
    """Return the cell in a request; requests to move servers have one."""
    target = destination_of(spec)
    return _field(target, 'cell') if target else None


def is_for_existing(
    spec: objects.RequestSpec, read: Callable[[Any, str], Any] = _field
) -> bool:
    """Return whether a request is for a server that already has a cell.

    :param read: Returns a field; :func:`field` for a record.
    """
    target = read(spec, 'requested_destination')
    return bool(
        target
        and (
            read(target, 'cell')
            # The requested host may be in another cell.
            or read(target, 'allow_cross_cell_move')
        )
    )


class _OfOperator:
    """A request with another image, which implies no traits.

    The image has what the extra specs of a flavor may need an image to have,
    as Nova refuses a request without it. Traits of the root do not count, and
    reading them would set a field.
    """

    root_required = root_forbidden = frozenset[str]()
    same_subtree = ()

    def __init__(self, spec: objects.RequestSpec) -> None:
        self._spec = spec
        self.image = objects.ImageMeta.from_dict(
            {
                'properties': {
                    'hw_cpu_realtime_mask': '^0',
                    'hw_firmware_type': 'uefi',
                    'hw_machine_type': 'q35',
                }
            }
        )

    def __contains__(self, field: str) -> bool:
        return field == 'image' or field in self._spec

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spec, name)


def _require_traits(spec: objects.RequestSpec, traits: Sequence[str]) -> None:
    """Make the image in a request require the given traits.

    Nova's own filters use its other properties.
    """
    if [*images.traits_of(spec)] == [*traits]:
        return
    image = spec.image.obj_clone()
    if 'properties' not in image:
        image.properties = objects.ImageMetaProps()
    image.properties.traits_required = [*traits]
    spec.image = image


def query_length(spec: objects.RequestSpec) -> int:
    """Return the maximum length of Nova's query in bytes.

    It is computed from Nova's own query string, so all request filters must
    have run. For pinned CPUs Nova sends two queries; the longer one counts.
    """
    request = _resource_request(spec)
    lengths = [len(request.to_querystring())]
    if request.cpu_pinning_requested:
        request = _resource_request(spec, enable_pinning_translate=False)
        lengths.append(len(request.to_querystring()))
    return max(lengths)


def _computed(
    spec: objects.RequestSpec | _OfOperator,
    enable_pinning_translate: bool = True,
) -> scheduler_utils.ResourceRequest:
    """Return the resources and traits of a request, as computed by Nova."""
    try:
        return scheduler_utils.ResourceRequest.from_request_spec(
            spec, enable_pinning_translate
        )
    except database.ERRORS as exc:
        # For example, the extra specs contradict the image.
        raise exception.RequestRefused(
            [f'Nova cannot compute its resources: {short(exc)}']
        ) from exc


def _resource_request(
    spec: objects.RequestSpec, enable_pinning_translate: bool = True
) -> scheduler_utils.ResourceRequest:
    """Return the same as Nova's ``resources_from_request_spec`` will.

    Unlike Nova's function, this does not look up the nodes of a target host.
    """
    request = _computed(spec, enable_pinning_translate)
    target = destination_of(spec)
    group = request.get_request_group(None)
    if target and (required := _field(target, 'aggregates')):
        group.aggregates = [each.split(',') for each in required]
    if target and (forbidden := _field(target, 'forbidden_aggregates')):
        group.forbidden_aggregates = set(forbidden)
    if forced(spec) or (target and ('host' in target or 'node' in target)):
        group.in_tree = _A_UUID
    if request.get_num_of_suffixed_groups() > 1 and not request.group_policy:
        request.group_policy = 'none'
    return request


def forced(
    spec: objects.RequestSpec,
) -> tuple[Sequence[str], Sequence[str]] | None:
    """Return the hosts and nodes that a request is forced to.

    Nova skips its host filters for these.

    :returns: None if the request is not forced.
    """
    hosts = _field(spec, 'force_hosts')
    nodes = _field(spec, 'force_nodes')
    return (hosts or (), nodes or ()) if hosts or nodes else None


def check_rebuild(spec: objects.RequestSpec) -> None:
    """Raise if a request is marked as a rebuild, but is none.

    Nova marks rebuilds with a scheduler hint, and skips request filters and
    Placement for these. Before `OSSA-2026-022
    <https://security.openstack.org/ossa/OSSA-2026-022.html>`_ was fixed,
    tenants could give the hint for new servers, whose later requests keep it.
    A rebuild is forced to the host of a server that has a cell.
    """
    if scheduler_utils.request_is_rebuild(spec) and not (
        forced(spec) and is_for_existing(spec)
    ):
        raise exception.RequestRefused(
            [
                'it has the scheduler hint _nova_check_type of a rebuild, but '
                'is none, and Placement was not asked'
            ]
        )


def check_length(decision: Decision, spec: objects.RequestSpec) -> None:
    """Raise if the query of a decision cannot be shortened enough.

    Other request filters may have made it too long, as the in-tree one does.
    """
    if decision.too_long is None:
        return
    target = destination_of(spec)
    others = (target and target.forbidden_aggregates) or ()
    names = naming(a for a in decision.aggregates if a.uuid in others)
    raise exception.QueryNotShortened(
        [
            *decision.too_long.reasons,
            *(others and [f'other request filters forbid {names} in it']),
        ]
    )


def apply(decision: Decision, spec: objects.RequestSpec) -> None:
    """Add a decision to Nova's request spec. Existing constraints are kept.

    :param decision: The decision, with a query that is within the limit.
    :raises RequestRefused: if Nova's query has no group for aggregates.
    """
    required, forbidden = decision.required, decision.forbidden
    if required or forbidden:
        _check_group(spec)
    for choice in required:
        _destination(spec).require_aggregates(sorted(choice))
    if forbidden:
        destination = _destination(spec)
        destination.forbidden_aggregates = set(
            destination.forbidden_aggregates or ()
        )
        # Nova's append_forbidden_aggregates converts each element to text,
        # twice, which takes longer than the filters. These are texts.
        set.update(destination.forbidden_aggregates, forbidden)


def _check_group(spec: objects.RequestSpec) -> None:
    # Placement rejects the group without a suffix if it has no resources.
    # Unless an extra spec says 0, it has the vCPUs of the flavor. Nova refuses
    # such an extra spec of a flavor with pinned CPUs.
    flavor = _field(spec, 'flavor')
    if (
        flavor
        and 'resources:VCPU' in _field(flavor, 'extra_specs', {})
        and not _computed(spec).get_request_group(None).resources
    ):
        raise exception.RequestRefused(
            [
                f'all resources of flavor {flavor.name} are in request groups '
                'with a suffix, so there is no group to which required or '
                'forbidden aggregates can be added; request at least one '
                'resource without a suffix'
            ]
        )


def _destination(spec: objects.RequestSpec) -> objects.Destination:
    if destination_of(spec) is None:
        spec.requested_destination = objects.Destination()
    return spec.requested_destination


def _flavor(flavor: objects.Flavor) -> Flavor:
    return Flavor(
        name=_field(flavor, 'name', ''),
        id=_field(flavor, 'flavorid', ''),
        vcpus=flavor.vcpus,
        ram=flavor.memory_mb,
        disk=flavor.root_gb,
        ephemeral=flavor.ephemeral_gb,
        swap=flavor.swap,
        # A copy, as Nova's refers to the flavor.
        extra_specs=dict(_field(flavor, 'extra_specs', {})),
    )
