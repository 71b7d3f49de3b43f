# SPDX-License-Identifier: Apache-2.0
"""Finds objects in Placement that ended reservations have left behind."""

from collections.abc import Iterator

from isolate_aggregates.request.extra_specs import (
    RESERVATION_CLASS,
    RESERVATION_HOSTS,
    RESERVATION_TRAIT,
    parse,
)
from isolate_aggregates_tools.audit.cloud import AuditedCloud
from isolate_aggregates_tools.audit.finding import Finding, Severity
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.repair import Repair

_PROVIDER = 'blazar_'
# With its id, the name of a flavor that is the record of a reservation.
_RECORD = 'reservation:'


def living(cloud: AuditedCloud) -> frozenset[str]:
    """Return the resource classes of reservations that have a record.

    If the reservations were not read, a flavor with the name of a record
    counts as one: nothing of it may be deleted.
    """
    if cloud.reservations is not None:
        return cloud.reservations.resource_classes
    return frozenset(
        spec.name
        for flavor in cloud.snapshot.flavors
        if flavor.name == _RECORD + flavor.id
        for spec in parse(flavor.extra_specs)
        if spec.name.startswith(RESERVATION_CLASS)
    )


def resource_classes(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find resource classes of reservations that no provider has."""
    if cloud.resource_classes is None:
        return
    resource_classes = {
        rc for p in cloud.snapshot.providers for rc in p.inventories
    }
    unused = cloud.resource_classes - resource_classes
    # An empty pool keeps the class of its hosts.
    has_pool = RESERVATION_TRAIT in cloud.required_by
    for name in sorted(unused - living(cloud)):
        if name.startswith(RESERVATION_CLASS) and not (
            has_pool and name == RESERVATION_HOSTS
        ):
            yield Finding(
                'reservation-class-left',
                Severity.INFO,
                f'resource class {name}',
                'no resource provider has an inventory of it',
                'it does nothing, unless its reservation is being created '
                'right now',
                (Repair(commands.delete_class(name)),),
            )


def providers(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find Blazar's providers that are not children of a compute node.

    Blazar creates them as children of compute nodes, and Placement does not
    delete a provider that has children. So such a provider was created or
    moved by hand.
    """
    for provider in cloud.snapshot.providers:
        if not provider.name.startswith(_PROVIDER):
            continue
        if provider.parent or provider.host:
            continue
        in_use = any(provider.usages.values())
        yield Finding(
            'reservation-provider-left',
            Severity.INFO,
            f'resource provider {provider.name}',
            'is not below a compute node'
            + (', and servers use it' if in_use else ''),
            'the capacity that it reserves is on no host',
            () if in_use else (Repair(commands.delete_provider(provider)),),
        )
