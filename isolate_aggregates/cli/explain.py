# SPDX-License-Identifier: Apache-2.0
"""``explain``: why a server may go to a host, and why not to another."""

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from isolate_aggregates.cli import asking, fields, output
from isolate_aggregates.inspect import explain
from isolate_aggregates.inspect.explain.requirements import Requirement
from isolate_aggregates.placement import resources
from isolate_aggregates.text import counted


class ExplainRequest(output.ReportLister):
    """Show for every host why a server may use it, or why not.

    The filters and the rules of Placement are applied to a picture of the
    cloud, so production is only read. As a table: a summary, then each host
    with its verdict and reasons. As json or yaml: one document with all of it.
    As csv or value: the hosts alone.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        asking.add_arguments(parser, server=True)
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            '--excluded',
            action='store_true',
            help='Show only hosts that may not be used',
        )
        which.add_argument(
            '--candidates',
            action='store_true',
            help='Show only hosts that may be used',
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Explain every host."""
        with asking.asked(self.app, parsed_args) as asked:
            self._explanation = explain.explain(
                asked.cloud.snapshot,
                resources.resource_request(asked.request),
                asked.decision.destination,
            )
            self._not_known = asked.not_known
        self._shown = [
            verdict
            for verdict in self._explanation.verdicts
            if not (parsed_args.excluded and verdict.is_candidate)
            and not (parsed_args.candidates and not verdict.is_candidate)
        ]
        # Where a line is a host, its reasons have to be on that line.
        together = (
            fields.Lines if parsed_args.formatter == 'table' else '; '.join
        )
        hosts = Counter(v.host for v in self._explanation.verdicts)
        rows = [
            (
                # A service for bare metal has many nodes.
                verdict.host
                if hosts[verdict.host] == 1
                else f'{verdict.host} ({verdict.node})',
                _word(verdict),
                together([reason.text for reason in verdict.reasons]),
            )
            for verdict in self._shown
        ]
        return ('Host', 'Verdict', 'Reasons'), rows

    def document(self) -> dict[str, Any]:
        """Return summary and hosts."""
        explanation = self._explanation
        return {
            'summary': {
                'hosts': len(explanation.verdicts),
                'candidates': self._found,
                'not_known': list(self._not_known),
                'constraints': [
                    {
                        'constraint': count.cause[0].label,
                        'excludes': len(count.excludes),
                        'only_it_excludes': len(count.only),
                    }
                    for count in explanation.counts
                    if len(count.cause) == 1
                ],
                'together': [
                    {
                        'constraints': [c.label for c in count.cause],
                        'excludes': len(count.excludes),
                        'only_they_exclude': len(count.only),
                    }
                    for count in explanation.counts
                    if len(count.cause) > 1
                ],
                'drop_any_of': [
                    [requirement.label for requirement in remedy]
                    for remedy in explanation.remedies
                ],
            },
            'hosts': [
                {
                    'name': verdict.host,
                    'node': verdict.node,
                    'uuid': verdict.provider,
                    'verdict': _word(verdict),
                    'reasons': [reason.text for reason in verdict.reasons],
                }
                for verdict in self._shown
            ],
        }

    def before(self) -> Iterable[str]:
        """Yield the summary."""
        explanation = self._explanation
        hosts = len(explanation.verdicts)
        if not hosts:
            yield 'There are no compute hosts.'
            return
        yield f'{self._found} of {counted(hosts, "host")} may be used.'
        excluding = [c for c in explanation.counts if c.excludes]
        if excluding:
            yield ''
            yield (
                'Hosts excluded by each constraint (in brackets: by it alone):'
            )
            for count in excluding:
                labels = '; '.join(c.label for c in count.cause)
                together = 'together: ' if len(count.cause) > 1 else ''
                yield (
                    f'  {len(count.excludes)} ({len(count.only)})  '
                    f'{together}{labels}'
                )
        if explanation.remedies:
            yield ''
            yield from _remedies(explanation.remedies)
        yield ''
        yield from asking.told_not_known(self._not_known)

    @property
    def _found(self) -> int:
        return sum(v.is_candidate for v in self._explanation.verdicts)


def _word(verdict: explain.Verdict) -> str:
    return 'candidate' if verdict.is_candidate else 'excluded'


def _remedies(remedies: Sequence[Sequence[Requirement]]) -> Iterable[str]:
    if len(remedies[0]) == 1:
        yield 'Nothing fits. Any one of these, dropped, would help:'
        for [requirement] in remedies:
            yield f'  {requirement.label}'
        return
    yield 'Nothing fits. To get one host, drop all of:'
    for number, remedy in enumerate(remedies):
        if number:
            yield 'or all of:'
        for requirement in remedy:
            yield f'  {requirement.label}'
