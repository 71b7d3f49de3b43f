# SPDX-License-Identifier: Apache-2.0
"""Reads the image with which a server was accepted, inside Nova.

``nova.objects.ImageMetaProps`` has the properties that Nova supports, some of
them converted, and drops the rest, for example ``reservation:<id>``. The
system metadata of a server has all properties as they were when nova-api
accepted the server or its rebuild, read with the credentials of the user. This
record is used for all operations on a server, because the image may have been
deleted since, or changed by the tenant who owns it.

Nova records the image of a rebuild before anybody accepts it. For a rebuild
from the same image, which may have changed, it never calls the scheduler. If
it calls the scheduler, and that refuses, the record remains. So when a server
is moved after a rebuild, filters also get to know its past.
"""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import datetime

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova import utils as nova_utils
from nova.compute import instance_actions
from nova.db.main import api as main_db
from nova.db.main import models
from nova.scheduler import utils as scheduler_utils
from sqlalchemy import orm

from isolate_aggregates.nova import database, source
from isolate_aggregates.request import Past

_PREFIX = nova_utils.SM_IMAGE_PROP_PREFIX
# Nova truncates values to 255 bytes, at a character boundary.
_CUT = 252
# Entries of the system metadata that are not image properties.
_OTHERS = {*nova_utils.SM_INHERITABLE_KEYS, 'base_image_ref'}

_ACTION, _EVENT = models.InstanceAction, models.InstanceActionEvent
# The events on the host that a shelved server leaves.
_SHELVED = ('compute_shelve_instance', 'compute_shelve_offload_instance')


@dataclasses.dataclass(frozen=True)
class AcceptedImage:
    """The image with which a server was accepted.

    :param properties: Its properties by name, None for a truncated value; None
        if Nova has no record of them. After a rebuild they are those of the
        new image, also if the rebuild was refused.
    :param past: What is known of a server that was rebuilt; None for others,
        and for a request that is the rebuild itself.
    """

    properties: Mapping[str, str | None] | None
    past: Past | None = None


_UNKNOWN = AcceptedImage(None)


def read(
    spec: objects.RequestSpec, cell: objects.CellMapping | None
) -> AcceptedImage:
    """Read the image with which the server of a request was accepted."""
    if 'instance_uuid' not in spec:
        return _UNKNOWN
    with database.translated():
        try:
            return _read(spec, cell)
        except (
            nova_exception.InstanceNotFound,
            nova_exception.InstanceMappingNotFound,
        ):
            return _UNKNOWN


def _read(
    spec: objects.RequestSpec, cell: objects.CellMapping | None
) -> AcceptedImage:
    """Read the record of a server from its cell, or its build request."""
    context = nova_context.get_admin_context()
    uuid = spec.instance_uuid
    if cell is None:
        try:
            building = objects.BuildRequest.get_by_instance_uuid(context, uuid)
            return AcceptedImage(_properties(building.instance))
        except nova_exception.BuildRequestNotFound:
            # It has a cell already: the boot is retried, or the server moves,
            # possibly to another cell.
            mapping = objects.InstanceMapping.get_by_instance_uuid(
                context, uuid
            )
            cell = mapping.cell_mapping
    if cell is None:
        return _UNKNOWN
    with nova_context.target_cell(context, cell) as in_cell:
        instance = objects.Instance.get_by_uuid(
            in_cell, uuid, expected_attrs=['system_metadata', 'flavor']
        )
        with main_db.get_context_manager(in_cell).reader.using(
            in_cell
        ) as session:
            rebuild = _last_rebuild(session, uuid)
            host = instance.host
            if rebuild and not host:
                host = _last_host(session, uuid)
    past = past_of(spec, instance, host, *rebuild) if rebuild else None
    return AcceptedImage(_properties(instance), past)


def past_of(
    spec: objects.RequestSpec,
    instance: objects.Instance,
    host: str | None,
    rebuilt_at: datetime.datetime,
    error: str | None,
) -> Past | None:
    """Return what is known of a server that was rebuilt.

    Nova stores the new image of a rebuild in the request spec before it calls
    the scheduler. If the scheduler refuses, Nova restores the image of the
    server, but neither its properties nor the request spec.

    :param host: Its host, or the last one if it was shelved; None if unknown.
    :param rebuilt_at: When its last rebuild began, successful or not.
    :param error: The error message of that rebuild, if it failed.
    :returns: None if the request is that rebuild.
    """
    image = spec.image
    if instance.image_ref and 'id' in image and image.id:
        is_refused = image.id != instance.image_ref
    else:
        # On a volume without an image, Nova restores nothing.
        is_refused = bool(error)
    if scheduler_utils.request_is_rebuild(spec) and not is_refused:
        return None
    target = 'requested_destination' in spec and spec.requested_destination
    return Past(
        is_refused=is_refused,
        is_directed=bool(target and 'host' in target and target.host),
        # A copy, as Nova's refers to the flavor.
        extra_specs=dict(instance.flavor.extra_specs),
        host_keys=source.keys_since(host, rebuilt_at) if host else frozenset(),
    )


def _properties(instance: objects.Instance) -> dict[str, str | None]:
    return {
        key.removeprefix(_PREFIX): value
        if len(value.encode()) < _CUT
        else None
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
