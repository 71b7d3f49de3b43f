# SPDX-License-Identifier: Apache-2.0
"""``candidate list``: the hosts for a server, and the query."""

import argparse
from collections.abc import Iterable, Sequence
import dataclasses
from typing import Any

from isolate_aggregates import exception
from isolate_aggregates.query_limit import OUR_HOST_FILTER, Replacement
from isolate_aggregates.text import counted
from isolate_aggregates_tools import candidates, comparison
from isolate_aggregates_tools.cli import output, terminal, usage
from isolate_aggregates_tools.cli.exit_status import ExitStatus
from isolate_aggregates_tools.commands import (
    request_arguments,
    request_documents,
)
from isolate_aggregates_tools.mirrored.mirror import Remark
from isolate_aggregates_tools.request import asking

_SIMULATED = (
    'The simulator has answered, by the rules in the documentation of '
    'Placement: the embedded Placement is not installed. To ask it, install '
    'isolate-aggregates-tools[embedded].'
)

# The most dropped hosts in a table without --long; documents have all.
_MOST_DROPPED = 10


class ListCandidates(output.ReportLister):
    """Show the hosts that a server may use, and why it may use no others.

    As a table: the hosts, the constraints with their reasons, and the query
    that was sent to Placement. As json or yaml: one document with all of it.
    As csv or value: only the hosts, with a column for each resource class.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        request_arguments.add_arguments(parser)
        request_arguments.add_limit_argument(parser)
        parser.add_argument(
            '--query',
            action='store_true',
            help='Print only the query string, for GET '
            '/allocation_candidates?, and do not ask Placement',
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Show them; return the exit status."""
        if parsed_args.query:
            self._print_query(parsed_args)
            return 0
        return super().run(parsed_args)

    def _print_query(self, args: argparse.Namespace) -> None:
        with request_arguments.opened(self.app, args) as question:
            limit = request_arguments.limit_from(args, self.app.conf)
            query = asking.first(question.decision, question.request, limit)
        with usage.writing():
            self.app.stdout.write(f'{query.to_querystring()}\n')

    def report(self, args: argparse.Namespace) -> output.Report:
        with request_arguments.opened(self.app, args) as question:
            limit = request_arguments.limit_from(args, self.app.conf)
            parts = question.cloud, question.request, question.decision
            try:
                outcome = candidates.allowed(*parts, limit)
                answer = _Answer(
                    outcome,
                    None
                    if outcome.is_simulated
                    else comparison.difference_after_answer(*parts),
                    None,
                    question.not_known,
                )
            except exception.BadQuery as exc:
                outcome = candidates.none(*parts[1:], limit)
                answer = _Answer(outcome, None, str(exc), question.not_known)
        columns, rows = _table(outcome.hosts, args.formatter == 'table')
        return output.Report(
            document=answer.document,
            columns=columns,
            rows=rows,
            after=answer.lines(None if args.long else _MOST_DROPPED),
            status=ExitStatus.NO if answer.rejection else ExitStatus.DONE,
        )


