# SPDX-License-Identifier: Apache-2.0
"""Answers as ``nova.api.openstack.compute.aggregates``."""

from collections.abc import Callable, Iterable, Mapping
import dataclasses
from types import MappingProxyType
from typing import Any
import uuid

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.aggregates.aggregate import ZONE
from isolate_aggregates_tools.cloud.changes import nodes_of, with_hosts
from isolate_aggregates_tools.mirrored.nova_api import changes as rules
from isolate_aggregates_tools.rehearse import schemas
from isolate_aggregates_tools.rehearse.exchange import (
    Answer,
    Refused,
    Request,
)
from isolate_aggregates_tools.rehearse.placement import HeldPlacement
from isolate_aggregates_tools.rehearse.world import World

_MADE = '2026-01-01T00:00:00.000000'


class Aggregates:
    """The aggregates of the cloud that is held."""

    def __init__(self, world: World, placement: HeldPlacement) -> None:
        self._world = world
        self._placement = placement

    def list(self, asked: Request) -> Answer:
        some = self._world.snapshot.aggregates
        documents = [_document(one, asked.minor) for one in some]
        return Answer(200, {'aggregates': documents})

    def show(self, asked: Request, number: str) -> Answer:
        return _answer(self._aggregate(number), asked)

    def create(self, asked: Request) -> Answer:
        schemas.check(asked.body, schemas.AGGREGATE)
        wanted = asked.body['aggregate']
        one = Aggregate(
            str(uuid.uuid4()),
            wanted['name'].strip(),
            availability_zone=wanted.get(ZONE) or None,
        )
        self._check_name(one.name)
        one = dataclasses.replace(one, id=next(self._world.numbers))
        self._world.add(one)
        made = _document(one, asked.minor)
        # So does Nova.
        del made['hosts'], made['metadata']
        return Answer(200, {'aggregate': made})

    def update(self, asked: Request, number: str) -> Answer:
        schemas.check(asked.body, schemas.AGGREGATE_UPDATE)
        wanted = asked.body['aggregate']
        one = self._aggregate(number)
        if 'name' in wanted:
            name = wanted['name'].strip()
            if name != one.name:
                self._check_name(name)
            # Nova has saved the name when it refuses the zone.
            one = self._replaced(one, name=name)
        if ZONE in wanted:
            one = self._with_zone(one, wanted[ZONE])
        return _answer(one, asked)

    def delete(self, asked: Request, number: str) -> Answer:
        one = self._aggregate(number)
        if one.hosts:
            raise Refused(400, f'aggregate {one.name} is not empty')
        self._world.remove(one)
        return Answer(200)

    def act(self, asked: Request, number: str) -> Answer:
        """Do what the body says."""
        body = asked.body if isinstance(asked.body, dict) else {}
        [action] = body or ['']
        if action not in _ACTIONS:
            raise Refused(400, f'there is no action {action}')
        schemas.check(body, schemas.AGGREGATE_ACTIONS[action])
        change = _ACTIONS[action](self, number, body[action])
        return _answer(change, asked)

    def _set_metadata(
        self, number: str, wanted: Mapping[str, Any]
    ) -> Aggregate:
        one, values = self._aggregate(number), dict(wanted['metadata'])
        zone = values.pop(ZONE, one.availability_zone)
        if ZONE in wanted['metadata']:
            one = self._with_zone(one, zone, by_metadata=True)
        merged = {**one.metadata, **values}
        return self._replaced(
            one, metadata={k: v for k, v in merged.items() if v is not None}
        )

    def _add_host(self, number: str, wanted: Mapping[str, Any]) -> Aggregate:
        host = self._host(wanted['host'])
        one = self._aggregate(number)
        new = dataclasses.replace(one, hosts=one.hosts | {host})
        self._check(one, new, 409)
        if host in one.hosts:
            raise Refused(409, f'aggregate {one.name} has host {host} already')
        return self._moved(one, new, host)

    def _remove_host(
        self, number: str, wanted: Mapping[str, Any]
    ) -> Aggregate:
        host = self._host(wanted['host'])
        one = self._aggregate(number)
        # Nova checks the zone before the membership.
        was = dataclasses.replace(one, hosts=one.hosts | {host})
        new = dataclasses.replace(one, hosts=one.hosts - {host})
        self._check(was, new, 409)
        if host not in one.hosts:
            raise Refused(404, f'aggregate {one.name} has no host {host}')
        return self._moved(one, new, host)

    def _moved(self, old: Aggregate, new: Aggregate, host: str) -> Aggregate:
        """Change the hosts of an aggregate, and mirror it as Nova does."""
        before = self._world.snapshot
        nodes = nodes_of(before, {host}).get(host, ())
        self._world.snapshot = with_hosts(before, old, new.hosts)
        # Of several nodes of a host, Nova takes the first.
        for node in nodes[:1]:
            self._placement.edit(
                node.uuid, 'aggregates', new.uuid, host in new.hosts
            )
        return new

    def _with_zone(
        self, old: Aggregate, zone: str | None, by_metadata: bool = False
    ) -> Aggregate:
        if not zone:
            raise Refused(400, 'there is no empty availability zone')
        new = dataclasses.replace(old, availability_zone=zone)
        self._check(old, new, 400, by_metadata)
        if new != old:
            self._world.change(old, new)
        return new if new != old else old

    def _replaced(self, old: Aggregate, **fields: Any) -> Aggregate:
        new = dataclasses.replace(old, **fields)
        if new != old:
            self._world.change(old, new)
        return new if new != old else old

    def _check(
        self,
        old: Aggregate,
        new: Aggregate,
        status: int,
        by_metadata: bool = False,
    ) -> None:
        """Check what Nova says of zones and servers."""
        others = self._others(old)
        for reason in rules.of_aggregate(
            old, new, lambda: others, self._world.occupied, by_metadata
        ):
            raise Refused(status, reason)

    def _others(self, one: Aggregate) -> Iterable[Aggregate]:
        some = self._world.snapshot.aggregates
        return [each for each in some if each.uuid != one.uuid]

    def _check_name(self, name: str) -> None:
        if any(name == one.name for one in self._world.snapshot.aggregates):
            raise Refused(409, f'there is an aggregate {name} already')

    def _host(self, host: str) -> str:
        if host not in self._world.hosts:
            raise Refused(404, f'compute host {host} could not be found')
        return host

    def _aggregate(self, number: str) -> Aggregate:
        try:
            wanted = int(number)
        except ValueError:
            raise Refused(400, f'{number!r} is not an integer') from None
        for one in self._world.snapshot.aggregates:
            if one.id == wanted:
                return one
        raise Refused(404, f'aggregate {number} could not be found')


_ACTIONS: Mapping[
    str, Callable[[Aggregates, str, Mapping[str, Any]], Aggregate]
] = MappingProxyType(
    {
        'set_metadata': Aggregates._set_metadata,
        'add_host': Aggregates._add_host,
        'remove_host': Aggregates._remove_host,
    }
)


def _answer(one: Aggregate, asked: Request) -> Answer:
    return Answer(200, {'aggregate': _document(one, asked.minor)})


def _document(one: Aggregate, minor: int) -> dict[str, Any]:
    zone = one.availability_zone
    document: dict[str, Any] = {
        'id': one.id,
        'name': one.name,
        ZONE: zone,
        'hosts': sorted(one.hosts),
        'metadata': {**one.metadata, **({ZONE: zone} if zone else {})},
        'created_at': _MADE,
        'updated_at': None,
        'deleted': False,
        'deleted_at': None,
    }
    if minor >= 41:
        document['uuid'] = one.uuid
    return document
