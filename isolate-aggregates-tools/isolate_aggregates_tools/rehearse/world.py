# SPDX-License-Identifier: Apache-2.0
"""The cloud that a rehearsal holds, and what was asked of it."""

from collections.abc import Callable, Mapping
import dataclasses
import http
import itertools
from typing import Any, TypeVar

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.aggregates.aggregate import ZONE, zone_of
from isolate_aggregates.derived import derived_uuid
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools.cloud.changes import altered
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import ComputeService
from isolate_aggregates_tools.rehearse.exchange import (
    UNKNOWN,
    Answer,
    Call,
    Refused,
    Request,
    Unknown,
)

_Thing = TypeVar('_Thing', Aggregate, Flavor, Image)
_LISTS = {Aggregate: 'aggregates', Flavor: 'flavors', Image: 'images'}
# As Nova names the documents of its errors.
_ERRORS = {
    400: 'badRequest',
    403: 'forbidden',
    404: 'itemNotFound',
    405: 'badMethod',
    409: 'conflictingRequest',
}


class World:
    """The cloud as the requests so far have left it.

    :param snapshot: The cloud at the start; ids that a cloud file may leave
        out are made up.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.before = self.snapshot = _completed(snapshot)
        self.calls: list[Call] = []
        # What was changed, each with the cloud after it.
        self.steps: list[tuple[Call, Snapshot]] = []
        # What the cloud file does not tell, but a change depends on.
        self.doubts: dict[str, None] = {}
        # Fields that the cloud file does not have, and the tool got empty.
        self.empty: dict[str, None] = {}
        self.numbers = itertools.count(
            1 + max((a.id or 0 for a in self.snapshot.aggregates), default=0)
        )

    @property
    def refused(self) -> list[Call]:
        """The changes that the cloud would refuse."""
        return [call for call in self.calls if call.is_refused]

    @property
    def unknown(self) -> list[str]:
        """What is not known, each once, without full stops."""
        calls = (f'{c}: {c.reason}' for c in self.calls if c.is_unknown)
        return list(dict.fromkeys((*calls, *self.doubts)))

    @lazy_property
    def hosts(self) -> frozenset[str]:
        """The compute services."""
        nodes = {p.host for p in self.before.providers if p.host}
        return frozenset(
            nodes.union(s.host for s in self.before.services or ())
        )

    @lazy_property
    def occupied(self) -> frozenset[str]:
        """The hosts with servers."""
        servers = self.before.servers
        return frozenset(servers.by_host) if servers else frozenset()

    @lazy_property
    def projects(self) -> frozenset[str]:
        """The ids of the projects that the file names anywhere."""
        before = self.before
        if before.keystone:
            # A domain is a project, too.
            return frozenset(before.keystone.domains).union(
                project.id for project in before.keystone.projects
            )
        found = {project for f in before.flavors for project in f.projects}
        for projects in before.domains.values():
            found |= projects or frozenset()
        for server in before.servers.placed if before.servers else ():
            found.add(server.project_id)
        return frozenset(
            found.union(i.owner for i in before.images if i.owner)
        )

    @property
    def services(self) -> Mapping[str, ComputeService]:
        """The compute services, by host."""
        services = self.snapshot.services
        if services is None:
            disabled = self.snapshot.disabled_hosts
            return {
                host: ComputeService(host, is_enabled=host not in disabled)
                for host in sorted(self.hosts)
            }
        return {each.host: each for each in services}

    def add(self, thing: Aggregate | Flavor) -> None:
        field = _LISTS[type(thing)]
        self.replace(**{field: (*getattr(self.snapshot, field), thing)})

    def change(self, old: _Thing, new: _Thing) -> None:
        """Replace an object by another."""
        self.snapshot = altered(
            self.snapshot,
            _LISTS[type(old)],
            lambda one: one is old,
            lambda _: new,
        )

    def remove(self, thing: Aggregate | Flavor) -> None:
        field = _LISTS[type(thing)]
        rest = (x for x in getattr(self.snapshot, field) if x is not thing)
        self.replace(**{field: tuple(rest)})

    def replace(self, **fields: Any) -> None:
        """Replace whole fields of the snapshot."""
        self.snapshot = dataclasses.replace(self.snapshot, **fields)

    def answer(
        self,
        service: str,
        handler: Callable[[Request], Answer],
        asked: Request,
    ) -> Answer:
        """Answer a request, and note it.

        What was not foreseen is not known, so that nothing is left out.
        """
        reason, before = '', self.snapshot
        try:
            answer = handler(asked)
        except Refused as exc:
            reason = exc.reason
            answer = _error(service, exc.status, reason)
        except Unknown as exc:
            reason = str(exc) or 'this request'
            answer = _unknown(service, reason)
        except (LookupError, TypeError, ValueError, AttributeError) as exc:
            reason = f'this request ({type(exc).__name__}: {exc})'
            answer = _unknown(service, reason)
        body = asked.body if asked.method != 'GET' else None
        self.note(
            Call(
                *(service, asked.method, asked.path, answer.status),
                *(reason, body, asked.minor),
            ),
            before,
        )
        return answer

    def note_empty(self, fields: str) -> None:
        """Note fields that are empty in an answer, as they are not known.

        The cloud would have filled them, so what the tool does with them is
        not known.
        """
        self.empty[fields] = None

    def note(self, call: Call, before: Snapshot) -> None:
        """Note a request that was answered.

        :param before: The cloud before it.
        """
        self.calls.append(call)
        if self.snapshot is not before:
            self.steps.append((call, self.snapshot))


def _unknown(service: str, reason: str) -> Answer:
    return _error(
        service,
        UNKNOWN,
        f'isolate-aggregates rehearse does not know: {reason}',
    )


def _error(service: str, status: int, message: str) -> Answer:
    """Return an error as the service writes it."""
    if service == 'nova':
        kind = _ERRORS.get(status, 'computeFault')
        return Answer(status, {kind: {'code': status, 'message': message}})
    title = http.HTTPStatus(status).phrase
    return Answer(
        status, {'error': {'code': status, 'title': title, 'message': message}}
    )


def _completed(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with ids everywhere, and zones in one place."""
    numbers = itertools.count(
        1 + max((a.id or 0 for a in snapshot.aggregates), default=0)
    )
    return dataclasses.replace(
        snapshot,
        aggregates=tuple(
            dataclasses.replace(
                one,
                id=next(numbers) if one.id is None else one.id,
                availability_zone=zone_of(one),
                metadata={k: v for k, v in one.metadata.items() if k != ZONE},
            )
            for one in snapshot.aggregates
        ),
        flavors=tuple(
            dataclasses.replace(
                one, id=one.id or derived_uuid('flavor', one.name)
            )
            for one in snapshot.flavors
        ),
        images=tuple(
            dataclasses.replace(
                one, id=one.id or derived_uuid('image', one.name)
            )
            for one in snapshot.images
        ),
    )
