# SPDX-License-Identifier: Apache-2.0
"""Answers about server groups, which a rehearsal can only list."""

from typing import Any

from isolate_aggregates_tools.compute.servers import ServerGroup, Servers
from isolate_aggregates_tools.rehearse.exchange import (
    PAGE,
    Answer,
    Refused,
    Request,
    Unknown,
    check_query,
)
from isolate_aggregates_tools.rehearse.identity import own_project
from isolate_aggregates_tools.rehearse.world import World

_NOT_HELD = 'the names and users of server groups'


class Groups:
    """The server groups of the cloud that is held."""

    def __init__(self, world: World) -> None:
        self._world = world

    def list(self, asked: Request) -> Answer:
        query = asked.query
        check_query(query, ('all_projects', 'limit', 'offset'), 'groups')
        found = [self._document(one, asked.minor) for one in self._groups]
        if 'all_projects' not in query:
            own = own_project(self._world.before.keystone).id
            projects = [self._project(one) for one in self._groups]
            if None in projects:
                raise Unknown('the projects of server groups without servers')
            found = [
                document
                for document, project in zip(found, projects, strict=True)
                if project == own
            ]
        start, limit = (
            _number(query.get(name, str(default)), name)
            for name, default in (('offset', 0), ('limit', PAGE))
        )
        # Nova takes no limit of 0.
        end = start + min(limit or PAGE, PAGE)
        return Answer(200, {'server_groups': found[start:end]})

    def show(self, asked: Request, key: str) -> Answer:
        for one in self._groups:
            if one.id == key:
                document = self._document(one, asked.minor)
                return Answer(200, {'server_group': document})
        raise Refused(404, f'instance group {key} could not be found')

    @property
    def _servers(self) -> Servers:
        servers = self._world.snapshot.servers
        if servers is None:
            raise Unknown('the server groups; the cloud file has no servers')
        return servers

    @property
    def _groups(self) -> tuple[ServerGroup, ...]:
        groups = self._servers.groups
        if groups is None:
            raise Unknown('the server groups; the cloud file has none')
        return groups

    def _project(self, group: ServerGroup) -> str | None:
        """Return the project of a group, which that of its servers is."""
        return next(
            (
                one.project_id
                for one in self._servers.placed
                if one.id in group.members
            ),
            None,
        )

    def _document(self, one: ServerGroup, minor: int) -> dict[str, Any]:
        self._world.note_empty(_NOT_HELD)
        document: dict[str, Any] = {
            'id': one.id,
            'name': '',
            'members': sorted(one.members),
        }
        if minor >= 13:
            # Nova has no empty ones.
            document['project_id'] = self._project(one) or 'unknown'
            document['user_id'] = 'unknown'
        if minor < 64:
            return document | {'policies': [one.policy], 'metadata': {}}
        rules = {}
        if one.policy == 'anti-affinity' and one.max_per_host > 1:
            rules['max_server_per_host'] = one.max_per_host
        return document | {'policy': one.policy, 'rules': rules}


def _number(text: str, name: str) -> int:
    if not text.isdecimal():
        raise Refused(400, f'{name} must be a number, not {text!r}')
    return int(text)
