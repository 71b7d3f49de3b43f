# SPDX-License-Identifier: Apache-2.0
"""Reads what Nova keeps of the past: deleted servers, actions, migrations.

See `Servers - run an action
<https://docs.openstack.org/api-ref/compute/#servers-os-instance-actions>`_ and
`List Migrations
<https://docs.openstack.org/api-ref/compute/#list-migrations>`_. Times are
seconds since 1970 in UTC.
"""

from collections.abc import Iterator, Mapping
import dataclasses
import datetime
from typing import TYPE_CHECKING, Any

from isolate_aggregates_tools.compute.servers import Server, page_of

if TYPE_CHECKING:
    from isolate_aggregates_tools.compute.client import NovaClient

# 2.59: pages of migrations; 2.62: hosts of events.
_MIGRATIONS = '2.59'
_EVENTS = '2.62'


@dataclasses.dataclass(frozen=True)
class PastServer:
    """A server that exists or existed.

    :param launched: When it was last launched on a host; None if never.
    :param terminated: When it was deleted; None if it exists.
    :param updated: When Nova last changed it.
    """

    server: Server
    created: int
    launched: int | None
    terminated: int | None
    updated: int
    is_deleted: bool


@dataclasses.dataclass(frozen=True)
class InstanceAction:
    """An action on a server, such as ``create``.

    :param request: The id of the request.
    """

    name: str
    request: str
    start: int


@dataclasses.dataclass(frozen=True)
class Event:
    """A step of an action on a host.

    :param finish: None if it has not finished.
    """

    name: str
    host: str | None
    start: int
    finish: int | None
    is_success: bool


@dataclasses.dataclass(frozen=True)
class Processors:
    """The processors of a compute node; None for what Nova does not tell."""

    host: str
    sockets: int | None
    cores: int | None


@dataclasses.dataclass(frozen=True)
class Migration:
    """A migration of a server.

    :param flavors: The numbers of the flavors before and after it; they are
        not the ids of flavors in the API.
    """

    server: str
    kind: str
    status: str
    source: str | None
    destination: str | None
    created: int
    updated: int | None
    flavors: tuple[int | None, int | None]


def seconds(text: str | None) -> int | None:
    """Return the seconds since 1970 of a time as Nova shows it."""
    if not text:
        return None
    time = datetime.datetime.fromisoformat(text)
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    return int(time.timestamp())


def servers(
    nova: 'NovaClient', since: int, project: str | None = None
) -> Iterator[PastServer]:
    """Yield the servers that exist, and those deleted after a time.

    A server that is deleted meanwhile may be yielded twice, last as deleted.
    """
    time = datetime.datetime.fromtimestamp(since, datetime.UTC)
    of_project = {'project_id': project} if project else {}
    yield from living(nova, project)
    yield from _servers(
        nova,
        {'deleted': 'True', 'changes-since': time.isoformat(), **of_project},
    )


def living(
    nova: 'NovaClient', project: str | None = None
) -> Iterator[PastServer]:
    """Yield the servers that exist."""
    yield from _servers(nova, {'project_id': project} if project else {})


def _servers(
    nova: 'NovaClient', query: Mapping[str, str]
) -> Iterator[PastServer]:
    return nova.direct.paged(
        '/servers/detail',
        _past_servers,
        lambda past: past.server.id,
        {'all_tenants': '1', **query},
        nova.for_servers,
    )


def migrations(nova: 'NovaClient', since: int) -> Iterator[Migration]:
    """Yield the migrations that changed after a time, in no order."""
    time = datetime.datetime.fromtimestamp(since, datetime.UTC)
    yield from (
        migration
        for _, migration in nova.direct.paged(
            '/os-migrations',
            _migrations,
            lambda pair: pair[0],
            {'changes-since': time.isoformat()},
            _MIGRATIONS,
        )
    )


def processors(nova: 'NovaClient') -> Iterator[Processors]:
    """Yield the processors of the compute nodes.

    Nova tells them only up to microversion 2.87.
    """
    yield from (
        each
        for _, each in nova.direct.paged(
            '/os-hypervisors/detail',
            _processors,
            lambda pair: pair[0],
            microversion=_EVENTS,
        )
    )


def actions(nova: 'NovaClient', server: str) -> list[InstanceAction]:
    """Return the actions on a server, the oldest first.

    :raises ServiceNotFound: if Nova does not know the server any more.
    """
    path = f'/servers/{server}/os-instance-actions'
    return sorted(
        nova.direct.paged(
            path, _actions, lambda each: each.request, microversion=_EVENTS
        ),
        key=lambda action: action.start,
    )


def events(
    nova: 'NovaClient', server: str, action: InstanceAction
) -> list[Event]:
    """Return the events of an action, in no order."""
    path = f'/servers/{server}/os-instance-actions/{action.request}'
    return nova.direct.parsed(path, _events, nova.direct.get(path, _EVENTS))


def _past_servers(document: Any) -> list[PastServer]:
    return [
        PastServer(
            server,
            _required(entry['created']),
            seconds(entry['OS-SRV-USG:launched_at']),
            seconds(entry['OS-SRV-USG:terminated_at']),
            _required(entry['updated']),
            entry['status'] == 'DELETED',
        )
        for server, entry in zip(
            page_of(document), document['servers'], strict=True
        )
    ]


def _processors(document: Any) -> list[tuple[str, Processors]]:
    return [
        (entry['id'], _processors_of(entry))
        for entry in document['hypervisors']
    ]


def _processors_of(entry: Mapping[str, Any]) -> Processors:
    host = entry['service']['host']
    info = entry['cpu_info']
    topology: Any = info.get('topology') if isinstance(info, dict) else None
    try:
        # As libvirt counts them, the sockets are those of a NUMA cell.
        sockets = topology['sockets'] * topology.get('cells', 1)
        return Processors(host, sockets, sockets * topology['cores'])
    except (TypeError, LookupError, AttributeError):
        # Each driver has its own format, or none.
        return Processors(host, None, None)


def _actions(document: Any) -> list[InstanceAction]:
    return [
        InstanceAction(
            entry['action'],
            entry['request_id'],
            _required(entry['start_time']),
        )
        for entry in document['instanceActions']
    ]


def _events(document: Any) -> list[Event]:
    return [
        Event(
            entry['event'],
            entry['host'],
            _required(entry['start_time']),
            seconds(entry['finish_time']),
            entry['result'] == 'Success',
        )
        for entry in document['instanceAction']['events']
    ]


def _migrations(document: Any) -> list[tuple[str, Migration]]:
    return [
        (
            entry['uuid'],
            Migration(
                entry['instance_uuid'],
                entry['migration_type'],
                entry['status'],
                entry['source_compute'],
                entry['dest_compute'],
                _required(entry['created_at']),
                seconds(entry['updated_at']),
                (
                    entry['old_instance_type_id'],
                    entry['new_instance_type_id'],
                ),
            ),
        )
        for entry in document['migrations']
    ]


def _required(text: str) -> int:
    time = seconds(text)
    if time is None:
        raise ValueError('a time is missing')
    return time
