# SPDX-License-Identifier: Apache-2.0
"""The calls to Nova that reservations need.

Creating something that exists, or deleting something that does not, is not an
error.
"""

from collections.abc import Collection, Iterable, Iterator
import contextlib
import dataclasses
from typing import Any
from urllib import parse

from novaclient import exceptions as nova_exceptions

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.cloud.nova import (
    INLINE_EXTRA_SPECS,
    NovaClient,
    flavor_of,
    paged,
)
from isolate_aggregates.reservations import names, record
from isolate_aggregates.reservations.record import Record
from isolate_aggregates.reservations.reservation import Reservation, Shape

_PAGE = 1000

# More than one reservation ever has at a time.
_REVISIONS = 20

# Since then Nova finds out itself whether a server's disk is shared.
_SHARED_STORAGE_FOUND_OUT = '2.14'

# 404: it was deleted. 409: another operation is running, so try again.
_GOING = (202, 204, 404, 409)


@dataclasses.dataclass(frozen=True)
class Node:
    """A compute node.

    :param uuid: Its uuid, which is that of its root resource provider.
    :param name: Its hypervisor hostname.
    :param service: The name of its compute service.
    :param is_up: Whether the service answers.
    :param is_enabled: Whether the service is enabled.
    """

    uuid: str
    name: str
    service: str
    is_up: bool
    is_enabled: bool


