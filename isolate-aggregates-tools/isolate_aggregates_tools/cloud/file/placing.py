# SPDX-License-Identifier: Apache-2.0
"""Server groups and compute services in cloud files."""

from collections.abc import Mapping
from typing import Any

from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import (
    ComputeService,
    ServerGroup,
)

_GROUPS = 'server_groups'
_SERVICES = 'compute_services'

# How services are written, for true and false.
_STATES = 'up', 'down'
_STATUSES = 'enabled', 'disabled'


def groups(document: Mapping[str, Any]) -> tuple[ServerGroup, ...] | None:
    """Return the server groups of a document; None if they are unknown."""
    if _GROUPS not in document:
        return None
    return tuple(
        ServerGroup(
            entry['id'],
            entry['policy'],
            frozenset(entry.get('members', ())),
            entry.get('max_server_per_host', 1),
        )
        for entry in document[_GROUPS]
    )


def services(document: Mapping[str, Any]) -> tuple[ComputeService, ...] | None:
    """Return the compute services of a document; None if unknown."""
    if _SERVICES not in document:
        return None
    return tuple(
        ComputeService(
            entry['host'],
            entry.get('state', _STATES[0]) == _STATES[0],
            entry.get('status', _STATUSES[0]) == _STATUSES[0],
            entry.get('disabled_reason', ''),
            entry.get('cell', ''),
        )
        for entry in document[_SERVICES]
    )


def document(snapshot: Snapshot) -> dict[str, Any]:
    """Return the groups and services that are known, for a document."""
    parts: dict[str, Any] = {}
    servers = snapshot.servers
    if servers is not None and servers.groups is not None:
        parts[_GROUPS] = [
            {
                'id': group.id,
                'policy': group.policy,
                **(
                    {'max_server_per_host': group.max_per_host}
                    if group.max_per_host > 1
                    else {}
                ),
                'members': sorted(group.members),
            }
            for group in servers.groups
        ]
    if snapshot.services is not None:
        parts[_SERVICES] = [
            {
                'host': service.host,
                'state': _STATES[not service.is_up],
                'status': _STATUSES[not service.is_enabled],
                **(
                    {'disabled_reason': service.reason}
                    if service.reason
                    else {}
                ),
                **({'cell': service.cell} if service.cell else {}),
            }
            for service in snapshot.services
        ]
    return parts
