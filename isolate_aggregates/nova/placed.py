# SPDX-License-Identifier: Apache-2.0
"""Records what nova-scheduler has placed a server with.

Nova has no such record: each rebuild overwrites the properties of the image in
the system metadata of the server, also if the scheduler is never called or
refuses, and the previous ones are deleted. So before the resources of a host
are claimed for a server, and when a host is found good for a rebuild, the
image and what counts of it are written to the request spec of the server, in
Nova's API database.

The record is a scheduler hint, because hints survive all operations on a
server. The name of the hint has the id of the server, which is not known to
the tenant who gives hints for a new one. From microversion 2.100 on nova-api
shows it to the owner of the server.
"""

from __future__ import annotations

from collections.abc import Callable
import functools
import json
import time
from typing import Any

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models
from nova.scheduler import manager
from nova.scheduler import utils as scheduler_utils
from oslo_db import api as oslo_db_api
from oslo_db import exception as oslo_db_exception
from oslo_log import log as logging
import sqlalchemy as sa

from isolate_aggregates import exception
from isolate_aggregates.nova import database
from isolate_aggregates.request import placed
from isolate_aggregates.request.placed import Placed
from isolate_aggregates.rest.deadline import Deadline

LOG = logging.getLogger(__name__)

_CLAIM = scheduler_utils.claim_resources
_CONSUME = manager.SchedulerManager._consume_selected_host

# The attributes of a request spec with what its servers are placed with, and
# whether that could not be recorded. Nova copies and sends only the fields.
_ATTRIBUTE = '_isolate_aggregates_placed'
_FAILED = '_isolate_aggregates_not_recorded'

_SPECS = models.RequestSpec.__table__
_OF_SERVER = _SPECS.c.instance_uuid == sa.bindparam('server')
_READ = sa.select(_SPECS.c.spec).where(_OF_SERVER).with_for_update()
# SQLite has no locks of rows.
_WRITE = (
    sa.update(_SPECS)
    .where(_OF_SERVER, _SPECS.c.spec == sa.bindparam('old'))
    .values(spec=sa.bindparam('new'))
)

# Seconds to wait for Nova's API database.
LONGEST = 10.0

_retried = oslo_db_api.wrap_db_retry(max_retries=3, retry_on_deadlock=True)

_deadline = Deadline("Nova's API database", LONGEST)

# Reads what a rebuild is decided by, if no host filter of ours has run.
_read: Callable[[objects.RequestSpec], Placed | None] | None = None


def recorded(spec: objects.RequestSpec) -> Placed | None:
    """Return what the server of a request was placed with.

    :returns: None if there is no record.
    :raises RequestRefused: if this version cannot read it.
    """
    hints = spec.scheduler_hints if 'scheduler_hints' in spec else None
    if not hints or 'instance_uuid' not in spec:
        return None
    values = hints.get(placed.hint(spec.instance_uuid))
    return placed.decode(spec.instance_uuid, values) if values else None


def has_failed(spec: objects.RequestSpec) -> bool:
    """Return whether a server of a request could not be recorded."""
    return bool(getattr(spec, _FAILED, False))


def hints_of(stored: dict[str, Any]) -> dict[str, Any]:
    """Return the scheduler hints of a stored request spec, to change them."""
    hints: dict[str, Any] = stored.get('scheduler_hints') or {}
    stored['scheduler_hints'] = hints
    return hints


def remember(spec: objects.RequestSpec, server: Placed | None) -> None:
    """Keep what a request is decided by until a host is chosen.

    :param server: What its servers are placed with; None if nothing of the
        image counts, and nothing is to be recorded.
    """
    setattr(spec, _ATTRIBUTE, server)


def remembered(spec: objects.RequestSpec) -> Placed | None:
    """Return what was remembered for a request."""
    server: Placed | None = getattr(spec, _ATTRIBUTE, None)
    return server


