# SPDX-License-Identifier: Apache-2.0
"""``explain``: shows why each host is a candidate for a server, or not."""

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import functools
from typing import Any

from isolate_aggregates import exception
from isolate_aggregates.decision import Decision
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.text import counted
from isolate_aggregates_tools import (
    comparison,
    explain,
    nova_candidates,
    ranges,
)
from isolate_aggregates_tools.advice.effects import Advice, Effects
from isolate_aggregates_tools.advice.request_repairs import mendings
from isolate_aggregates_tools.answers.requests import Requests
from isolate_aggregates_tools.capacity import rejection, scheduling
from isolate_aggregates_tools.cli import output
from isolate_aggregates_tools.cli.exit_status import ExitStatus
from isolate_aggregates_tools.commands import advised, request_arguments
from isolate_aggregates_tools.commands import explain_documents as documents
from isolate_aggregates_tools.commands.request_arguments import NotKnown
from isolate_aggregates_tools.explain import groups
from isolate_aggregates_tools.mirrored import chain
from isolate_aggregates_tools.request import asking

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
        request_arguments.add_arguments(parser, server=True, past=True)
        parser.add_argument(
            '--scheduler-log',
            dest='log',
            action='append',
            metavar='<file>',
            help='Log file of nova-scheduler with the record of --request, '
            'which may be compressed with gzip; - for the standard input; may '
            'be repeated',
        )
        if not self.is_in_client:
            parser.add_argument(
                '--log', action='append', help=argparse.SUPPRESS
            )
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
        if parsed_args.request or parsed_args.log:
            # Loaded only for past requests.
            from isolate_aggregates_tools.commands import past_request

            past_request.check(self._usage, parsed_args)
        status = super().run(parsed_args)
        if self.reported.error:
            raise self.reported.error
        return status

    def report(self, args: argparse.Namespace) -> output.Report:
        if args.request:
            from isolate_aggregates_tools.commands import past_request

            return past_request.report(self.app, args, self._report)
        with request_arguments.opened(self.app, args) as question:
            return self._report(question, args)

    def _report(
        self, question: request_arguments.Question, args: argparse.Namespace
    ) -> output.Report:
        answer = self._answer(question, args)
        host = question.request.requested_host
        # Of all others there is nothing to say but that they are not it.
        asked = host.providers if host and answer.is_in_groups else ()
        shown = [
            verdict
            for verdict in answer.explanation.verdicts
            if (not asked or args.excluded or verdict.provider in asked)
            and not (args.excluded and answer.may_be_used(verdict))
            and not (args.candidates and not answer.may_be_used(verdict))
        ]
        rows: list[Sequence[Any]]
        rest: list[groups.HostGroup] = []
        if answer.is_in_groups:
            left_out, others = answer.parted(shown)
            row_groups = [
                *groups.hosts(left_out),
                *groups.hosts([v for v in others if v.by_fallback]),
                *groups.hosts([v for v in others if not v.by_fallback]),
            ]
            rows = list(map(answer.row, row_groups[:_MOST]))
            rest = row_groups[_MOST:]
        else:
            # In csv and value, each host is one line, with all its reasons.
            together = output.Lines if args.formatter == 'table' else '; '.join
            rows = [
                (
                    answer.name(verdict),
                    answer.word(verdict),
                    together(answer.reasons(verdict)),
                )
                for verdict in shown
            ]
        return output.Report(
            document=functools.partial(answer.document, shown),
            columns=('Host', 'Verdict', 'Reasons'),
            rows=rows,
            before=answer.lines(),
            after=_rest(rest),
            status=ExitStatus.NO if answer.is_refused else ExitStatus.DONE,
        )

    def _answer(
        self, question: request_arguments.Question, args: argparse.Namespace
    ) -> '_Answer':
        cloud, request = question.cloud, question.request
        decision = question.decision
        snapshot = cloud.snapshot_for(
            asking.named(decision), asking.amounts(request)
        )
        rejected: str | None = None
        try:
            explanation = explain.of_request(
                snapshot, request, decision.destination
            )
        except exception.BadQuery as exc:
            rejected = f'{exc}.'
            explanation = explain.rejected(snapshot)
        advice: list[Advice] = []
        not_known = question.not_known
        if not any(v.is_candidate for v in explanation.verdicts):
            advice, not_known = self._mendings(question)
        # Nova does not query Placement for a request that is refused.
        is_refused = decision.too_long or decision.destination.refusals
        if not is_refused and not rejected:
            rejected = rejection(snapshot, asking.first(decision, request))
        answer = _Answer(
            explanation,
            decision,
            advice,
            not_known,
            rejection=rejected,
            is_refused=bool(is_refused or rejected),
            is_of_server=args.server is not None,
            is_in_groups=args.formatter == 'table' and not args.hosts,
        )
        if answer.is_refused:
            return answer
        limit = request_arguments.limit_from(args, self.app.conf)
        return dataclasses.replace(
            answer,
            scheduling=scheduling(
                snapshot, asking.every(decision, request, limit)
            ),
            difference=comparison.difference(
                cloud, request, decision, snapshot
            ),
        )

    def _mendings(
        self, question: request_arguments.Question
    ) -> tuple[list[Advice], NotKnown]:
        """Return how to give the request a host, and whom that lets in.

        :returns: Also what is not known.
        """
        pipeline = chain.as_in_nova(self.app.conf)
        filters = Pipeline(loading.load(self.app.conf))
        cloud = question.cloud
        snapshot = cloud.snapshot
        not_known = question.not_known
        try:
            # That of a live cloud has only what decides about this request.
            snapshot = dataclasses.replace(
                snapshot, flavors=cloud.flavors, images=cloud.images
            )
        except exception.ServiceError as exc:
            not_known = dataclasses.replace(
                not_known,
                sentences=(
                    *not_known.sentences,
                    'which flavors and images there are, so that nothing is '
                    f'corrected in them: {str(exc).removesuffix(".")}',
                ),
            )
        requests = Requests(cloud, self.app.conf)
        effects = Effects(snapshot, pipeline, filters, requests)
        mending = mendings(effects, question.request)
        return list(effects.advice(mending)), not_known


