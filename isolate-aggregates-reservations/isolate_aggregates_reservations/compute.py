# SPDX-License-Identifier: Apache-2.0
"""The calls to Nova that reservations need.

All calls are idempotent: creating an object that exists, or deleting one that
does not, is not an error unless the docstring says so.
"""

from collections.abc import Collection, Iterable, Iterator
import contextlib
import dataclasses
import datetime
from typing import Any
from urllib import parse

from novaclient import exceptions as nova_exceptions

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates_reservations import events, names, record
from isolate_aggregates_reservations.reservation import Reservation, Shape
from isolate_aggregates_tools.compute.client import (
    INLINE_EXTRA_SPECS,
    NovaClient,
    flavor_of,
    paged,
)
from isolate_aggregates_tools.compute.records import FlavorRecord

# More revisions than a reservation ever has at a time.
_REVISIONS = 20

# From this microversion on Nova detects shared storage itself.
_SHARED_STORAGE_FOUND_OUT = '2.14'

# 404: the server is gone. 409: another operation is running, so a later run
# must try again.
_GOING = (202, 204, 404, 409)


@dataclasses.dataclass(frozen=True)
class Node:
    """A compute node.

    :param uuid: Its uuid, which is that of its root resource provider.
    :param service: The name of its compute service.
    """

    uuid: str
    name: str
    service: str
    is_up: bool
    is_enabled: bool


