# SPDX-License-Identifier: Apache-2.0
"""Finds problems that break isolation, with commands that repair them.

A check is a pure function from ``AuditedCloud`` to an iterator of ``Finding``.
To add a check, write it and add it to those below.
"""

from collections.abc import Callable, Iterable
import dataclasses

from isolate_aggregates_tools.audit import (
    demands,
    domains,
    keys,
    leftovers,
    membership,
    metadata,
    no_host,
    reservations,
    rollups,
    servers,
    services,
    spelling,
    tags,
    traits,
    usage,
    weights,
)
from isolate_aggregates_tools.audit.cloud import AuditedCloud
from isolate_aggregates_tools.audit.finding import Finding, Severity

__all__ = ['CHECKS', 'AuditedCloud', 'Finding', 'Severity', 'audit']

Check = Callable[[AuditedCloud], Iterable[Finding]]

OF_CLOUD: tuple[Check, ...] = (
    services.isolation_off,
    services.prefix_in_one_list,
    services.old_nova,
    services.old_placement,
    services.disabled,
    services.down,
    services.unmapped,
    services.without_inventory,
    membership.no_compute_nodes,
    membership.not_in_placement,
    membership.not_in_nova,
    membership.through_a_child,
    membership.without_compute_node,
    membership.renamed,
    tags.ratios,
    tags.unread,
    tags.leaking,
    tags.zones,
    tags.default_zone,
    tags.schedule_zone,
    weights.multipliers,
    domains.projects_missing,
    domains.projects_left,
    domains.unknown,
    domains.without_tag,
    traits.missing_on_hosts,
    traits.out_of_reach,
    traits.outside_aggregates,
    traits.left_by_sync,
    spelling.misspelled,
    demands.contradictions,
    demands.reservation_flavors,
    no_host.flavors,
    no_host.images,
    metadata.not_comparable,
    keys.no_flavors,
    keys.hosts_that_nothing_opens,
    keys.tenants_images,
    keys.reservation_keys,
    rollups.lagging,
    rollups.stale,
    rollups.shared,
    rollups.marks_left,
    leftovers.resource_classes,
    leftovers.providers,
    usage.oversold,
    reservations.not_reconciled,
    reservations.without_slots,
    reservations.closed,
    reservations.with_problems,
    reservations.hosts,
)

# What these find is mended by moving servers.
OF_SERVERS: tuple[Check, ...] = (servers.unknown, servers.misplaced)

CHECKS = (*OF_CLOUD, *OF_SERVERS)


def audit(
    cloud: AuditedCloud, checks: Iterable[Check] = CHECKS
) -> list[Finding]:
    """Run checks; return the findings, most severe first."""
    findings = [
        dataclasses.replace(finding, check=check)
        for check in checks
        for finding in check(cloud)
    ]
    return sorted(findings, key=lambda f: (-f.severity, f.kind, f.subject))