def record(spec: objects.RequestSpec, uuid: str) -> None:
    """Record what a server is placed with, unless that is recorded already.

    :param uuid: The server; a request may be for several.
    :raises ServiceError: if it cannot be written in time.
    """
    server = remembered(spec)
    if server is None:
        return
    if uuid == spec.instance_uuid and server == recorded(spec):
        return
    until = time.monotonic() + LONGEST

    def change(stored: dict[str, Any]) -> bool:
        hints = hints_of(stored)
        name, value = placed.hint(uuid), placed.encode(server)
        if hints.get(name) == value:
            return False
        if time.monotonic() > until:
            # The request was refused meanwhile.
            raise TimeoutError
        hints[name] = value
        return True

    _deadline.run(functools.partial(edit, uuid, change))


def _edit(uuid: str, change: Callable[[dict[str, Any]], bool]) -> bool:
    # A session of Nova's would take twice the processor time.
    with api_db.context_manager.writer.get_engine().begin() as connection:
        text = connection.execute(_READ, {'server': uuid}).scalar()
        if text is None:
            # The server is being deleted.
            return False
        document = json.loads(text)
        if not change(document['nova_object.data']):
            return False
        result = connection.execute(
            _WRITE, {'server': uuid, 'old': text, 'new': json.dumps(document)}
        )
        if not result.rowcount:
            raise oslo_db_exception.RetryRequest(
                exception.ServiceError(
                    "Nova's API database",
                    None,
                    f'changes the request spec of server {uuid} all the time.',
                )
            )
    return True


def edit(uuid: str, change: Callable[[dict[str, Any]], bool]) -> bool:
    """Change the stored request spec of a server.

    It is read and written in one transaction, so that no other change of the
    request spec is lost.

    :param change: Changes the fields of the request spec, as Nova stores them,
        and returns whether it has.
    :returns: Whether the request spec was changed.
    :raises ServiceError: if it cannot be read or written.
    """
    with database.translated('changed'):
        return bool(_retried(_edit)(uuid, change))


def _is_recorded(
    spec: objects.RequestSpec, uuid: str, is_rebuild: bool = False
) -> bool:
    """Record what a server is placed with; log why not, if that fails.

    If it failed once for a request, it is not tried again, as Nova would wait
    for each of its hosts.
    """
    if has_failed(spec):
        return False
    try:
        if is_rebuild and not hasattr(spec, _ATTRIBUTE):
            assert _read is not None
            remember(spec, _read(spec))
        record(spec, uuid)
    except exception.IsolateAggregatesError as exc:
        setattr(spec, _FAILED, True)
        LOG.error(
            'Server %(server)s is not placed, because it cannot be recorded '
            'what it is placed with, so that later operations on it could not '
            'be decided: %(problem)s',
            {'server': uuid, 'problem': exc},
        )
        return False
    return True


@functools.wraps(_CLAIM)
def _recording_claim(
    context: nova_context.RequestContext,
    client: Any,
    spec: objects.RequestSpec,
    uuid: str,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Record what a server is placed with, and claim its resources.

    :returns: Whether the resources are claimed.
    """
    # A rebuild claims nothing.
    if not scheduler_utils.request_is_rebuild(spec) and not _is_recorded(
        spec, uuid
    ):
        return False
    return _CLAIM(context, client, spec, uuid, *args, **kwargs)


@functools.wraps(_CONSUME)
def _recording_rebuild(
    host: Any, spec: objects.RequestSpec, instance_uuid: str | None = None
) -> None:
    """Record that the host of a server takes it with another image.

    All host filters have passed it.

    :raises NoValidHost: if that cannot be recorded.
    """
    if scheduler_utils.request_is_rebuild(spec) and not _is_recorded(
        spec, instance_uuid or spec.instance_uuid, is_rebuild=True
    ):
        raise nova_exception.NoValidHost(
            reason='the rebuild cannot be recorded; an operator can look up '
            'the reason in the log of nova-scheduler'
        )
    _CONSUME(host, spec, instance_uuid=instance_uuid)


def install(read: Callable[[objects.RequestSpec], Placed | None]) -> None:
    """Record from now on.

    :param read: Returns what the servers of a request are placed with.
    """
    global _read
    _read = read
    scheduler_utils.claim_resources = _recording_claim
    manager.SchedulerManager._consume_selected_host = staticmethod(
        _recording_rebuild
    )
