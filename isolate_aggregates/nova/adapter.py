# SPDX-License-Identifier: Apache-2.0
"""Converts Nova's request spec, decides, and applies decisions to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from isolate_aggregates.nova import database, images, messages, source
from isolate_aggregates.request import ComputeHost, Flavor, Image, Past
from isolate_aggregates.request.properties import DeclaredProperties
from isolate_aggregates.rest.deadline import Deadline
from isolate_aggregates.text import short

LOG = logging.getLogger(__name__)

# Seconds to wait for Nova's databases. Nova itself may wait for a minute.
LONGEST = 10.0

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
        declaration: DeclaredProperties = DeclaredProperties(),  # noqa: B008
        read_record: images.Read = images.read,
        past: Past | None = None,
    ) -> None:
        #: What is known of a server that was rebuilt.
        self.past = past
        self._reference = weakref.ref(spec)
        self._declaration = declaration
        self._read_record = read_record

    @property
    def _spec(self) -> objects.RequestSpec:
        spec = self._reference()
        if spec is None:
            raise ReferenceError('The request has ended in nova-scheduler.')
        return spec

    def declaring(self, declaration: DeclaredProperties) -> NovaRequest:
        """Return the request with only the declared image properties.

        :raises RequestRefused: if a declared property is not available.
        """
        spec = self._spec
        request = NovaRequest(spec, declaration, self._read_record, self.past)
        # Read the properties now, so that a missing one refuses the request,
        # and no filter waits for a database.
        vars(request)['_accepted'] = request._accept(spec)
        return request

    @lazy_property
    def _accepted(self) -> images.AcceptedImage | None:
        return self._accept(self._spec)

    def _accept(
        self, spec: objects.RequestSpec
    ) -> images.AcceptedImage | None:
        if not has_image(spec):
            return None
        return images.AcceptedImage(spec, self._declaration, self._read_record)

    @lazy_property
    def flavor(self) -> Flavor:
        """The flavor."""
        return _flavor(self._spec.flavor)

    @lazy_property
    def image(self) -> Image | None:
        """The image, with the declared properties."""
        if self._accepted is None:
            return None
        image = self._spec.image
        identity = image.id if 'id' in image else ''
        return Image(
            # The image of a server that boots from a volume has no name.
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

    @lazy_property
    def project_id(self) -> str | None:
        """The project."""
        spec = self._spec
        return spec.project_id if 'project_id' in spec else None

    @lazy_property
    def scheduler_hints(self) -> Mapping[str, tuple[str, ...]]:
        """The scheduler hints."""
        return _hints(self._spec)

    @lazy_property
    def num_instances(self) -> int:
        """The number of servers in the request."""
        spec = self._spec
        return spec.num_instances if 'num_instances' in spec else 1

    @lazy_property
    def boot_from_volume(self) -> bool:
        """Whether the root disk is a volume."""
        spec = self._spec
        return bool('is_bfv' in spec and spec.is_bfv)

    @lazy_property
    def required_traits(self) -> frozenset[str]:
        """All required traits, as computed by Nova."""
        if self._accepted is not None and not self._accepted.is_known:
            return self.operator_traits
        return frozenset(_computed(self._spec).all_required_traits)

    @lazy_property
    def operator_traits(self) -> frozenset[str]:
        """The required traits that no image, and so no tenant, can add."""
        spec = _OfOperator(self._spec)
        return frozenset(_computed(spec).all_required_traits)


class Decider:
    """Runs the request filters for a request of nova-scheduler.

    Nova records the image of a rebuild before anybody accepts it. For a
    rebuild from the same image, which may have changed, it never calls the
    scheduler. If it calls the scheduler, and that refuses, the record remains.
    So when a server is moved after a rebuild, filters also get to know its
    past.
    """

    def __init__(self) -> None:
        # By uuid of the cell: one that hangs must not hold up the others.
        self._records: dict[str, Deadline] = {}
        self._keys = Deadline('Nova', LONGEST)

    def decide(
        self,
        spec: objects.RequestSpec,
        aggregates: AggregateIndex,
        pipeline: Pipeline,
    ) -> Decision:
        """Run the request filters.

        :param spec: Nova's request spec. If its image was refused for the
            server, the traits of the image are removed.
        :raises RequestRefused: if the image of the server is not known.
        """
        if not images.is_for_existing(spec) or not has_image(spec):
            request = NovaRequest(spec, read_record=self._read)
            return decide(request, aggregates, pipeline)
        record = self._read(spec)
        past = None
        if (
            record is not None
            and record.rebuilt_at
            # This record is that of the rebuild itself.
            and not scheduler_utils.request_is_rebuild(spec)
        ):
            past = _past(spec, record, self._host_keys(record))
            if past.is_refused:
                LOG.info(
                    'The image that Nova has recorded for %s was refused in a '
                    'rebuild: its traits do not count, and of its keys only '
                    'those of its own project do',
                    messages.server(spec),
                )
                _remove_traits(spec)
        request = NovaRequest(spec, read_record=lambda _: record, past=past)
        return decide(request, aggregates, pipeline)

    def _host_keys(self, record: images.Record) -> frozenset[tuple[str, str]]:
        host, time = record.host, record.rebuilt_at
        if not host or not time:
            return frozenset()
        return self._keys.run(lambda: source.keys_since(host, time))

    def _read(self, spec: objects.RequestSpec) -> images.Record | None:
        cell = images.cell_of(spec)
        deadline = self._records.setdefault(
            cell.uuid if cell is not None and 'uuid' in cell else '',
            Deadline("Nova's database", LONGEST),
        )
        return deadline.run(lambda: images.read(spec))


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


def has_image(spec: objects.RequestSpec) -> bool:
    """Return whether a request has an image; a volume may have none."""
    return bool('image' in spec and spec.image)


def _remove_traits(spec: objects.RequestSpec) -> None:
    """Remove the required traits of a refused image from a request.

    Nova's own filters use its other properties. Name and owner are removed.
    The id remains, so that the image still differs from that of the server.
    """
    image = spec.image.obj_clone()
    if 'properties' not in image:
        image.properties = objects.ImageMetaProps()
    image.properties.traits_required = []
    image.name = image.owner = ''
    spec.image = image


def _past(
    spec: objects.RequestSpec,
    record: images.Record,
    host_keys: frozenset[tuple[str, str]],
) -> Past:
    """Return what is known of a server that was rebuilt."""
    target = (
        spec.requested_destination if 'requested_destination' in spec else None
    )
    return Past(
        is_refused=record.is_refused(spec.image),
        is_directed=bool(target and 'host' in target and target.host),
        flavor=_flavor(record.flavor or spec.flavor),
        host_keys=host_keys,
    )


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
    target = (
        spec.requested_destination if 'requested_destination' in spec else None
    )
    group = request.get_request_group(None)
    # Reading an unset attribute of Nova's objects would set it.
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
    hosts = spec.force_hosts if 'force_hosts' in spec else None
    nodes = spec.force_nodes if 'force_nodes' in spec else None
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
        forced(spec) and images.is_for_existing(spec)
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
    target = (
        spec.requested_destination if 'requested_destination' in spec else None
    )
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
    """
    for choice in decision.required:
        _destination(spec).require_aggregates(sorted(choice))
    if decision.forbidden:
        destination = _destination(spec)
        destination.forbidden_aggregates = set(
            destination.forbidden_aggregates or ()
        )
        # Nova's append_forbidden_aggregates converts each element to text,
        # twice, which takes longer than the filters. These are texts.
        set.update(destination.forbidden_aggregates, decision.forbidden)


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
        # A copy, as Nova's refers to the flavor.
        extra_specs=dict(flavor.extra_specs)
        if 'extra_specs' in flavor
        else {},
    )


def _hints(spec: objects.RequestSpec) -> dict[str, tuple[str, ...]]:
    if 'scheduler_hints' not in spec or not spec.scheduler_hints:
        return {}
    hints = {}
    for name, value in spec.scheduler_hints.items():
        values = (value,) if isinstance(value, str) else tuple(value or ())
        # Nova treats a single empty value as no hint.
        if values and values != ('',):
            hints[name] = values
    return hints
