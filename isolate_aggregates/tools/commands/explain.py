# SPDX-License-Identifier: Apache-2.0
"""``explain``: shows why each host is a candidate for a server, or not."""

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
import dataclasses
from typing import Any

from isolate_aggregates import exception
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.text import counted
from isolate_aggregates.tools import comparison, explain, ranges, taken
from isolate_aggregates.tools.advice import Advice, Effects
from isolate_aggregates.tools.advice.mending import mendings
from isolate_aggregates.tools.answers.requests import Requests
from isolate_aggregates.tools.capacity import rejection, scheduling
from isolate_aggregates.tools.cli import fields, output
from isolate_aggregates.tools.cli.exit_status import ExitStatus
from isolate_aggregates.tools.commands import documents, request_arguments
from isolate_aggregates.tools.explain import groups
from isolate_aggregates.tools.mirrored import chain
from isolate_aggregates.tools.request import asking

# Up to this many hosts, a row does not state their number.
_FEW = 3

# The most rows of a table; large groups of hosts come first.
_MOST = 20

# The width of the host names in a row, which leaves room for the reasons.
_WIDTH = 40

_LEFT_OUT = 'not offered by Placement, although it should be'
_BY_FALLBACK = (
    "offered for Nova's fallback query, which requests VCPU instead of PCPU"
)


