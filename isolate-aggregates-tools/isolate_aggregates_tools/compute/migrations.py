# SPDX-License-Identifier: Apache-2.0
"""Migrates servers with Nova's API, and reads how far they are.

See `Servers - run an administrative action
<https://docs.openstack.org/api-ref/compute/#servers-run-an-administrative-action-servers-action>`_.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any
from urllib import parse

from novaclient import api_versions

from isolate_aggregates import exception
from isolate_aggregates_tools.compute.client import NovaClient

# 2.56: the target of a cold migration; 2.30: that of a live one is checked by
# the scheduler, and 2.25: whether to copy disks is found out.
_TARGETS = api_versions.APIVersion('2.56')
# Why an event of an instance action failed.
_DETAILS = api_versions.APIVersion('2.84')


@dataclasses.dataclass(frozen=True)
class Position:
    """Where a server is, and what Nova does with it.

    :param host: Its compute service; None if it has none.
    :param task: What Nova does with it now; None if nothing.
    :param flavor: The name of its flavor.
    """

    host: str | None
    status: str
    task: str | None
    flavor: str


def position(nova: NovaClient, server: str) -> Position | None:
    """Return where a server is; None if there is no such server."""
    path = f'/servers/{parse.quote(server, safe="")}'
    answer = nova.direct.request(
        'GET', path, _TARGETS.get_string(), accept=(200, 404)
    )
    if answer.status_code == 404:
        return None
    return nova.direct.parsed(
        path, _position, nova.direct.decode(answer, path)
    )


def _position(document: Mapping[str, Any]) -> Position:
    server = document['server']
    return Position(
        server['OS-EXT-SRV-ATTR:host'],
        server['status'],
        server['OS-EXT-STS:task_state'],
        server['flavor']['original_name'],
    )


def start(nova: NovaClient, server: str, target: str, live: bool) -> None:
    """Start the migration of a server to a host.

    Nova's scheduler checks the host.

    :raises ServiceConflict: if Nova does something else with the server.
    """
    nova.require(_TARGETS, 'Queens', 'choosing the host of a migration')
    action: dict[str, Any] = (
        {'os-migrateLive': {'host': target, 'block_migration': 'auto'}}
        if live
        else {'migrate': {'host': target}}
    )
    _act(nova, server, action)


def confirm(nova: NovaClient, server: str) -> None:
    """Confirm a cold migration.

    :raises ServiceConflict: if there is none to be confirmed.
    """
    _act(nova, server, {'confirmResize': None})


def failure(nova: NovaClient, server: str) -> str:
    """Return why the last action on a server failed; empty if unknown."""
    version = str(min(nova.newest, _DETAILS).get_string())
    path = f'/servers/{parse.quote(server, safe="")}/os-instance-actions'
    try:
        actions = nova.direct.parsed(
            path, _actions, nova.direct.get(path, version)
        )
        for request in actions[:1]:
            path = f'{path}/{parse.quote(request, safe="")}'
            return nova.direct.parsed(
                path, _details, nova.direct.get(path, version)
            )
    except exception.ServiceError as exc:
        return str(exc).rstrip('.')
    return ''


def _actions(document: Mapping[str, Any]) -> list[str]:
    """Return the ids of the requests for actions, the last first."""
    return [action['request_id'] for action in document['instanceActions']]


def _details(document: Mapping[str, Any]) -> str:
    return next(
        (
            str(event['details']).strip(' .')
            for event in document['instanceAction']['events']
            if event.get('details')
        ),
        '',
    )


def _act(nova: NovaClient, server: str, action: Mapping[str, Any]) -> None:
    path = f'/servers/{parse.quote(server, safe="")}/action'
    nova.direct.request(
        'POST',
        path,
        _TARGETS.get_string(),
        json=action,
        accept=(202, 204),
    )
