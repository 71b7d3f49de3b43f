# SPDX-License-Identifier: Apache-2.0
"""Reads the image with which a server was accepted, inside Nova.

``nova.objects.ImageMetaProps`` has the properties that Nova supports, some of
them converted, and drops the rest, for example ``reservation:<id>``. The
system metadata of a server has all properties as they were when nova-api
accepted the server or its rebuild, read with the credentials of the user. This
record is used for all operations on a server, because the image may have been
deleted since, or changed by the tenant who owns it.

It counts until the server is rebuilt: Nova overwrites it before anything
accepts the rebuild. From then on what :mod:`isolate_aggregates.nova.placed`
has recorded counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova import utils as nova_utils
from nova.compute import instance_actions
from nova.db.main import api as main_db
from nova.db.main import models
from nova.scheduler import utils as scheduler_utils
import sqlalchemy as sa
from sqlalchemy import orm

from isolate_aggregates import exception
from isolate_aggregates.nova import database, placed

_PREFIX = nova_utils.SM_IMAGE_PROP_PREFIX
# Nova truncates values to 255 bytes, at a character boundary.
_CUT = 252
# Entries of the system metadata that are not image properties.
_OTHERS = {*nova_utils.SM_INHERITABLE_KEYS, 'base_image_ref'}

_SERVER, _METADATA = models.Instance, models.InstanceSystemMetadata
_ACTION, _EVENT = models.InstanceAction, models.InstanceActionEvent
# What only a rebuild that was accepted leaves.
_ON_HOST = 'compute_rebuild_instance'

Properties = Mapping[str, str | None]


@dataclasses.dataclass(frozen=True)
class AcceptedImage:
    """The image with which a server was accepted.

    :param properties: Its properties by name, None for a truncated value; None
        if there is no record of them.
    :param image: Its id; empty for a volume without one.
    :param traits: The traits that it requires; None for those in the request.
    """

    properties: Properties | None
    image: str = ''
    traits: tuple[str, ...] | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is a record of it, so that its traits count."""
        return self.properties is not None or self.traits is not None


_UNKNOWN = AcceptedImage(None)


def read(
    spec: objects.RequestSpec,
    cell: objects.CellMapping | None,
    all_recorded: bool = False,
) -> AcceptedImage:
    """Read the image with which the server of a request was accepted.

    :param all_recorded: Whether a server without a record was placed with an
        image of which nothing counts.
    :raises RequestRefused: if nothing tells which one it is.
    :raises ServiceError: if a database of Nova cannot be read.
    """
    if 'instance_uuid' not in spec:
        return _UNKNOWN
    with database.translated():
        try:
            return _read(spec, cell, all_recorded)
        except (
            nova_exception.InstanceNotFound,
            nova_exception.InstanceMappingNotFound,
        ):
            return _UNKNOWN


def _read(
    spec: objects.RequestSpec,
    cell: objects.CellMapping | None,
    all_recorded: bool,
) -> AcceptedImage:
    """Read the record of a server from its cell, or its build request."""
    context = nova_context.get_admin_context()
    uuid = spec.instance_uuid
    if cell is None:
        try:
            building = objects.BuildRequest.get_by_instance_uuid(context, uuid)
            return AcceptedImage(
                properties_of(building.instance.system_metadata),
                named_image(spec),
            )
        except nova_exception.BuildRequestNotFound:
            # It has a cell already: the boot is retried, or the server moves,
            # possibly to another cell.
            mapping = objects.InstanceMapping.get_by_instance_uuid(
                context, uuid
            )
            cell = mapping.cell_mapping
    if cell is None:
        return _UNKNOWN
    with (
        nova_context.target_cell(context, cell) as in_cell,
        main_db.get_context_manager(in_cell).reader.using(in_cell) as session,
    ):
        return _of_server(spec, session, all_recorded)


