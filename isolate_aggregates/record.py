# SPDX-License-Identifier: Apache-2.0
"""The part of the record of a decision that the request filters decide.

nova-scheduler writes it when it decides, and commands compare it with what the
filters decide now. ``decision.schema.json`` describes all fields.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
import itertools
import json
from typing import Any

from isolate_aggregates.aggregates import Aggregate, AggregateIndex, collation
from isolate_aggregates.decision import Decision
from isolate_aggregates.filters.constraints import (
    Conclusion,
    Constraint,
    Forbid,
    LazyForbid,
    Require,
)
from isolate_aggregates.lazy import lazy_property

SCHEMA = 'isolate-aggregates/decision/1'
CONFIGURATION = 'isolate-aggregates/configuration/1'
#: The logger of the records.
LOGGER = 'isolate_aggregates.decisions'

#: Why a request got no host, in the order in which they take precedence.
CAUSES = (
    'query_too_long', 'refused', 'filter_failed', 'source_failed',
    'not_recorded', 'error', 'nova_refused', 'placement_down',
    'placement_rejected', 'full', 'locked', 'zone', 'project', 'aggregates',
    'disabled', 'traits', 'host', 'unknown_hosts', 'host_filter', 'claims',
    'no_candidates',
)  # fmt: skip
#: What filters in shadow would have changed of a request.
EFFECTS = (
    'none', 'refused', 'other_host', 'no_host', 'not_known', 'failed',
)  # fmt: skip

#: The most aggregates, locks and refusals that are named; others are counted.
MOST = 5
_LONGEST = 255
# The parts of a record that have entries.
_CONCLUSIONS = ('locks', 'requires')


def cut(text: object) -> str:
    """Return a text of limited length."""
    return str(text)[:_LONGEST]


encoded = json.JSONEncoder(separators=(',', ':'), default=str).encode


class Entry(dict[str, Any]):
    """An entry of ``locks`` or ``requires``, which nobody changes.

    Most requests share it, and with it its JSON, the longest part of a record.
    """

    @lazy_property
    def json(self) -> str:
        """The JSON."""
        return encoded(self)


def line_of(record: Mapping[str, Any]) -> str:
    """Return a record as a line of JSON, which begins with the schema."""
    rest = dict(record)
    ready = [
        f',"{name}":[{",".join([entry.json for entry in entries])}]'
        for name in _CONCLUSIONS
        if (entries := rest.pop(name, None))
    ]
    return f'{encoded(rest)[:-1]}{"".join(ready)}}}'


def of_decision(decision: Decision) -> dict[str, Any]:
    """Return what the filters have concluded, in a limited number of entries.

    :returns: Those of ``locks``, ``requires``, ``refusals`` and ``query`` that
        apply.
    """
    record: dict[str, Any] = {}
    entries: list[tuple[str, Entry]] = []
    for conclusion in decision.destination.yielded:
        entries += _entries(conclusion, decision.aggregates)
        if refusals := conclusion.alone.refusals:
            record.setdefault('refusals', []).extend(
                {
                    'filter': conclusion.filter_name,
                    'cause': conclusion.kind,
                    'reason': cut(reason),
                }
                for reason in refusals
            )
    for name, entry in _together(entries):
        record.setdefault(name, []).append(entry)
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


def _together(
    entries: Sequence[tuple[str, Entry]],
) -> Sequence[tuple[str, Entry]]:
    """Return one entry for each part, filter and cause."""
    if len(entries) < 2:
        return entries
    found: dict[tuple[str, str, str], Entry] = {}
    for name, entry in entries:
        key = name, entry['filter'], entry['cause']
        before = found.get(key)
        found[key] = (
            entry
            if before is None
            else Entry(
                before,
                aggregates=before['aggregates'] + entry['aggregates'],
                some=[*before['some'], *entry['some']][:MOST],
            )
        )
    return [(name, entry) for (name, *_), entry in found.items()]


def _entries(
    conclusion: Conclusion, index: AggregateIndex
) -> Sequence[tuple[str, Entry]]:
    """Return what a conclusion adds to a record, by the name of the part."""
    constraint, filter_name = conclusion.constraint, conclusion.filter_name
    if isinstance(constraint, Forbid):
        return [('locks', _entry(filter_name, constraint))]
    if isinstance(constraint, Require) and constraint.aggregates:
        return [('requires', _entry(filter_name, constraint))]
    if not isinstance(constraint, LazyForbid):
        return ()

    number = len(constraint.uuids)

    def first() -> Sequence[tuple[str, Entry]]:
        return _together(
            [
                # The first counts all.
                ('locks', _entry(filter_name, part, 0 if n else number))
                for n, part in enumerate(
                    itertools.islice(constraint.make(), MOST)
                )
            ]
        )

    if constraint.groups is None:
        return first()
    # Equal for all requests that lack the same keys.
    key = 'in a record', filter_name, constraint.uuids
    return index.remember(key, first)


def _entry(
    filter_name: str, part: Forbid | Require, number: int | None = None
) -> Entry:
    """Return the entry of some aggregates.

    It has nothing but texts and numbers, as it may outlive the request, which
    the cause of another package may hold.

    :param number: The number of aggregates to count; all by default.
    """
    aggregates = part.aggregates
    return Entry(
        filter=filter_name,
        cause=str(getattr(part.cause, 'kind', '')),
        aggregates=len(aggregates) if number is None else number,
        some=[_named(each, part) for each in aggregates[:MOST]],
    )


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