@dataclasses.dataclass(frozen=True)
class _Answer:
    """The explanation, and what else there is to say about a request.

    :param rejection: Why Placement rejects the query; None if it does not.
    :param is_refused: Whether Nova or Placement refuses the request.
    :param is_in_groups: Whether hosts with the same reasons share a row.
    """

    explanation: explain.Explanation
    decision: Decision
    advice: Sequence[Advice]
    not_known: NotKnown
    rejection: str | None
    is_refused: bool
    is_of_server: bool
    is_in_groups: bool
    scheduling: nova_candidates.Scheduling = nova_candidates.NORMAL
    difference: comparison.Difference | None = None

    @lazy_property
    def _left_out(self) -> frozenset[str]:
        return self.difference.roots if self.difference else frozenset()

    @lazy_property
    def _nodes(self) -> Mapping[str, int]:
        return Counter(each.host for each in self.explanation.verdicts)

    def parted(
        self, verdicts: Iterable[explain.Verdict]
    ) -> tuple[list[explain.Verdict], list[explain.Verdict]]:
        """Return the hosts that Placement leaves out, and the others."""
        left_out: list[explain.Verdict] = []
        others: list[explain.Verdict] = []
        for each in verdicts:
            is_left_out = each.provider in self._left_out
            (left_out if is_left_out else others).append(each)
        return left_out, others

    def row(self, group: groups.HostGroup) -> Sequence[Any]:
        hosts = list(map(self.name, group.verdicts))
        lines = [ranges.folded(hosts, _WIDTH)]
        if len(hosts) > _FEW:
            lines.append(f'({len(hosts)} hosts)')
        return (
            output.Lines(lines),
            self.word(group.verdicts[0]),
            output.Lines(group.reasons or self.reasons(group.verdicts[0])),
        )

    def may_be_used(self, verdict: explain.Verdict) -> bool:
        """Return whether Placement really offers a host."""
        return verdict.is_candidate and verdict.provider not in self._left_out

    def word(self, verdict: explain.Verdict) -> str:
        return 'candidate' if self.may_be_used(verdict) else 'excluded'

    def reasons(self, verdict: explain.Verdict) -> list[str]:
        if verdict.is_candidate and verdict.provider in self._left_out:
            return [_LEFT_OUT]
        if verdict.by_fallback:
            return [_BY_FALLBACK]
        return [reason.text for reason in verdict.reasons]

    def name(self, verdict: explain.Verdict) -> str:
        if self._nodes[verdict.host] == 1:
            return verdict.host
        # A compute service for bare metal has many nodes.
        return f'{verdict.host} ({verdict.node})'

    def document(
        self, shown: Iterable[explain.Verdict]
    ) -> documents.Explanation:
        explanation = self.explanation
        return documents.Explanation(
            summary=documents.ExplainSummary(
                hosts=len(explanation.verdicts),
                candidates=self._usable_hosts,
                rejected=self.rejection,
                not_known=tuple(self.not_known.sentences),
                placement_differs=comparison.document(self.difference),
                **self.scheduling.document(),
                left_to_host_filters=request_arguments.left_document(
                    self.decision
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
                    for one in self.advice
                ),
            ),
            hosts=tuple(
                documents.ExplainedHost(
                    name=verdict.host,
                    node=verdict.node,
                    uuid=verdict.provider,
                    verdict=self.word(verdict),
                    reasons=tuple(self.reasons(verdict)),
                )
                for verdict in shown
            ),
        )

    def lines(self) -> Iterable[str]:
        """Yield the summary."""
        explanation = self.explanation
        hosts = len(explanation.verdicts)
        if not hosts:
            yield 'There are no compute hosts.'
            return
        yield f'{self._usable_hosts} of {counted(hosts, "host")} may be used.'
        yield from request_arguments.rejected_lines(self.rejection)
        yield from comparison.lines(self.difference)
        yield from self.scheduling.lines()
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
        yield from request_arguments.left_lines(self.decision)
        yield from self.not_known.lines()

    def _advised(self) -> Iterable[str]:
        for is_tried, title in (
            (True, 'Any one of these gives it a host:'),
            (False, 'What no command here can try:'),
        ):
            some = [one for one in self.advice if one.is_tried is is_tried]
            if some:
                yield ''
                yield title
            for advice in some:
                yield from advised.lines('  ', advice)
            if some and is_tried and self.is_of_server:
                yield (
                    'A server has copies of its flavor and image; after a '
                    'change of these, create, resize or rebuild it again.'
                )

    def _counts(self) -> Iterable[groups.CountGroup]:
        if self.is_in_groups:
            return groups.counts(self.explanation)
        return (
            groups.CountGroup((count.cause,), count.excludes, count.only)
            for count in self.explanation.counts
            if count.excludes
        )

    def _ways(self) -> Sequence[Sequence[str]]:
        if self.is_in_groups:
            return groups.remedies(self.explanation)
        return [
            [requirement.label for requirement in remedy]
            for remedy in self.explanation.remedies
        ]

    @property
    def _usable_hosts(self) -> int:
        return sum(map(self.may_be_used, self.explanation.verdicts))


def _rest(rest: Sequence[groups.HostGroup]) -> Iterable[str]:
    """Yield how many hosts have no row."""
    if rest:
        hosts = sum(len(group.verdicts) for group in rest)
        yield (
            f'{counted(hosts, "more host")} for '
            f'{counted(len(rest), "other combination")} of reasons; '
            '--hosts shows each host.'
        )


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
