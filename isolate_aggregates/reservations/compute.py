# SPDX-License-Identifier: Apache-2.0
"""Nova, as far as reservations need it.

See the `Compute API reference <https://docs.openstack.org/api-ref/compute/>`_.
Whatever is there already, or gone already, is fine.
"""

from collections.abc import Collection, Mapping
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
from isolate_aggregates.rest.connection import Connection

_PAGE = 1000

# 404: it is gone. 409: something is being done with it, so it is tried again.
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


class Compute:
    """Nova, as far as reservations need it.

    :param connection: How to reach it.
    :param retry_delay: Seconds to wait before each retry; None for half a
        second before the first one and twice as long before each further.
    """

    def __init__(
        self, connection: Connection, retry_delay: float | None = None
    ) -> None:
        self._api = NovaClient(connection, retry_delay)

    def aggregates(self) -> list[Aggregate]:
        """Return all host aggregates.

        :raises ServiceError: if Nova gives no usable answer.
        """
        return self._api.aggregates()

    def nodes(self) -> list[Node]:
        """Return all compute nodes.

        :raises ServiceError: if Nova gives no usable answer.
        """
        client = self._client
        with self._api.translated('the compute nodes'):
            return [
                Node(
                    uuid=found.id,
                    name=found.hypervisor_hostname,
                    service=found.service['host'],
                    is_up=found.state == 'up',
                    is_enabled=found.status == 'enabled',
                )
                for found in paged(client.hypervisors.list)
            ]

    def records(self) -> list[record.Record]:
        """Return the private flavors that are named as reservations are.

        :raises ServiceError: if Nova gives no usable answer.
        """
        client = self._client
        with self._api.translated('the flavors'):
            return [
                record.Record(
                    flavor_of(found, found.extra_specs),
                    found.description or '',
                )
                for found in paged(
                    lambda **page: client.flavors.list(is_public=False, **page)
                )
                if found.name == names.flavor(found.id)
            ]

    def create_record(self, reservation: record.Reservation) -> bool:
        """Create the flavor of a reservation, without its extra specs.

        :param reservation: The reservation.
        :returns: False if there is a flavor of that id or name already.
        :raises ServiceError: if it can not be done.
        """
        shape = reservation.shape
        try:
            with self._api.translated(f'flavor {reservation.flavor.name}'):
                self._client.flavors.create(
                    reservation.flavor.name,
                    shape.ram,
                    shape.vcpus,
                    shape.disk,
                    flavorid=reservation.id,
                    ephemeral=shape.ephemeral,
                    swap=shape.swap,
                    is_public=False,
                    description=record.describe(reservation),
                )
        except exception.ServiceConflict:
            return False
        return True

    def write_record(
        self, reservation: record.Reservation
    ) -> record.Reservation:
        """Write the next revision of a record.

        :param reservation: What it shall say, with the revision that this was
            decided from.
        :returns: The reservation with its new revision.
        :raises ServiceConflict: if another client wrote that revision.
        """
        written = dataclasses.replace(
            reservation, revision=reservation.revision + 1
        )
        flavor_id = _revision(written)
        name = names.flavor(flavor_id)
        with self._api.translated(f'flavor {name}'):
            self._client.flavors.create(
                name,
                # It has to have a size.
                1,
                1,
                0,
                flavorid=flavor_id,
                is_public=False,
                description=record.describe(written),
            )
        if reservation.revision:
            self.delete_flavor(_revision(reservation))
        return written

    def write_extra_specs(self, reservation: record.Reservation) -> None:
        """Write the extra specs of the flavor of a reservation.

        :param reservation: The reservation.
        :raises ServiceNotFound: if the flavor is gone.
        :raises ServiceError: if it can not be done.
        """
        flavor = reservation.flavor
        self._api.set_extra_specs(flavor, flavor.extra_specs)

    def delete_record(self, reservation: record.Reservation) -> None:
        """Delete the flavor of a reservation, and its newest revision.

        In this order: without it the reservation would be again what it was
        at first.
        """
        self.delete_flavor(reservation.id)
        if reservation.revision:
            self.delete_flavor(_revision(reservation))

    def delete_flavor(self, flavor_id: str) -> None:
        """Delete a flavor, unless it is gone."""
        with self._api.translated(f'flavor {names.flavor(flavor_id)}'):
            try:
                self._client.flavors.delete(flavor_id)
            except nova_exceptions.NotFound:
                return

    def description(self, flavor_id: str) -> str | None:
        """Return the description of a flavor; None if it is gone."""
        with self._api.translated(f'flavor {names.flavor(flavor_id)}'):
            try:
                found = self._client.flavors.get(flavor_id)
            except nova_exceptions.NotFound:
                return None
            return str(found.description or '')

    def projects(self, flavor_id: str) -> list[str]:
        """Return the ids of the projects that may use a flavor."""
        with self._api.translated(f'flavor {names.flavor(flavor_id)}'):
            try:
                found = self._client.flavor_access.list(flavor=flavor_id)
            except nova_exceptions.NotFound:
                return []
            return [str(entry.tenant_id) for entry in found]

    def grant(self, reservation: record.Reservation) -> None:
        """Let the project use the flavor of its reservation.

        :param reservation: The reservation.
        :raises ServiceNotFound: if the flavor is gone.
        :raises ServiceError: if it can not be done.
        """
        with self._api.translated(f'flavor {reservation.flavor.name}'):
            try:
                self._client.flavor_access.add_tenant_access(
                    reservation.id, reservation.project
                )
            except nova_exceptions.Conflict:
                return

    def revoke(self, reservation: record.Reservation) -> None:
        """Let nobody use the flavor of a reservation any more.

        :param reservation: The reservation.
        :raises ServiceError: if it can not be done.
        """
        access = self._client.flavor_access
        for project in self.projects(reservation.id):
            with self._api.translated(f'flavor {reservation.flavor.name}'):
                try:
                    access.remove_tenant_access(reservation.id, project)
                except nova_exceptions.NotFound:
                    continue

    def servers(self, reservation: record.Reservation) -> list[str]:
        """Return the ids of the servers of a reservation's flavor.

        Those that are shelved are among them, those that are deleted but may
        still be restored are not: they are known by their allocations.

        :param reservation: The reservation.
        :raises ServiceError: if Nova gives no usable answer.
        """
        query = {
            'all_tenants': '1',
            'flavor': reservation.id,
            'limit': str(_PAGE),
        }
        found: list[str] = []
        while True:
            path = f'/servers?{parse.urlencode(query)}'
            page = self._api.direct.parsed(
                path,
                lambda document: [s['id'] for s in document['servers']],
                self._api.direct.get(path),
            )
            found += page
            if not page or page[-1] == query.get('marker'):
                return found
            query['marker'] = page[-1]

    def delete_server(self, server: str) -> None:
        """Delete a server, unless it is gone.

        Where deleted servers can be restored it keeps its allocation.

        :param server: Its id.
        :raises ServiceError: if it can not be done.
        """
        self._api.direct.request('DELETE', _path(server), accept=_GOING)

    def delete_for_good(self, server: str) -> bool:
        """Delete a server that can be restored, unless it is gone.

        :param server: Its id.
        :returns: False if there is no such server.
        :raises ServiceError: if it can not be done.
        """
        answer = self._api.direct.request(
            'POST',
            f'{_path(server)}/action',
            json={'forceDelete': None},
            accept=_GOING,
        )
        return bool(answer.status_code != 404)

    def confirm_resizes(self, migrations: Collection[str]) -> None:
        """Confirm resizes that wait for it, so that what they hold is free.

        :param migrations: The uuids of the migrations; what is not, or no
            longer, one that waits is passed over.
        :raises ServiceError: if it can not be done.
        """
        client = self._client
        with self._api.translated('the migrations'):
            servers = [
                found.instance_uuid
                for found in client.migrations.list(
                    status='finished', migration_type='resize'
                )
                if found.uuid in migrations
            ]
        for server in servers:
            self._api.direct.request(
                'POST',
                f'{_path(server)}/action',
                json={'confirmResize': None},
                accept=_GOING,
            )

    def create_aggregate(self, name: str) -> None:
        """Create a host aggregate, unless there is one of that name.

        :param name: Its name.
        :raises ServiceError: if it can not be done.
        """
        with self._api.translated(f'aggregate {name}'):
            try:
                self._client.aggregates.create(name, None)
            except nova_exceptions.Conflict:
                return

    def set_metadata(
        self, aggregate: Aggregate, metadata: Mapping[str, str | None]
    ) -> None:
        """Set metadata of a host aggregate; other keys stay.

        :param aggregate: The aggregate.
        :param metadata: The metadata.
        :raises ServiceError: if it can not be done.
        """
        self._api.set_metadata(aggregate, metadata)

    def add_host(self, aggregate: Aggregate, service: str) -> None:
        """Put a compute service into a host aggregate.

        :param aggregate: The aggregate.
        :param service: The name of the compute service.
        :raises ServiceNotFound: if the aggregate or the service is gone.
        :raises ServiceConflict: if Nova does not let it in.
        :raises ServiceError: if it can not be done.
        """
        with self._api.translated(f'aggregate {aggregate.name}'):
            self._client.aggregates.add_host(aggregate.id, service)

    def remove_host(self, aggregate: Aggregate, service: str) -> None:
        """Take a compute service out of a host aggregate.

        :param aggregate: The aggregate.
        :param service: The name of the compute service.
        :raises ServiceError: if it can not be done.
        """
        with self._api.translated(f'aggregate {aggregate.name}'):
            try:
                self._client.aggregates.remove_host(aggregate.id, service)
            except nova_exceptions.NotFound:
                return

    @property
    def _client(self) -> Any:
        self._api.require(
            INLINE_EXTRA_SPECS, 'Rocky', 'keeping reservations in flavors'
        )
        return self._api.client


def _revision(reservation: record.Reservation) -> str:
    return names.Revision(
        reservation.id, reservation.incarnation, reservation.revision
    ).flavor_id


def _path(server: str) -> str:
    return f'/servers/{parse.quote(server, safe="")}'