class Compute(NovaClient):
    """Nova's API, extended by what reservations need."""

    def nodes(self) -> list[Node]:
        with self._asking('the compute nodes') as nova:
            return [
                Node(
                    uuid=hypervisor.id,
                    name=hypervisor.hypervisor_hostname,
                    service=hypervisor.service['host'],
                    is_up=hypervisor.state == 'up',
                    is_enabled=hypervisor.status == 'enabled',
                )
                for hypervisor in paged(nova.hypervisors.list)
            ]

    # Flavors, by their ids.

    def records(self, with_archives: bool = False) -> list[FlavorRecord]:
        """Return the private flavors with names of reservations.

        :param with_archives: Whether to return all archives and pages of
            events. Otherwise only those that are read anyway, with the
            earliest end: they follow all records, so the part of the list with
            the first one is the last to read.
        """

        def page(marker: str | None, limit: int) -> list[Any]:
            if not with_archives and names.is_history(marker or ''):
                return []
            flavors: list[Any] = nova.flavors.list(
                is_public=False, marker=marker, limit=limit
            )
            return flavors

        with self._asking('the flavors') as nova:
            return _records(paged(page))

    def own_records(self) -> list[FlavorRecord]:
        """Return the reservations' flavors that the own project may use.

        A member may call this; the records may be outdated, because only
        administrators can read their revisions.
        """
        with self._asking('the flavors') as nova:
            return [
                entry
                for entry in _records(paged(nova.flavors.list))
                if record.is_ours(entry.description)
            ]

    def record(self, flavor_id: str) -> FlavorRecord | None:
        with self._asking_for(flavor_id) as nova:
            try:
                flavor = nova.flavors.get(flavor_id)
            except nova_exceptions.NotFound:
                return None
            return _record(flavor)

    def revisions(self, reservation: Reservation) -> list[FlavorRecord]:
        """Return the flavor and all revisions of a reservation.

        :returns: An empty list if the reservation is gone.
        """
        first = self.record(reservation.id)
        if first is None:
            return []
        with self._asking_for(reservation.id) as nova:
            # Nova sorts flavors by id, so the revisions follow the flavor.
            # There are few, because earlier ones are deleted.
            try:
                page = nova.flavors.list(
                    is_public=False, marker=reservation.id, limit=_REVISIONS
                )
            except nova_exceptions.BadRequest:
                # The marker was deleted meanwhile.
                return []
            return [first, *_records(page)]

    def create_flavor(
        self, flavor_id: str, shape: Shape, description: str
    ) -> None:
        """Create a private flavor, without its extra specs.

        :raises ServiceConflict: if a flavor has that id or name.
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
        with (
            self._asking_for(flavor_id) as nova,
            contextlib.suppress(nova_exceptions.NotFound),
        ):
            nova.flavors.delete(flavor_id)

    def projects(self, flavor_id: str) -> list[str]:
        with self._asking_for(flavor_id) as nova:
            try:
                entries = nova.flavor_access.list(flavor=flavor_id)
            except nova_exceptions.NotFound:
                return []
            return [str(entry.tenant_id) for entry in entries]

    def grant(self, flavor_id: str, project: str) -> None:
        """Give a project access to a flavor.

        :raises ServiceNotFound: if the flavor is gone.
        """
        with (
            self._asking_for(flavor_id) as nova,
            contextlib.suppress(nova_exceptions.Conflict),
        ):
            nova.flavor_access.add_tenant_access(flavor_id, project)

    def revoke(self, flavor_id: str, project: str | None = None) -> None:
        """Remove the access of a project to a flavor; of all by default."""
        every = [project] if project else self.projects(flavor_id)
        for project in every:
            with (
                self._asking_for(flavor_id) as nova,
                contextlib.suppress(nova_exceptions.NotFound),
            ):
                nova.flavor_access.remove_tenant_access(flavor_id, project)

    # Records of reservations.

    def create_record(self, reservation: Reservation) -> None:
        """Create the flavor of a reservation, without its extra specs.

        :raises ServiceConflict: if a flavor has that id or name already.
        """
        self.create_flavor(
            reservation.id, reservation.shape, record.describe(reservation)
        )

    def write_record(
        self, reservation: Reservation, now: datetime.datetime
    ) -> Reservation:
        """Write the next revision of a record.

        :param reservation: The new values, with the number of the revision
            that they are based on.
        :returns: The reservation with the number of its new revision, and
            with what has changed among its events.
        :raises ServiceConflict: if another client wrote that revision first.
        """
        if record.is_full(reservation):
            # Whoever writes this revision creates the same page.
            page = names.page(
                reservation.id, reservation.incarnation, reservation.pages
            )
            *past, last = reservation.events
            self.create_history(page, reservation, record.describe_page(past))
            reservation = dataclasses.replace(
                reservation, events=(last,), pages=reservation.pages + 1
            )
        successor = dataclasses.replace(
            events.recorded(reservation, now),
            revision=reservation.revision + 1,
        )
        # It has the size too, so it is whole without the first flavor.
        self.create_flavor(
            _revision(successor), successor.shape, record.describe(successor)
        )
        if reservation.revision:
            self.delete_flavor(_revision(reservation))
        return successor

    def delete_record(self, reservation: Reservation) -> None:
        """Delete the flavor of a reservation, then its newest revision.

        In the other order, an interruption would leave the flavor alone, and
        the reservation would have the values that it was created with.
        """
        self.delete_flavor(reservation.id)
        if reservation.revision:
            self.delete_flavor(_revision(reservation))

    def create_history(
        self, flavor_id: str, reservation: Reservation, description: str
    ) -> None:
        """Create an archive or a page of events, unless it exists."""
        with contextlib.suppress(exception.ServiceConflict):
            self.create_flavor(flavor_id, reservation.shape, description)

    # Servers.

    def servers_of(
        self,
        flavor_id: str,
        service: str | None = None,
        all_projects: bool = True,
    ) -> list[str]:
        """Return the ids of the servers that use a flavor.

        Shelved servers are included. Soft-deleted servers are not; they can be
        found by their allocations.
        """
        query = {'flavor': flavor_id}
        if all_projects:
            query['all_tenants'] = '1'
        if service is not None:
            query['host'] = service
        return list(
            self.direct.paged(
                '/servers',
                lambda document: [str(s['id']) for s in document['servers']],
                str,
                query,
            )
        )

    def has_server(self, server: str) -> bool:
        answer = self.direct.request('GET', _path(server), accept=(200, 404))
        return answer.status_code == 200

    def delete_server(self, server: str) -> None:
        """Delete a server, unless it is gone.

        If Nova soft-deletes servers (``reclaim_instance_interval``), it keeps
        its allocation.
        """
        self.direct.request('DELETE', _path(server), accept=_GOING)

    def delete_for_good(self, server: str) -> bool:
        """Delete a soft-deleted server permanently, unless it is gone.

        :returns: False if there is no such server.
        """
        return self._act(server, 'forceDelete') != 404

    def evacuate(self, server: str) -> None:
        """Evacuate a server, unless it is gone or already being evacuated.

        :raises BadQuery: if the compute service of its host is not down.
        """
        self.direct.request(
            'POST',
            f'{_path(server)}/action',
            _SHARED_STORAGE_FOUND_OUT,
            json={'evacuate': {}},
            accept=(200, *_GOING),
        )

    def resized(self, migrations: Collection[str]) -> list[str]:
        """Return the ids of servers whose resize is not confirmed yet.

        :param migrations: The uuids of migrations; those that are not
            unconfirmed resizes are ignored.
        """
        with self._asking('the migrations') as nova:
            return [
                str(migration.instance_uuid)
                for migration in nova.migrations.list(
                    status='finished', migration_type='resize'
                )
                if migration.uuid in migrations
            ]

    def confirm_resize(self, server: str) -> None:
        """Confirm a resize, to free the resources that it holds."""
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
        """Add a compute service to a host aggregate.

        :raises ServiceNotFound: if the aggregate or the service is gone.
        :raises ServiceConflict: if Nova rejects it, because it is a member
            already or for its availability zone.
        """
        with self._asking(f'aggregate {aggregate.name}') as nova:
            nova.aggregates.add_host(aggregate.id, service)

    @contextlib.contextmanager
    def _asking(self, what: str) -> Iterator[Any]:
        """Provide novaclient, and translate its exceptions into ours."""
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


def _records(flavors: Iterable[Any]) -> list[FlavorRecord]:
    return [
        _record(flavor)
        for flavor in flavors
        if flavor.name == names.flavor(flavor.id)
    ]


def _record(flavor: Any) -> FlavorRecord:
    return FlavorRecord(
        flavor_of(flavor, flavor.extra_specs), flavor.description or ''
    )


def _revision(reservation: Reservation) -> str:
    return names.Revision(
        reservation.id, reservation.incarnation, reservation.revision
    ).flavor_id


def _path(server: str) -> str:
    return f'/servers/{parse.quote(server, safe="")}'
