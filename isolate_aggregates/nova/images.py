# SPDX-License-Identifier: Apache-2.0
"""Reads the image properties that request filters declare, inside Nova.

``nova.objects.ImageMetaProps`` has the properties that Nova supports, some of
them converted, and drops the rest, for example ``reservation:<id>``. The
system metadata of a server has all properties as they were when nova-api
accepted the server or its rebuild, read with the credentials of the user. This
record is used for all operations on a server, because the image may have been
deleted since, or changed by the tenant who owns it. A rebuild may have changed
the record although no scheduler accepted it; see ``adapter.Decider``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import dataclasses
import datetime
import functools

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova import utils as nova_utils
from nova.compute import instance_actions
from nova.db.main import api as main_db
from nova.db.main import models
from nova.objects import fields
from sqlalchemy import orm

from isolate_aggregates import exception
from isolate_aggregates.nova import database
from isolate_aggregates.request.extra_specs import REQUIRED, TRAIT_PREFIX
from isolate_aggregates.request.properties import DeclaredProperties, matches

_PREFIX = nova_utils.SM_IMAGE_PROP_PREFIX
# Nova truncates values to 255 bytes, at a character boundary.
_CUT = 252
# Entries of the system metadata that are not image properties.
_OTHERS = {*nova_utils.SM_INHERITABLE_KEYS, 'base_image_ref'}

_ACTION, _EVENT = models.InstanceAction, models.InstanceActionEvent
# The events on the host that a shelved server leaves.
_SHELVED = ('compute_shelve_instance', 'compute_shelve_offload_instance')


@dataclasses.dataclass(frozen=True)
class Record:
    """What Nova has stored about a server and its image.

    :param image_id: The id of its image; empty if it boots from a volume.
    :param properties: The properties of its image by name. After a rebuild
        they are those of the new image, also if the rebuild was refused.
    :param rebuilt_at: When its last rebuild began, successful or not; None if
        there was none.
    :param has_failed: Whether the last rebuild failed.
    :param host: Its host, or the last one if it was shelved; None if unknown.
    :param flavor: Its flavor before the request; None if it is new.
    """

    image_id: str
    properties: Mapping[str, str]
    rebuilt_at: datetime.datetime | None = None
    has_failed: bool = False
    host: str | None = None
    flavor: objects.Flavor | None = None

    def is_refused(self, image: objects.ImageMeta) -> bool:
        """Return whether a request has an image that was refused.

        Nova stores the new image of a rebuild in the request spec before it
        calls the scheduler. If the scheduler refuses, Nova restores the image
        of the server, but neither its properties nor the request spec.
        """
        if self.rebuilt_at is None:
            return False
        if self.image_id and 'id' in image and image.id:
            return bool(image.id != self.image_id)
        # On a volume without an image, Nova restores nothing.
        return self.has_failed


# Returns the record of the server of a request; None if there is none.
Read = Callable[['objects.RequestSpec'], Record | None]


def read(spec: objects.RequestSpec) -> Record | None:
    """Read the record of the server of a request."""
    if 'instance_uuid' not in spec:
        return None
    with database.translated():
        try:
            return _read(spec)
        except (
            nova_exception.InstanceNotFound,
            nova_exception.InstanceMappingNotFound,
        ):
            return None


def _read(spec: objects.RequestSpec) -> Record | None:
    """Read the record of a server from its cell, or its build request."""
    context = nova_context.get_admin_context()
    uuid = spec.instance_uuid
    cell = cell_of(spec)
    if cell is None:
        try:
            building = objects.BuildRequest.get_by_instance_uuid(context, uuid)
            instance = building.instance
            return Record(instance.image_ref or '', _properties(instance))
        except nova_exception.BuildRequestNotFound:
            # It has a cell already: the boot is retried, or the server moves,
            # possibly to another cell.
            mapping = objects.InstanceMapping.get_by_instance_uuid(
                context, uuid
            )
            cell = mapping.cell_mapping
    if cell is None:
        return None
    with nova_context.target_cell(context, cell) as in_cell:
        instance = objects.Instance.get_by_uuid(
            in_cell, uuid, expected_attrs=['system_metadata', 'flavor']
        )
        with main_db.get_context_manager(in_cell).reader.using(
            in_cell
        ) as session:
            rebuilt_at, error = _last_rebuild(session, uuid) or (None, None)
            host = instance.host
            if rebuilt_at and not host:
                host = _last_host(session, uuid)
        return Record(
            instance.image_ref or '',
            _properties(instance),
            rebuilt_at=rebuilt_at,
            # An action that failed has an error message.
            has_failed=bool(error),
            host=host,
            flavor=instance.flavor,
        )


def _properties(instance: objects.Instance) -> dict[str, str]:
    return {
        key.removeprefix(_PREFIX): value
        for key, value in instance.system_metadata.items()
        if key.startswith(_PREFIX) and key.removeprefix(_PREFIX) not in _OTHERS
    }


def _last_rebuild(
    session: orm.Session, uuid: str
) -> tuple[datetime.datetime, str | None] | None:
    """Return when the last rebuild of a server began, and its error."""
    row = (
        session.query(_ACTION.created_at, _ACTION.message)
        .filter_by(instance_uuid=uuid, action=instance_actions.REBUILD)
        .order_by(_ACTION.id.desc())
        .first()
    )
    return tuple(row) if row else None


def _last_host(session: orm.Session, uuid: str) -> str | None:
    """Return the host on which a server was shelved.

    Nova removes the host from a server that gives up its place. The event of
    the compute service has it.
    """
    row = (
        session.query(_EVENT.host)
        .join(_ACTION, _ACTION.id == _EVENT.action_id)
        .filter(_ACTION.instance_uuid == uuid, _EVENT.event.in_(_SHELVED))
        .filter(_EVENT.host.isnot(None))
        .order_by(_EVENT.id.desc())
        .first()
    )
    return str(row.host) if row else None


def cell_of(spec: objects.RequestSpec) -> objects.CellMapping | None:
    """Return the cell in a request; requests to move servers have one."""
    destination = _destination(spec)
    return (
        destination.cell
        if destination is not None and 'cell' in destination
        else None
    )


def is_for_existing(spec: objects.RequestSpec) -> bool:
    """Return whether a request is for a server that already has a cell."""
    destination = _destination(spec)
    return cell_of(spec) is not None or (
        # The requested host may be in another cell.
        destination is not None
        and 'allow_cross_cell_move' in destination
        and destination.allow_cross_cell_move
    )


def _destination(spec: objects.RequestSpec) -> objects.Destination | None:
    if 'requested_destination' not in spec:
        return None
    return spec.requested_destination


class AcceptedImage:
    """The image of a request as it was when the server was accepted.

    :param read_record: Reads the record of the server; called at most once,
        and only if it can matter.
    :raises RequestRefused: if a property is not available and can do more than
        open locks.
    """

    def __init__(
        self,
        spec: objects.RequestSpec,
        declaration: DeclaredProperties,
        read_record: Read = read,
    ) -> None:
        image = spec.image
        properties = image.properties if 'properties' in image else None
        traits = properties.get('traits_required', []) if properties else []
        record = None
        needs_record = bool(
            declaration.patterns - _verbatim()
            or ((declaration.patterns or traits) and is_for_existing(spec))
        )
        if needs_record:
            record = read_record(spec)
        is_refused = record is not None and record.is_refused(image)
        #: Whether the image is known. An unknown image opens no lock.
        self.is_known = not needs_record or (
            record is not None and not is_refused
        )
        self.properties: Mapping[str, str] = {}
        if is_refused:
            refuse_without(declaration.needed - declaration.judged)
            declaration = DeclaredProperties(declaration.judged)
            traits = ()
        elif not self.is_known:
            refuse_without(declaration.needed)
            return
        if record is not None:
            self.properties = _declared(record, declaration)
        else:
            self.properties = {
                name: str(properties.get(name))
                for name in declaration.patterns
                if properties and properties.get(name) is not None
            }
        self.properties |= {
            f'{TRAIT_PREFIX}{trait}': REQUIRED for trait in traits
        }


def _declared(
    record: Record, declaration: DeclaredProperties
) -> dict[str, str]:
    truncated_names = {
        name
        for name, value in record.properties.items()
        if len(value.encode()) >= _CUT
    }
    refuse_without(
        name
        for name in truncated_names
        if any(matches(pattern, name) for pattern in declaration.needed)
    )
    return {
        name: value
        for name, value in declaration.among(record.properties).items()
        # Required traits are in the request, as computed by Nova.
        if not name.startswith(TRAIT_PREFIX) and name not in truncated_names
    }


def refuse_without(names: Iterable[str]) -> None:
    """Raise if properties are missing without which a request is refused."""
    missing = sorted(names)
    if missing:
        raise exception.RequestRefused(
            [
                f'the image properties {", ".join(missing)} are not '
                'available: Nova has no record of the server, has a wrong one '
                'after a refused rebuild, or has truncated a long value; '
                'rebuild the server from another image that it may use'
            ]
        )


@functools.cache
def _verbatim() -> frozenset[str]:
    """Return the names of properties that Nova stores unchanged.

    Nova converts others, or reads them from a property with an older name.
    """
    props = objects.ImageMetaProps
    new_names = props._legacy_property_map.values()
    return frozenset(
        name
        for name, field in props.fields.items()
        if type(field) is fields.StringField and name not in new_names
    )