@dataclasses.dataclass(frozen=True)
class _Answer:
    """The hosts, and what there is to say about them.

    :param rejection: Why Placement rejects the query; None if it does not.
    """

    outcome: candidates.CandidateHosts
    difference: comparison.Difference | None
    rejection: str | None
    not_known: request_arguments.NotKnown

    def document(self) -> request_documents.Candidates:
        outcome = self.outcome
        _, *fallbacks = outcome.queries
        return request_documents.Candidates(
            hosts=tuple(
                request_documents.Candidate(
                    name=host.name,
                    uuid=host.uuid,
                    free=host.free,
                    candidates=host.candidates,
                )
                for host in outcome.hosts
            ),
            dropped=tuple(
                request_documents.Dropped(
                    name=host.name, reasons=tuple(host.reasons)
                )
                for host in outcome.dropped_hosts
            ),
            rejected=self.rejection,
            not_known=tuple(self.not_known.sentences),
            constraints=_constraints(outcome),
            placement_differs=comparison.document(self.difference),
            shortened=_shortened(outcome.decision.replacement),
            left_to_host_filters=request_arguments.left_document(
                outcome.decision
            ),
            **outcome.scheduling.document(),
            answered_by='simulator' if outcome.is_simulated else 'placement',
            query=outcome.query.to_querystring(),
            microversion=outcome.query.microversion,
            fallback_query=fallbacks[0].to_querystring()
            if fallbacks
            else None,
        )

    def lines(self, most: int | None) -> Iterable[str]:
        """Yield the number of hosts, the constraints and the query.

        :param most: The most dropped hosts to name.
        """
        outcome = self.outcome
        hint = '' if outcome.hosts else ' Use explain to see why.'
        yield f'{counted(len(outcome.hosts), "host")} may be used.{hint}'
        yield from request_arguments.rejected_lines(self.rejection)
        yield from comparison.lines(self.difference)
        yield from outcome.scheduling.lines()
        if outcome.is_simulated:
            yield ''
            yield _SIMULATED
        yield ''
        if outcome.dropped_hosts:
            yield 'Dropped by Nova, after Placement:'
            for host in outcome.dropped_hosts[:most]:
                yield f'  {host.name}: {"; ".join(host.reasons)}'
            if most and len(outcome.dropped_hosts) > most:
                more = len(outcome.dropped_hosts) - most
                yield f'  and {more} more, which --long shows'
            yield ''
        yield from self.not_known.lines()
        yield 'Constraints:'
        constraints = _constraints(outcome)
        for constraint in constraints:
            yield f'  {constraint.filter}: {constraint.reason}'
        if not constraints:
            yield '  none'
        yield ''
        replacement = outcome.decision.replacement
        if replacement:
            yield 'The query would be too long to forbid all aggregates:'
            for rollup in replacement.rollups:
                yield (
                    f'  rollup {rollup.name} ({rollup.uuid}) for '
                    f'{len(rollup.aggregates)} aggregates'
                )
            number = counted(len(replacement.left_out), 'aggregate')
            yield f'  {number} left to {OUR_HOST_FILTER}, after Placement'
            yield ''
        yield from request_arguments.left_lines(outcome.decision)
        yield f'Query (microversion {outcome.query.microversion}):'
        yield terminal.Query(f'  {outcome.query.to_querystring()}')
        for query in outcome.queries[1:]:
            yield 'Fallback query, which Nova sends for pinned CPUs:'
            yield terminal.Query(f'  {query.to_querystring()}')


def _table(
    hosts: Iterable[candidates.CandidateHost], is_for_people: bool
) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    """Return the columns and rows; a program gets a column for each class."""
    if is_for_people:
        return ('Host', 'Free', 'Candidates'), [
            (
                host.name,
                ', '.join(f'{rc} {n}' for rc, n in host.free.items()),
                host.candidates,
            )
            for host in hosts
        ]
    classes = sorted({rc for host in hosts for rc in host.free})
    return ('Host', 'Candidates', *classes), [
        (host.name, host.candidates, *map(host.free.get, classes))
        for host in hosts
    ]


def _shortened(
    replacement: Replacement | None,
) -> request_documents.Shortened | None:
    if replacement is None:
        return None
    return request_documents.Shortened(
        rollups=tuple(
            request_documents.Rollup(
                name=rollup.name,
                uuid=rollup.uuid,
                aggregates=len(rollup.aggregates),
            )
            for rollup in replacement.rollups
        )
    )


def _constraints(
    outcome: candidates.CandidateHosts,
) -> tuple[request_documents.Reason, ...]:
    conclusions = outcome.decision.destination.conclusions
    # A conclusion that repeats another one is shown only if a host filter
    # drops hosts for it, or is expected to.
    repeating = (
        frozenset[str]()
        if outcome.dropped_hosts or outcome.decision.left_to_host_filters
        else {conclusion.host_filter for conclusion in conclusions}
    )
    return tuple(
        request_documents.Reason(
            filter=conclusion.filter_name,
            kind=conclusion.kind,
            reason=conclusion.constraint.reason,
        )
        for conclusion in conclusions
        if not isinstance(conclusion.constraint, Remark)
        and conclusion.filter_name not in repeating
    )
