# SPDX-License-Identifier: Apache-2.0
"""Metadata that reserves an aggregate for the projects of Keystone domains.

``filter_tenant_id:domain:<domain>=<domain>`` names the domain, and for each
of its projects there is ``filter_tenant_id:domain:<domain>:<project>`` with
the project as its value. All are names of projects for Nova's filters, which
read each key that starts with ``filter_tenant_id``. The tag of the domain lets
in nobody, as no project outside the domain has its id, so an aggregate without
the projects is closed.

Each project has its own key because one of Nova's filters compares whole
values, and because programs that add or remove projects at the same time then
do not overwrite each other's changes.
"""

from isolate_aggregates.aggregates.aggregate import Aggregate

TENANTS = 'filter_tenant_id'
PREFIX = f'{TENANTS}:domain:'


def of(aggregate: Aggregate) -> tuple[str, ...]:
    """Return the ids of the domains that an aggregate is reserved for."""
    return tuple(
        key.removeprefix(PREFIX)
        for key in sorted(aggregate.metadata)
        if key.startswith(PREFIX) and ':' not in key.removeprefix(PREFIX)
    )


def is_of_domain(key: str) -> bool:
    """Return whether a tag is one of a domain or of its projects."""
    return key.startswith(PREFIX)


def by_hand(aggregate: Aggregate) -> dict[str, str]:
    """Return the tags that name projects, but not those of domains."""
    return {
        key: value
        for key, value in aggregate.metadata.items()
        if key.startswith(TENANTS) and not is_of_domain(key)
    }


def tag(domain_id: str) -> dict[str, str]:
    """Return the tag that names a domain."""
    return {PREFIX + domain_id: domain_id}
