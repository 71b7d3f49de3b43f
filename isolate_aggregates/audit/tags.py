# SPDX-License-Identifier: Apache-2.0
"""Finds metadata of aggregates that looks like a lock but is none."""

from collections.abc import Iterator
import re

from isolate_aggregates.aggregates import Aggregate, tags
from isolate_aggregates.audit import repairs
from isolate_aggregates.audit.facts import Facts
from isolate_aggregates.audit.finding import Finding, Severity
from isolate_aggregates.extra_specs import REQUIRED, TRAIT_PREFIX

# How people write "trait:" that nothing reads so.
LIKE_PREFIX = re.compile(r'\s*traits?\w*\s*[:=.]\s*', re.IGNORECASE)


def without_meaning(facts: Facts) -> Iterator[Finding]:
    """Find tags that lock nothing, or lock for good."""
    # Placement may know more traits than the os-traits here.
    right = {(TRAIT_PREFIX + trait, REQUIRED) for trait in facts.all_traits}
    for aggregate in facts.snapshot.aggregates:
        for key, value in sorted(aggregate.metadata.items()):
            like = LIKE_PREFIX.match(key)
            trait = key[like.end() :].strip().upper() if like else ''
            if not trait or (key, value) in right:
                continue
            if value.strip().lower() == REQUIRED:
                yield from _misspelt(aggregate, key, value, trait)
            elif key == TRAIT_PREFIX + trait:
                yield Finding(
                    'tag-without-effect',
                    Severity.INFO,
                    f'aggregate {aggregate.name}',
                    f'has {key}={value}, and only the value {REQUIRED} locks',
                    'the tag does nothing',
                    repairs.unset_tag(aggregate, key),
                )


def _misspelt(
    aggregate: Aggregate, key: str, value: str, trait: str
) -> Iterator[Finding]:
    right = TRAIT_PREFIX + trait
    problem = tags.problem(key, value)
    if not problem:
        if key.startswith(TRAIT_PREFIX):
            return
        problem = f'isolates nothing; the key has to be {right}'
    # As the index of the aggregates reads it.
    locks = value == REQUIRED and key.lower().startswith(TRAIT_PREFIX)
    yield Finding(
        'tag-that-nothing-opens' if locks else 'tag-without-effect',
        Severity.ERROR,
        f'aggregate {aggregate.name}',
        f'has {key}={value}, which {problem}',
        'no server can land there'
        if locks
        else 'the aggregate is not locked: any server may land there',
        # A trait that nobody knows is none to lock with.
        repairs.unset_tag(aggregate, key)
        if tags.problem(right, REQUIRED)
        else repairs.replace_tag(aggregate, key, right, REQUIRED),
    )
