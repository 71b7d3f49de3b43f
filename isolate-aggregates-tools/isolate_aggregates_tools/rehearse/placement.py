# SPDX-License-Identifier: Apache-2.0
"""The real Placement, loaded with the cloud that is held."""

from collections.abc import Iterator
import json
import re
from typing import Any

import os_resource_classes as orc
import os_traits

from isolate_aggregates import exception
from isolate_aggregates_tools.cloud.file import load
from isolate_aggregates_tools.cloud.live import snapshots
from isolate_aggregates_tools.embedded import EmbeddedPlacement
from isolate_aggregates_tools.placement import (
    edits,
    generations,
    inventories,
    providers,
)
from isolate_aggregates_tools.placement.client import PlacementClient
from isolate_aggregates_tools.placement.provider import Provider
from isolate_aggregates_tools.rehearse.exchange import Unknown
from isolate_aggregates_tools.rehearse.world import World

# The administrator of its noauth2.
_USER = 'admin'
_PROVIDER = re.compile('/resource_providers/([^/]+)(/.*)?')
# A cloud file has amounts in use, but not who uses them.
_CONSUMERS = re.compile(
    '/(allocations|usages|reshaper)(/.*)?|/resource_providers/.*/allocations'
)


class HeldPlacement:
    """Placement with the providers of a world, until it is closed.

    It starts when it is first asked: most tools only ask Nova.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._embedded = EmbeddedPlacement()
        self._client: PlacementClient | None = None
        self._hosts = {
            p.uuid: p.host for p in world.before.providers if p.host
        }

    def close(self) -> None:
        self._embedded.close()

    def _started(self) -> PlacementClient:
        if self._client is None:
            client = PlacementClient(self._embedded.open())
            try:
                load.into_placement(self._world.snapshot, client)
            except exception.IsolateAggregatesError:
                self._embedded.close()
                raise
            self._client = client
        return self._client

    def forward(self, environ: dict[str, Any]) -> tuple[str, Any, bytes]:
        """Answer a request of WSGI, and note in the world what it changes.

        :returns: The status, the headers and the body.
        :raises Unknown: if it is about allocations.
        """
        method, path = environ['REQUEST_METHOD'], environ['PATH_INFO']
        if _CONSUMERS.fullmatch(path):
            raise Unknown('allocations; a cloud file has none')
        client = self._started()
        environ['HTTP_X_AUTH_TOKEN'] = _USER
        status, headers = '', []

        def start(line: str, pairs: Any, exc_info: Any = None) -> None:
            nonlocal status, headers
            status, headers = line, pairs

        body = b''.join(self._embedded.application(environ, start))
        if method != 'GET' and status[:1] == '2':
            names = {key.lower(): each for key, each in headers}
            self._changed(client, path, names)
        return status, headers, body

    def edit(self, uuid: str, part: str, name: str, is_added: bool) -> None:
        """Give a provider an aggregate or a trait, or take it away.

        The world has it already.
        """
        if self._client is None:
            return
        names, at = providers.read(self._client, uuid, part)
        new = names | {name} if is_added else names - {name}
        if new != names:
            generations.replace(self._client, uuid, part, sorted(new), at)

    def _changed(
        self, client: PlacementClient, path: str, headers: dict[str, str]
    ) -> None:
        """Read again what a request has changed."""
        if path.startswith('/resource_providers'):
            match = _PROVIDER.fullmatch(path)
            uuid = (
                match[1] if match else headers['location'].rpartition('/')[2]
            )
            self._replace(providers=tuple(self._providers(client, uuid)))
        held = self._world.snapshot.providers
        classes = filter(orc.is_custom, inventories.classes(client))
        self._replace(
            traits=edits.known_traits(client).difference(
                os_traits.get_traits(), *(p.traits for p in held)
            ),
            resource_classes=frozenset(classes).difference(
                *(p.inventories for p in held)
            ),
        )

    def _replace(self, **fields: Any) -> None:
        """Replace fields of the world that differ."""
        for name, value in fields.items():
            if value != getattr(self._world.snapshot, name):
                self._world.replace(**{name: value})

    def _providers(
        self, client: PlacementClient, uuid: str
    ) -> Iterator[Provider]:
        """Yield the providers, one of them read again; parents first."""
        try:
            entry = client.get(f'/resource_providers/{uuid}')
            new = [snapshots.read_provider(entry, self._hosts, client)]
        except exception.ServiceNotFound:
            new = []
        held = self._world.snapshot.providers
        old = next((p for p in held if p.uuid == uuid), None)
        if old and new and old.parent == new[0].parent:
            yield from (new[0] if p is old else p for p in held)
            return
        others = [p for p in held if p is not old]
        yield from _parents_first([*others, *new])


def _parents_first(some: list[Provider]) -> Iterator[Provider]:
    waiting, seen = some, set[str | None]({None})
    while waiting:
        later = []
        for each in waiting:
            if each.parent in seen:
                seen.add(each.uuid)
                yield each
            else:
                later.append(each)
        if len(later) == len(waiting):
            yield from later
            return
        waiting = later


def refusal(body: bytes) -> str:
    """Return why Placement has refused a request."""
    try:
        [error, *_] = json.loads(body)['errors']
        return ' '.join(str(error['detail']).split())
    except (ValueError, LookupError, TypeError):
        return ''
