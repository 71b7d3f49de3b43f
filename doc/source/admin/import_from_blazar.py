# SPDX-License-Identifier: Apache-2.0
"""Takes over the instance reservations of a Blazar that is stopped.

    OS_CLOUD=... python import_from_blazar.py [--yes] [BLAZAR.CONF]

Writes what Blazar's database has about each active or future reservation into
the description of its flavor, where "reservation reconcile" finds it. Slots,
servers and access exist already; future reservations get their slots from
reconcile. Nothing is deleted, and each reservation is written once, however
often the script runs. Without --yes it only shows what it would do.
"""

import dataclasses
import datetime
import sys
import uuid

from blazar import config as blazar_config
from blazar import status
from blazar.db import api as db_api
from blazar.plugins import flavor, instances
from openstack import config as openstack_config

from isolate_aggregates import text
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import events, names, record
from isolate_aggregates_reservations.blazar.record import parse
from isolate_aggregates_reservations.reservation import MOST_IN_NAME
from isolate_aggregates_tools.placement import edits, inventories

# The extra specs that Blazar's own plugin sets on flavors.
EXTRA_SPECS = ('aggregate_instance_extra_specs:reservation', 'affinity_id')


def utc(time):
    return time.replace(tzinfo=datetime.UTC)


def obstacle(store, state, row, lease, now):
    """Return why a reservation cannot be taken over; None if it can."""
    is_active = row['status'] == status.reservation.ACTIVE
    if row['resource_type'] not in (
        instances.RESOURCE_TYPE,
        flavor.RESOURCE_TYPE,
    ):
        return f'only Blazar keeps reservations of {row["resource_type"]}'
    if not is_active and row['status'] != status.reservation.PENDING:
        return f'its status is {row["status"]}'
    if lease['status'] not in status.lease.STABLE:
        return f'the status of its lease is {lease["status"]}'
    if utc(lease['end_date']) <= now:
        return 'its lease is over, and Blazar has not ended it yet'
    if not is_active and utc(lease['start_date']) <= now:
        return 'its lease is due, and Blazar has not started it yet'
    if row['id'] in state.records.problems:
        return str(state.records.problems[row['id']])
    found = store.compute.record(row['id'])
    if found is None:
        return f'Nova has no flavor {names.flavor(row["id"])}'
    mark = parse(found)
    if mark is not None and mark.end is not None:
        return f'it is being ended by {mark.end.by}'
    outside = [
        name
        for name in state.slots(row['id'])
        if not state.hosts[name].in_pool
    ]
    if outside:
        return (
            f'{text.listed(outside)} is not in {store.pool}, see '
            '[blazar:physical:host] aggregate_freepool_name'
        )
    if is_active and not state.slots(row['id']):
        return 'it has no slots'
    return None


def reservation_of(state, row, lease):
    """Return a reservation of Blazar as one of ours."""
    shape = reservations.Shape.like(state.records.foreign[row['id']])
    left_out = {*names.flavor_extra_specs(row['id']), *EXTRA_SPECS}
    return reservations.Reservation(
        id=row['id'],
        project=lease['project_id'],
        start=utc(lease['start_date']),
        end=utc(lease['end_date']),
        amount=int(row['amount']),
        shape=dataclasses.replace(
            shape,
            extra_specs={
                key: value
                for key, value in shape.extra_specs.items()
                if key not in left_out
            },
        ),
        affinity=row['affinity'],
        # Tenants choose the names of leases.
        name=text.escaped(lease['name'] or '')[:MOST_IN_NAME],
        incarnation=uuid.uuid4().hex[:8],
    )


def make_hosts_ready(store, state):
    """Give the reservation providers of all Blazar's hosts their trait."""
    edits.create_trait(store.placement, names.TRAIT)
    for host in state.hosts.values():
        if host.in_pool and host.provider and not host.is_ready:
            edits.change_traits(
                store.placement,
                host.provider,
                lambda before: before | {names.TRAIT},
            )


def write(store, taken, now):
    """Make a reservation one of ours."""
    inventories.create_class(store.placement, taken.resource_class)
    store.compute.set_extra_specs(taken.flavor, taken.flavor.extra_specs)
    # With this description it counts as taken over.
    store.compute.describe_flavor(
        taken.id, record.describe(events.recorded(taken, now))
    )
    for key in EXTRA_SPECS:
        store.compute.unset_extra_spec(taken.flavor, key)


def main(arguments):
    """Run it; return 3 if a reservation could not be taken over."""
    agrees = '--yes' in arguments
    [path] = [a for a in arguments if a != '--yes'] or [
        '/etc/blazar/blazar.conf'
    ]
    blazar_config.CONF([], project='blazar', default_config_files=[path])
    cloud = openstack_config.OpenStackConfig().get_one()
    store = reservations.ReservationStore(
        Connection(cloud.get_session(), cloud.region_name),
        blazar_config.CONF.nova.aggregate_freepool_name,
    )
    now = store.now()
    state = store.read()
    if agrees:
        make_hosts_ready(store, state)
    code = 0
    for lease in db_api.lease_list():
        for row in lease['reservations']:
            if row['status'] == status.reservation.DELETED:
                continue
            result = 'would be taken over'
            if row['id'] in state.records.reservations:
                result = 'was taken over'
            elif problem := obstacle(store, state, row, lease, now):
                result = f'stays with Blazar: {problem}'
                code = 3
            elif agrees:
                write(store, reservation_of(state, row, lease), now)
                result = 'was taken over'
            print(row['id'], result)
    return code


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
