# SPDX-License-Identifier: Apache-2.0
"""Finds tags of domains that differ from the domains in Keystone."""

from collections.abc import Iterator

from isolate_aggregates.aggregates import domains
from isolate_aggregates.text import listed
from isolate_aggregates_tools import domains as tools_domains
from isolate_aggregates_tools.audit.cloud import AuditedCloud
from isolate_aggregates_tools.audit.finding import About, Finding, Severity
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.repair import Repair


def projects_missing(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find projects of domains that an aggregate does not let in."""
    for difference in cloud.plan.differences:
        if difference.missing:
            yield Finding(
                'domain-project-missing',
                Severity.WARNING,
                f'aggregate {difference.aggregate.name}',
                f'is reserved for domain {difference.domain}, but has no '
                f'tag for {listed(difference.missing.values())}',
                'servers of these projects cannot use the hosts',
                # It lets in projects, so it is not safe in itself.
                (Repair(commands.SYNC),),
                about=About.of(
                    hosts=difference.aggregate.hosts,
                    aggregates=[difference.aggregate.name],
                    projects=difference.missing,
                ),
            )


def projects_left(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find projects that are not, or no longer, in the domain."""
    for difference in cloud.plan.differences:
        if difference.foreign:
            yield Finding(
                'domain-project-left',
                Severity.WARNING,
                f'aggregate {difference.aggregate.name}',
                f'lets in projects as those of domain {difference.domain}, '
                'which the domain does not have: '
                f'{listed(difference.foreign.values())}',
                'their servers can use the hosts',
                (Repair(commands.SYNC, safe=not difference.missing),),
                about=About.of(
                    hosts=difference.aggregate.hosts,
                    aggregates=[difference.aggregate.name],
                    projects=difference.foreign,
                ),
            )


def unknown(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find domains that do not exist."""
    for aggregate in cloud.snapshot.aggregates:
        for domain_id in domains.of(aggregate):
            known = cloud.snapshot.domains
            if domain_id in known and known[domain_id] is None:
                yield Finding(
                    'domain-unknown',
                    Severity.WARNING,
                    f'aggregate {aggregate.name}',
                    f'is reserved for domain {domain_id}, which does not '
                    'exist',
                    'no new server can use the hosts for this domain, and '
                    'sync leaves the tags as they are',
                    # Who may use the hosts then is a decision.
                    about=About.of(
                        hosts=aggregate.hosts, aggregates=[aggregate.name]
                    ),
                )


def without_tag(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find tags of projects whose domain has no tag."""
    for aggregate in cloud.snapshot.aggregates:
        keys = list(tools_domains.without_domain(aggregate))
        if keys:
            yield Finding(
                'domain-tag-missing',
                Severity.WARNING,
                f'aggregate {aggregate.name}',
                f'has tags of projects of a domain without a tag: '
                f'{listed(keys)}',
                'the projects can use the hosts, and sync does not follow '
                'the domain',
                about=About.of(
                    hosts=aggregate.hosts, aggregates=[aggregate.name]
                ),
            )
