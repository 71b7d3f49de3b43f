# SPDX-License-Identifier: Apache-2.0
"""Compares the traits that aggregates require with those of the hosts."""

from collections.abc import Iterator

import os_traits

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.audit import repairs
from isolate_aggregates.audit.facts import Facts, named, required_traits
from isolate_aggregates.audit.finding import Finding, Severity
from isolate_aggregates.cloud.snapshot import Provider


def missing_on_hosts(facts: Facts) -> Iterator[Finding]:
    """Find hosts that lack a trait which their aggregate requires."""
    for aggregate in facts.snapshot.aggregates:
        for trait in sorted(required_traits(aggregate)):
            without = {
                host
                for host in aggregate.hosts
                for node in facts.nodes.get(host, ())
                if not _holders(facts, node, trait)
            }
            if without:
                yield Finding(
                    'trait-missing',
                    Severity.ERROR,
                    f'aggregate {aggregate.name}',
                    f'requires trait {trait}, which its hosts '
                    f'{named(without)} do not have in Placement',
                    'no server can land there: those that ask for the trait '
                    'do not find it, and others are kept out',
                    repairs.SYNC,
                    safe=True,
                )


def outside_aggregates(facts: Facts) -> Iterator[Finding]:
    """Find hosts that have a required trait but are in no such aggregate."""
    for trait, requiring in sorted(facts.required_by.items()):
        inside = {host for a in requiring for host in a.hosts}
        for host, nodes in sorted(facts.nodes.items()):
            if host in inside:
                continue
            for node in nodes:
                for holder in _holders(facts, node, trait):
                    yield _outside(host, trait, requiring, holder)


def _outside(
    host: str,
    trait: str,
    requiring: tuple[Aggregate, ...],
    holder: Provider,
) -> Finding:
    names = named(a.name for a in requiring)
    # nova-compute would report a standard trait anew.
    repair = (
        repairs.set_traits(holder, without=trait)
        if os_traits.is_custom(trait)
        else repairs.add_host(requiring[0], host)
    )
    return Finding(
        'trait-outside',
        Severity.WARNING,
        f'host {host}',
        f'has trait {trait} but is in none of the aggregates that require '
        f'it: {names}',
        'servers that ask for the trait leak out of the pool onto it',
        repair,
    )


def _holders(facts: Facts, node: Provider, trait: str) -> tuple[Provider, ...]:
    return tuple(p for p in facts.tree_of(node) if trait in p.traits)
