# SPDX-License-Identifier: Apache-2.0
"""The part of the record of a decision that the request filters decide.

nova-scheduler writes it when it decides, and commands compare it with what the
filters decide now. ``decision.schema.json`` describes all fields.
"""

from collections.abc import Iterable, Iterator, Set
import itertools
from typing import Any

from isolate_aggregates.aggregates import Aggregate, AggregateIndex, collation
from isolate_aggregates.decision import Decision
from isolate_aggregates.filters.constraints import (
    Cause,
    Conclusion,
    Constraint,
    Forbid,
    LazyForbid,
    Require,
)

SCHEMA = 'isolate-aggregates/decision/1'
CONFIGURATION = 'isolate-aggregates/configuration/1'
#: The logger of the records.
LOGGER = 'isolate_aggregates.decisions'

#: Why a request got no host, in the order in which they take precedence.
CAUSES = (
    'query_too_long', 'refused', 'filter_failed', 'source_failed',
    'not_recorded', 'error', 'nova_refused', 'placement_down',
    'placement_rejected', 'full', 'locked', 'zone', 'project', 'aggregates',
    'host', 'disabled', 'traits', 'unknown_hosts', 'host_filter', 'claims',
    'no_candidates',
)  # fmt: skip
#: What filters in shadow would have changed of a request.
EFFECTS = (
    'none', 'refused', 'other_host', 'no_host', 'not_known', 'failed',
)  # fmt: skip

#: The most aggregates, locks and refusals that are named; others are counted.
MOST = 5
_LONGEST = 255


def cut(text: object) -> str:
    """Return a text of limited length."""
    return str(text)[:_LONGEST]


def of_decision(decision: Decision) -> dict[str, Any]:
    """Return what the filters have concluded, in a limited number of entries.

    :returns: Those of ``locks``, ``requires``, ``refusals`` and ``query`` that
        apply.
    """
    record: dict[str, Any] = {}
    entries: dict[tuple[str, str, str], dict[str, Any]] = {}
    for conclusion in decision.destination.yielded:
        for name, part, number in _parts(conclusion, decision.aggregates):
            kind = str(getattr(part.cause, 'kind', ''))
            key = name, conclusion.filter_name, kind
            entry = entries.get(key)
            if entry is None:
                entry = {
                    'filter': conclusion.filter_name,
                    'cause': kind,
                    'aggregates': 0,
                    'some': [],
                }
                entries[key] = entry
                record.setdefault(name, []).append(entry)
            entry['aggregates'] += number
            more = MOST - len(entry['some'])
            entry['some'] += [
                _named(each, part) for each in part.aggregates[:more]
            ]
        if refusals := conclusion.alone.refusals:
            record.setdefault('refusals', []).extend(
                {
                    'filter': conclusion.filter_name,
                    'cause': conclusion.kind,
                    'reason': cut(reason),
                }
                for reason in refusals
            )
    if 'refusals' in record:
        del record['refusals'][MOST:]
    if decision.needs_host_check:
        record['query'] = {
            'shortened': True,
            'forbids': len(decision.forbidden),
        }
    return record


def closing(decision: Decision, aggregates: Set[str]) -> list[dict[str, Any]]:
    """Return what keeps a request from a host, in at most ``MOST`` entries.

    :param aggregates: The uuids of the aggregates of the host.
    """

    def found() -> Iterator[dict[str, Any]]:
        for conclusion in decision.destination.yielded:
            for part in conclusion.constraint.parts:
                if isinstance(part, Forbid):
                    for each in part.aggregates:
                        if each.uuid in aggregates:
                            yield {
                                'filter': conclusion.filter_name,
                                **_named(each, part),
                            }
                elif isinstance(part, Require) and aggregates.isdisjoint(
                    each.uuid for each in part.aggregates
                ):
                    yield {
                        'filter': conclusion.filter_name,
                        'in_none_of': [
                            cut(each.name) for each in part.aggregates[:MOST]
                        ],
                    }

    return list(itertools.islice(found(), MOST))


def _parts(
    conclusion: Conclusion, index: AggregateIndex
) -> Iterable[tuple[str, Forbid | Require, int]]:
    """Return some constraints, each with a number of aggregates to count."""
    constraint: Constraint = conclusion.constraint
    if isinstance(constraint, Forbid):
        return [('locks', constraint, len(constraint.aggregates))]
    if isinstance(constraint, Require) and constraint.aggregates:
        return [('requires', constraint, len(constraint.aggregates))]
    if not isinstance(constraint, LazyForbid):
        return ()

    def first() -> list[tuple[str, Forbid | Require, int]]:
        parts = list(itertools.islice(constraint.make(), MOST))
        numbers = [0] * len(parts)
        numbers[:1] = [len(constraint.uuids)]
        return [
            ('locks', _kept(part), number)
            for part, number in zip(parts, numbers, strict=True)
        ]

    if constraint.groups is None:
        return first()
    # Equal for all requests that lack the same keys, but for names.
    key = 'first parts', conclusion.filter_name, constraint.uuids
    return index.remember(key, first)


def _kept(part: Forbid) -> Forbid:
    """Return what a record tells of a constraint, without its request.

    It outlives the request, and the cause of another package may hold that.
    """
    locks = tuple(map(str, getattr(part.cause, 'locks', ())))
    kind = str(getattr(part.cause, 'kind', ''))
    return Forbid(part.aggregates[:MOST], Cause(kind, '', locks))


def _named(aggregate: Aggregate, part: Constraint) -> dict[str, Any]:
    """Return an aggregate and what locks it, as far as that is known."""
    entry: dict[str, Any] = {
        'uuid': aggregate.uuid,
        'name': cut(aggregate.name),
    }
    locks = [
        cut(f'{key}={aggregate.metadata[key]}')
        for lock in getattr(part.cause, 'locks', ())
        for key in (
            [lock]
            if lock in aggregate.metadata
            else sorted(aggregate.metadata)
        )
        if collation.may_start_with(key, lock.lower())
    ]
    if locks:
        entry['locks'] = locks[:MOST]
    return entry
