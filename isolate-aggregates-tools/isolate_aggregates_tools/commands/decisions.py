# SPDX-License-Identifier: Apache-2.0
"""``decision list``: sums up what nova-scheduler has recorded."""

import argparse
from collections.abc import Iterator, Sequence
import functools
from typing import Any

from isolate_aggregates.text import counted
from isolate_aggregates_tools.cli import output
from isolate_aggregates_tools.decisions import documents, logs
from isolate_aggregates_tools.decisions.sums import (
    EFFECTS,
    KINDS,
    Counts,
    Sums,
)

# The most sums of a kind, and requests, in a table.
_MOST = 20

_COLUMNS = ('By', 'Name', 'Requests')
_SHADOW_COLUMNS = (
    *('By', 'Name', 'No host', 'Refused', 'Other host', 'Not known'),
    'Failed',
)


class ListDecisions(output.ReportLister):
    """Sum up why requests got no host, from the log of nova-scheduler.

    It reads log files and no cloud. The sums are by cause, lock, project,
    flavor and day. A request counts for each lock that closed hosts to it.
    With --shadow: what filters in shadow would have changed, and which
    requests would have ended without a host. As json or yaml: one document
    with all of it.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'log',
            nargs='+',
            metavar='<file>',
            help='Log file, which may be compressed with gzip; - for the '
            'standard input',
        )
        parser.add_argument(
            '--shadow',
            action='store_true',
            help='Show what filters in shadow would have changed',
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        if parsed_args.log.count(logs.STDIN) > 1:
            self._usage.error('- can be given only once')
        self.columns = _SHADOW_COLUMNS if parsed_args.shadow else _COLUMNS
        return super().run(parsed_args)

    def report(self, args: argparse.Namespace) -> output.Report:
        sums, not_read = Sums(args.shadow), logs.NotRead()
        for record in logs.records(args.log, not_read):
            sums.add(record)
        most = None if args.long or args.formatter != 'table' else _MOST
        after = [*_more(sums, most), *not_read_lines(not_read)]
        if args.shadow:
            after = [*_without_host(sums, most), *after]
        return output.Report(
            document=functools.partial(document, sums, not_read),
            columns=self.columns,
            rows=list(_rows(sums, most)),
            before=_lines(sums),
            after=after,
        )


def not_read_lines(not_read: logs.NotRead) -> Iterator[str]:
    """Yield what of logs was not read, for a table."""
    for sentence in not_read.sentences():
        yield f'Not read: {sentence}.'


def _rows(sums: Sums, most: int | None) -> Iterator[Sequence[Any]]:
    for kind in KINDS:
        for key, counts in sums.sorted(kind)[:most]:
            name = output.Value(sums.name(kind, key))
            if sums.of_shadow:
                numbers = [counts.effects[effect] for effect in EFFECTS]
                yield (kind, name, *numbers)
            else:
                yield kind, name, counts.requests


def _lines(sums: Sums) -> Iterator[str]:
    """Yield the lines above the table."""
    if not sums.records:
        yield (
            'There are no records of decisions: nova-scheduler logs those '
            'that [isolate_aggregates] decisions asks for.'
        )
        return
    yield (
        f'{counted(sums.records, "record")} from {sums.first} to {sums.last}.'
    )
    results = sums.results
    if not sums.of_shadow:
        yield (
            f'Without a host: {results["no_host"]}; refused: '
            f'{results["refused"]}; placed: {results["placed"]}.'
        )
        return
    effects = sums.effects
    yield (
        f'Would have ended without a host: {effects["no_host"]}; refused: '
        f'{effects["refused"]}; on another host: {effects["other_host"]}; '
        f'not known: {effects["not_known"]}; not decided: '
        f'{effects["failed"]}.'
    )


def _more(sums: Sums, most: int | None) -> Iterator[str]:
    """Yield how many sums have no row."""
    for kind in KINDS if most else ():
        if (more := len(sums.counts[kind]) - (most or 0)) > 0:
            yield f'{counted(more, f"more {kind}")}; --long shows all.'


def _without_host(sums: Sums, most: int | None) -> Iterator[str]:
    """Yield the requests that would have ended without a host."""
    if not sums.without_host:
        return
    yield 'Placed, but would have ended without a host:'
    for each in sums.without_host[:most]:
        why = each.reason or f'closed by {", ".join(each.locks)}'
        yield (
            f'  {each.at}  {each.request}  server {each.server}, project '
            f'{each.project}, flavor {each.flavor}: {why}'
        )
    hidden = len(sums.without_host) - len(sums.without_host[:most])
    if hidden:
        yield f'  {counted(hidden, "more request")}; --long shows all.'
    if sums.not_named:
        yield f'  {counted(sums.not_named, "further request")}, not listed.'


def document(sums: Sums, not_read: logs.NotRead) -> Any:
    """Return the JSON document."""
    period = None
    if sums.records:
        period = documents.Period(first=sums.first, last=sums.last)
    not_read_sentences = tuple(not_read.sentences())
    if not sums.of_shadow:
        return documents.Decisions(
            records=sums.records,
            period=period,
            results=dict(sums.results),
            sums=tuple(
                documents.Sum(**_entry(sums, kind, key, counts.requests))
                for kind in KINDS
                for key, counts in sums.sorted(kind)
            ),
            not_read=not_read_sentences,
        )
    return documents.Shadow(
        records=sums.records,
        period=period,
        effects=dict(sums.effects),
        sums=tuple(
            documents.ShadowSum(
                **_entry(sums, kind, key, counts.requests),
                **_effects(counts),
            )
            for kind in KINDS
            for key, counts in sums.sorted(kind)
        ),
        without_host=tuple(
            documents.WithoutHost(**vars(each)) for each in sums.without_host
        ),
        more_without_host=sums.not_named,
        not_read=not_read_sentences,
    )


def _effects(counts: Counts) -> dict[str, Any]:
    return {effect: counts.effects[effect] for effect in EFFECTS}


def _entry(
    sums: Sums, kind: str, key: str | None, requests: int
) -> dict[str, Any]:
    return {
        'by': kind,
        'name': sums.name(kind, key),
        'id': key if kind == 'flavor' else None,
        'requests': requests,
    }