def _of_server(
    spec: objects.RequestSpec, session: orm.Session, all_recorded: bool
) -> AcceptedImage:
    """Return what counts of the image of a server in a cell."""
    uuid = spec.instance_uuid
    row = session.execute(
        sa.select(_SERVER.image_ref).filter_by(uuid=uuid, deleted=0)
    ).first()
    if row is None:
        raise nova_exception.InstanceNotFound(instance_id=uuid)
    image = '' if _is_volume(spec) else row.image_ref or ''
    if scheduler_utils.request_is_rebuild(spec):
        # Nova asks whether its host may have this image.
        return AcceptedImage(_stored(session, uuid), named_image(spec))
    record = placed.recorded(spec)
    if record is not None and not record.is_of(image):
        # A scheduler without this package has accepted a rebuild.
        record = None
    if record is not None and record.properties is not None:
        return AcceptedImage(record.properties, record.image, record.traits)
    rebuilds = refusals(session, [uuid]).get(uuid, [])
    if record is not None:
        properties = None if rebuilds else _stored(session, uuid)
        return AcceptedImage(properties, record.image, record.traits)
    named = named_image(spec)
    if not is_refused(image, named, rebuilds):
        return AcceptedImage(_stored(session, uuid), named)
    target = 'requested_destination' in spec and spec.requested_destination
    # An operator may decide.
    if all_recorded or (target and 'host' in target and target.host):
        # It opens nothing.
        return AcceptedImage({}, image, ())
    raise exception.RequestRefused(
        [
            'its last rebuild was refused, and there is no record of what it '
            'was placed with before; name the host to move it to, or rebuild '
            'it from another image that it may use'
        ]
    )


def _is_volume(spec: objects.RequestSpec) -> bool:
    """Return whether a server boots from a volume.

    It has no image, until a rebuild is refused: Nova then gives it that of
    the volume.
    """
    return 'is_bfv' in spec and bool(spec.is_bfv)


def named_image(spec: objects.RequestSpec) -> str:
    """Return the id of the image in a request; empty if it has none."""
    image = spec.image if 'image' in spec else None
    return str((image.id if image and 'id' in image else None) or '')


def is_refused(image: str, named: str, rebuilds: list[bool]) -> bool:
    """Return whether the image that Nova has recorded may have been refused.

    Nova stores the new image of a rebuild in the request spec before it calls
    the scheduler. If the scheduler refuses, Nova restores the image of the
    server, but neither its properties nor the request spec. On a volume it
    restores nothing.

    :param image: The id of the image of the server; empty for a volume.
    :param named: The id of the image in its request spec.
    :param rebuilds: Whether each of its rebuilds was refused.
    """
    if image and named:
        return bool(rebuilds) and image != named
    return any(rebuilds)


def refusals(session: orm.Session, uuids: list[str]) -> dict[str, list[bool]]:
    """Return whether each rebuild of servers was refused, by server.

    A refused rebuild has an error, but not from the host. The order of the
    rebuilds does not matter: Nova changes it when it copies them to another
    cell.
    """
    rows = session.execute(
        sa.select(
            _ACTION.instance_uuid, _ACTION.message, sa.func.count(_EVENT.id)
        )
        .outerjoin(
            _EVENT,
            sa.and_(_EVENT.action_id == _ACTION.id, _EVENT.event == _ON_HOST),
        )
        .where(
            _ACTION.instance_uuid.in_(uuids),
            _ACTION.action == instance_actions.REBUILD,
        )
        .group_by(_ACTION.id, _ACTION.instance_uuid, _ACTION.message)
    )
    found: dict[str, list[bool]] = {}
    for uuid, message, events in rows:
        found.setdefault(uuid, []).append(bool(message) and not events)
    return found


def _stored(session: orm.Session, uuid: str) -> dict[str, str | None]:
    """Return the image properties in the system metadata of a server."""
    rows = session.execute(
        sa.select(_METADATA.key, _METADATA.value).filter_by(
            instance_uuid=uuid, deleted=0
        )
    )
    return properties_of({row.key: row.value for row in rows})


def properties_of(
    system_metadata: Mapping[str, str | None],
) -> dict[str, str | None]:
    """Return the image properties among the system metadata of a server.

    :returns: By name, in order; None for a value that Nova has truncated.
    """
    return {
        key.removeprefix(_PREFIX): value
        if value is not None and len(value.encode()) < _CUT
        else None
        for key, value in sorted(system_metadata.items())
        if key.startswith(_PREFIX) and key.removeprefix(_PREFIX) not in _OTHERS
    }


def traits_of(spec: objects.RequestSpec) -> Sequence[str]:
    """Return the traits that the image in a request requires."""
    image = spec.image if 'image' in spec else None
    properties = image.properties if image and 'properties' in image else None
    return (properties or {}).get('traits_required') or ()