class Compute(NovaClient):
    """Nova's API, with flavors that are records of reservations."""

    def nodes(self) -> list[Node]:
        """Return all compute nodes."""
        with self._asking('the compute nodes') as nova:
            return [
                Node(
                    uuid=found.id,
                    name=found.hypervisor_hostname,
                    service=found.service['host'],
                    is_up=found.state == 'up',
                    is_enabled=found.status == 'enabled',
                )
                for found in paged(nova.hypervisors.list)
            ]

    # Flavors, by their ids.

    def records(self) -> list[Record]:
        """Return the private flavors that are named as reservations are."""
        with self._asking('the flavors') as nova:
            return _records(
                paged(
                    lambda **page: nova.flavors.list(is_public=False, **page)
                )
            )

    def record(self, flavor_id: str) -> Record | None:
        """Return one of them; None if it is gone."""
        with self._asking_for(flavor_id) as nova:
            try:
                found = nova.flavors.get(flavor_id)
            except nova_exceptions.NotFound:
                return None
            return _record(found)

    def revisions(self, reservation: Reservation) -> list[Record]:
        """Return the record of a reservation with all its revisions.

        :returns: Nothing if it is gone.
        """
        first = self.record(reservation.id)
        if first is None:
            return []
        with self._asking_for(reservation.id) as nova:
            # Sorted by id they come next, and there are few: earlier ones are
            # deleted.
            try:
                page = nova.flavors.list(
                    is_public=False, marker=reservation.id, limit=_REVISIONS
                )
            except nova_exceptions.BadRequest:
                # It was deleted meanwhile.
                return []
            return [first, *_records(page)]

    def create_flavor(
        self, flavor_id: str, shape: Shape, description: str
    ) -> None:
        """Create a private flavor, without its extra specs.

        :raises ServiceConflict: if there is one of that id or name.
        """
        with self._asking_for(flavor_id) as nova:
            nova.flavors.create(
                names.flavor(flavor_id),
                shape.ram,
                shape.vcpus,
                shape.disk,
                flavorid=flavor_id,
                ephemeral=shape.ephemeral,
                swap=shape.swap,
                is_public=False,
                description=description,
            )

    def describe_flavor(self, flavor_id: str, description: str) -> None:
        """Write the description of a flavor; the last writer wins."""
        with self._asking_for(flavor_id) as nova:
            nova.flavors.update(flavor_id, description=description)

    def delete_flavor(self, flavor_id: str) -> None:
        """Delete a flavor, unless it is gone."""
        with (
            self._asking_for(flavor_id) as nova,
            contextlib.suppress(nova_exceptions.NotFound),
        ):
            nova.flavors.delete(flavor_id)

    def projects(self, flavor_id: str) -> list[str]:
        """Return the ids of the projects that may use a flavor."""
        with self._asking_for(flavor_id) as nova:
            try:
                found = nova.flavor_access.list(flavor=flavor_id)
            except nova_exceptions.NotFound:
                return []
            return [str(entry.tenant_id) for entry in found]

    def grant(self, flavor_id: str, project: str) -> None:
        """Let a project use a flavor.

        :raises ServiceNotFound: if the flavor is gone.
        """
        with (
            self._asking_for(flavor_id) as nova,
            contextlib.suppress(nova_exceptions.Conflict),
        ):
            nova.flavor_access.add_tenant_access(flavor_id, project)

    def revoke(self, flavor_id: str) -> None:
        """Let no project use a flavor any more."""
        for project in self.projects(flavor_id):
            with (
                self._asking_for(flavor_id) as nova,
                contextlib.suppress(nova_exceptions.NotFound),
            ):
                nova.flavor_access.remove_tenant_access(flavor_id, project)

    # Records of reservations.

    def create_record(self, reservation: Reservation) -> bool:
        """Create the flavor of a reservation, without its extra specs.

        :returns: False if there is a flavor of that id or name already.
        """
        try:
            self.create_flavor(
                reservation.id,
                reservation.shape,
                record.describe(reservation),
            )
        except exception.ServiceConflict:
            return False
        return True

    def write_record(self, reservation: Reservation) -> Reservation:
        """Write the next revision of a record.

        :param reservation: What it is to say, with the revision that this was
            decided from.
        :returns: The reservation with its new revision.
        :raises ServiceConflict: if another client wrote that revision.
        """
        written = dataclasses.replace(
            reservation, revision=reservation.revision + 1
        )
        # It must have a size.
        size = Shape(vcpus=1, ram=1)
        self.create_flavor(_revision(written), size, record.describe(written))
        if reservation.revision:
            self.delete_flavor(_revision(reservation))
        return written

    def delete_record(self, reservation: Reservation) -> None:
        """Delete the flavor of a reservation, and its newest revision.

        In this order: without it the reservation would be again what it was
        at first.
        """
        self.delete_flavor(reservation.id)
        if reservation.revision:
            self.delete_flavor(_revision(reservation))

    # Servers.

    def servers_of(
        self, flavor_id: str, service: str | None = None
    ) -> list[str]:
        """Return the ids of the servers of a flavor.

        :param service: Only those of this compute service.

        Those that are shelved are among them; those that are deleted but may
        still be restored are not: they are known by their allocations.
        """
        query = {
            'all_tenants': '1',
            'flavor': flavor_id,
            'limit': str(_PAGE),
        }
        if service is not None:
            query['host'] = service
        found: list[str] = []
        while True:
            path = f'/servers?{parse.urlencode(query)}'
            page = self.direct.parsed(
                path,
                lambda document: [s['id'] for s in document['servers']],
                self.direct.get(path),
            )
            found += page
            if not page or page[-1] == query.get('marker'):
                return found
            query['marker'] = page[-1]

    def delete_server(self, server: str) -> None:
        """Delete a server, unless it is gone.

        Where deleted servers can be restored it keeps its allocation.
        """
        self.direct.request('DELETE', _path(server), accept=_GOING)

    def delete_for_good(self, server: str) -> bool:
        """Delete a server that can be restored, unless it is gone.

        :returns: False if there is no such server.
        """
        return self._act(server, 'forceDelete') != 404

    def evacuate(self, server: str) -> None:
        """Build a server again elsewhere, unless it is gone or on its way.

        :raises BadQuery: if the compute service of its host is not down.
        """
        self.direct.request(
            'POST',
            f'{_path(server)}/action',
            _SHARED_STORAGE_FOUND_OUT,
            json={'evacuate': {}},
            accept=(200, *_GOING),
        )

    def confirm_resizes(self, migrations: Collection[str]) -> None:
        """Confirm unconfirmed resizes, to free the resources they hold.

        :param migrations: The uuids of the migrations; others than unconfirmed
            resizes are ignored.
        """
        with self._asking('the migrations') as nova:
            servers = [
                found.instance_uuid
                for found in nova.migrations.list(
                    status='finished', migration_type='resize'
                )
                if found.uuid in migrations
            ]
        for server in servers:
            self._act(server, 'confirmResize')

    def _act(self, server: str, action: str) -> int:
        answer = self.direct.request(
            'POST',
            f'{_path(server)}/action',
            json={action: None},
            accept=_GOING,
        )
        return int(answer.status_code)

    # Aggregates.

    def create_aggregate(self, name: str) -> None:
        """Create a host aggregate, unless there is one of that name."""
        with (
            self._asking(f'aggregate {name}') as nova,
            contextlib.suppress(nova_exceptions.Conflict),
        ):
            nova.aggregates.create(name, None)

    def delete_aggregate(self, aggregate: Aggregate) -> None:
        """Delete a host aggregate, unless it is gone.

        :raises ServiceError: if it has hosts.
        """
        with (
            self._asking(f'aggregate {aggregate.name}') as nova,
            contextlib.suppress(nova_exceptions.NotFound),
        ):
            nova.aggregates.delete(aggregate.id)

    def add_host(self, aggregate: Aggregate, service: str) -> None:
        """Put a compute service into a host aggregate.

        :raises ServiceNotFound: if the aggregate or the service is gone.
        :raises ServiceConflict: if Nova does not let it in.
        """
        with self._asking(f'aggregate {aggregate.name}') as nova:
            nova.aggregates.add_host(aggregate.id, service)

    def remove_host(self, aggregate: Aggregate, service: str) -> None:
        """Take a compute service out of a host aggregate."""
        with (
            self._asking(f'aggregate {aggregate.name}') as nova,
            contextlib.suppress(nova_exceptions.NotFound),
        ):
            nova.aggregates.remove_host(aggregate.id, service)

    @contextlib.contextmanager
    def _asking(self, what: str) -> Iterator[Any]:
        """Give novaclient, and turn its errors into ours."""
        self.require(
            INLINE_EXTRA_SPECS, 'Rocky', 'keeping reservations in flavors'
        )
        nova = self.client
        with self.translated(what):
            yield nova

    def _asking_for(
        self, flavor_id: str
    ) -> contextlib.AbstractContextManager[Any]:
        return self._asking(f'flavor {names.flavor(flavor_id)}')


def _records(flavors: Iterable[Any]) -> list[Record]:
    return [
        _record(found)
        for found in flavors
        if found.name == names.flavor(found.id)
    ]


def _record(found: Any) -> Record:
    return Record(flavor_of(found, found.extra_specs), found.description or '')


def _revision(reservation: Reservation) -> str:
    return names.Revision(
        reservation.id, reservation.incarnation, reservation.revision
    ).flavor_id


def _path(server: str) -> str:
    return f'/servers/{parse.quote(server, safe="")}'