class ExplainRequest(output.ReportLister):
    """Show for every host why a server may use it, or why not.

    The filters and the rules of Placement are applied to a copy of the cloud
    in memory; the cloud itself is only read. As a table: a summary, then the
    hosts with their verdicts and reasons; hosts that are excluded by the same
    filters for the same causes share a row. As json or yaml: one document with
    all of it, host by host. As csv or value: only the hosts.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        request_arguments.add_arguments(parser, server=True)
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
        parser.add_argument(
            '--hosts',
            action='store_true',
            help='Show each host and each constraint separately',
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Show them; return the exit status."""
        code = super().run(parsed_args)
        return ExitStatus.NO if self._is_refused else code

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        with request_arguments.opened(self.app, parsed_args) as question:
            decision = question.decision
            self._rejection: str | None = None
            try:
                self._explanation = explain.of_request(
                    question.cloud.snapshot,
                    question.request,
                    decision.destination,
                )
            except exception.BadQuery as exc:
                self._rejection = f'{exc}.'
                self._explanation = explain.rejected(question.cloud.snapshot)
            self._of_server = parsed_args.server is not None
            self._not_known = question.not_known
            self._decision = decision
            self._advice = (
                []
                if any(v.is_candidate for v in self._explanation.verdicts)
                else self._mendings(question)
            )
            # Nova does not query Placement for a request that is refused.
            is_refused = decision.too_long or decision.destination.refusals
            if not is_refused and not self._rejection:
                self._rejection = rejection(
                    question.cloud.snapshot,
                    asking.first(decision, question.request),
                )
            self._is_refused = bool(is_refused or self._rejection)
            limit = request_arguments.limit_from(parsed_args, self.app.conf)
            self._scheduling = (
                taken.NORMAL
                if self._is_refused
                else scheduling(
                    question.cloud.snapshot,
                    asking.every(decision, question.request, limit),
                )
            )
            self._difference = (
                None
                if self._is_refused
                else comparison.difference(
                    question.cloud, question.request, decision
                )
            )
        self._left_out = (
            self._difference.roots if self._difference else frozenset[str]()
        )
        self._shown = [
            verdict
            for verdict in self._explanation.verdicts
            if not (parsed_args.excluded and self._may_be_used(verdict))
            and not (parsed_args.candidates and not self._may_be_used(verdict))
        ]
        self._rest: list[groups.HostGroup] = []
        self._nodes = Counter(v.host for v in self._explanation.verdicts)
        self._in_groups = (
            parsed_args.formatter == 'table' and not parsed_args.hosts
        )
        if self._in_groups:
            left_out = [v for v in self._shown if v.provider in self._left_out]
            others = [
                v for v in self._shown if v.provider not in self._left_out
            ]
            row_groups = [
                *groups.hosts(left_out),
                *groups.hosts([v for v in others if v.by_fallback]),
                *groups.hosts([v for v in others if not v.by_fallback]),
            ]
            rows = list(map(self._row, row_groups[:_MOST]))
            self._rest = row_groups[_MOST:]
        else:
            # In csv and value, each host is one line, with all its reasons.
            together = (
                fields.Lines if parsed_args.formatter == 'table' else '; '.join
            )
            rows = [
                (
                    self._name(verdict),
                    self._word(verdict),
                    together(self._reasons(verdict)),
                )
                for verdict in self._shown
            ]
        return ('Host', 'Verdict', 'Reasons'), rows

    def _mendings(self, question: request_arguments.Question) -> list[Advice]:
        """Return how to give the request a host, and whom that lets in."""
        pipeline = chain.as_in_nova(self.app.conf)
        filters = Pipeline(loading.load(self.app.conf))
        cloud = question.cloud
        snapshot = cloud.snapshot
        try:
            # That of a live cloud has only what decides about this request.
            snapshot = dataclasses.replace(
                snapshot, flavors=cloud.flavors, images=cloud.images
            )
        except exception.ServiceError as exc:
            self._not_known = dataclasses.replace(
                self._not_known,
                sentences=(
                    *self._not_known.sentences,
                    'which flavors and images there are, so that nothing is '
                    f'corrected in them: {str(exc).removesuffix(".")}',
                ),
            )
        requests = Requests(cloud, self.app.conf)
        effects = Effects(snapshot, pipeline, filters, requests)
        return list(effects.advice(mendings(effects, question.request)))

    def _row(self, group: groups.HostGroup) -> Sequence[Any]:
        hosts = list(map(self._name, group.verdicts))
        lines = [ranges.folded(hosts, _WIDTH)]
        if len(hosts) > _FEW:
            lines.append(f'({len(hosts)} hosts)')
        return (
            fields.Lines(lines),
            self._word(group.verdicts[0]),
            fields.Lines(group.reasons or self._reasons(group.verdicts[0])),
        )

    def _may_be_used(self, verdict: explain.Verdict) -> bool:
        """Return whether Placement really offers a host."""
        return verdict.is_candidate and verdict.provider not in self._left_out

    def _word(self, verdict: explain.Verdict) -> str:
        return 'candidate' if self._may_be_used(verdict) else 'excluded'

    def _reasons(self, verdict: explain.Verdict) -> list[str]:
        if verdict.is_candidate and verdict.provider in self._left_out:
            return [_LEFT_OUT]
        if verdict.by_fallback:
            return [_BY_FALLBACK]
        return [reason.text for reason in verdict.reasons]

    def _name(self, verdict: explain.Verdict) -> str:
        if self._nodes[verdict.host] == 1:
            return verdict.host
        # A compute service for bare metal has many nodes.
        return f'{verdict.host} ({verdict.node})'

    def document(self) -> documents.Explanation:
        explanation = self._explanation
        return documents.Explanation(
            summary=documents.ExplainSummary(
                hosts=len(explanation.verdicts),
                candidates=self._usable_hosts,
                rejected=self._rejection,
                not_known=tuple(self._not_known.sentences),
                placement_differs=comparison.document(self._difference),
                **self._scheduling.document(),
                left_to_host_filters=request_arguments.left_document(
                    self._decision
                ),
                constraints=tuple(
                    documents.Constraint(
                        constraint=count.cause[0].label,
                        kind=count.cause[0].kind,
                        excludes=len(count.excludes),
                        only_it_excludes=len(count.only),
                    )
                    for count in explanation.counts
                    if len(count.cause) == 1
                ),
                together=tuple(
                    documents.Together(
                        constraints=tuple(c.label for c in count.cause),
                        kinds=tuple(c.kind for c in count.cause),
                        excludes=len(count.excludes),
                        only_they_exclude=len(count.only),
                    )
                    for count in explanation.counts
                    if len(count.cause) > 1
                ),
                drop_any_of=tuple(
                    tuple(requirement.label for requirement in remedy)
                    for remedy in explanation.remedies
                ),
                repairs=tuple(
                    documents.Mending(
                        command=one.line or None,
                        text=one.text,
                        opens=one.opens,
                    )
                    for one in self._advice
                ),
            ),
            hosts=tuple(
                documents.ExplainedHost(
                    name=verdict.host,
                    node=verdict.node,
                    uuid=verdict.provider,
                    verdict=self._word(verdict),
                    reasons=tuple(self._reasons(verdict)),
                )
                for verdict in self._shown
            ),
        )

    def before(self) -> Iterable[str]:
        """Yield the summary."""
        explanation = self._explanation
        hosts = len(explanation.verdicts)
        if not hosts:
            yield 'There are no compute hosts.'
            return
        yield f'{self._usable_hosts} of {counted(hosts, "host")} may be used.'
        yield from request_arguments.rejected_lines(self._rejection)
        yield from comparison.lines(self._difference)
        yield from self._scheduling.lines()
        excluding = list(self._counts())
        if excluding:
            yield ''
            yield (
                'Hosts excluded by each constraint (in brackets: by it alone):'
            )
            for count in excluding:
                numbers = f'  {len(count.excludes)} ({len(count.only)})  '
                first, *more = count.labels
                yield numbers + first
                for label in more:
                    yield ' ' * len(numbers) + label
        if explanation.remedies:
            yield ''
            yield from _remedies(self._ways())
        yield from self._advised()
        yield ''
        yield from request_arguments.left_lines(self._decision)
        yield from self._not_known.lines()

    def _advised(self) -> Iterable[str]:
        for is_tried, title in (
            (True, 'Any one of these gives it a host:'),
            (False, 'What no command here can try:'),
        ):
            some = [one for one in self._advice if one.is_tried is is_tried]
            if some:
                yield ''
                yield title
            for advice in some:
                yield from output.advice('  ', advice)
            if some and is_tried and self._of_server:
                yield (
                    'A server has copies of its flavor and image; after a '
                    'change of these, create, resize or rebuild it again.'
                )

    def _counts(self) -> Iterable[groups.CountGroup]:
        if self._in_groups:
            return groups.counts(self._explanation)
        return (
            groups.CountGroup((count.cause,), count.excludes, count.only)
            for count in self._explanation.counts
            if count.excludes
        )

    def _ways(self) -> Sequence[Sequence[str]]:
        if self._in_groups:
            return groups.remedies(self._explanation)
        return [
            [requirement.label for requirement in remedy]
            for remedy in self._explanation.remedies
        ]

    def after(self) -> Iterable[str]:
        """Yield how many hosts have no row."""
        if self._rest:
            hosts = sum(len(group.verdicts) for group in self._rest)
            yield (
                f'{counted(hosts, "more host")} for '
                f'{counted(len(self._rest), "other combination")} of reasons; '
                '--hosts shows each host.'
            )

    @property
    def _usable_hosts(self) -> int:
        return sum(map(self._may_be_used, self._explanation.verdicts))


def _remedies(ways: Sequence[Sequence[str]]) -> Iterable[str]:
    if all(len(labels) == 1 for labels in ways):
        yield 'No host fits. Dropping any one of these would help:'
        for [label] in ways:
            yield f'  {label}'
        return
    yield 'No host fits. To get one, drop all of:'
    for number, labels in enumerate(ways):
        if number:
            yield 'or all of:'
        for label in labels:
            yield f'  {label}'
