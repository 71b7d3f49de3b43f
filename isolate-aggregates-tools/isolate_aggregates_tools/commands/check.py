# SPDX-License-Identifier: Apache-2.0
"""``check``: says whether a server may use a host."""

import argparse

from isolate_aggregates import exception
from isolate_aggregates_tools import comparison, errors, explain
from isolate_aggregates_tools.capacity import rejection
from isolate_aggregates_tools.cli import output
from isolate_aggregates_tools.cli.exit_status import ExitStatus
from isolate_aggregates_tools.commands import check_documents as documents
from isolate_aggregates_tools.commands import request_arguments
from isolate_aggregates_tools.commands.request_arguments import Question
from isolate_aggregates_tools.request import asking

_LEFT_OUT = 'Placement does not offer it, although it should'


class CheckHost(output.Lister):
    """Say whether a server may use a host, and why not.

    The answer is yes or no with one reason, and the exit status 0 or 4.
    explain has all reasons, for all hosts.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        request_arguments.add_arguments(parser, server=True)
        return parser

    def report(self, args: argparse.Namespace) -> output.Report:
        host = args.host
        if not host:
            self._usage.error('--host is required')
        # The question is not narrowed to the host: that would be a reason of
        # its own for all others.
        everywhere = argparse.Namespace(**{**vars(args), 'host': None})
        with request_arguments.opened(self.app, everywhere) as question:
            reason = _reason(question, host)
        verdict = 'excluded' if reason else 'candidate'
        return output.Report(
            document=lambda: documents.CheckedHost(
                host=host, verdict=verdict, reason=reason or None
            ),
            columns=('Host', 'Verdict', 'Reason'),
            rows=[(host, verdict, reason)],
            text=[f'no: {reason}' if reason else 'yes'],
            status=ExitStatus.NO if reason else ExitStatus.DONE,
        )


def _reason(question: Question, host: str) -> str:
    """Return why a server may not use a host; empty if it may."""
    request, decision = question.request, question.decision
    snapshot = question.cloud.snapshot_for(
        asking.named(decision), asking.amounts(request)
    )
    try:
        verdicts = explain.of_request(
            snapshot, request, decision.destination
        ).verdicts
    except exception.BadQuery as exc:
        return str(exc)
    # A compute service for bare metal has many nodes.
    nodes = [each for each in verdicts if host in (each.host, each.node)]
    if not nodes:
        known = sorted({each.host for each in verdicts})
        raise errors.NotFound('host', host, snapshot.origin, known)
    open_nodes = [each for each in nodes if each.is_candidate]
    if not open_nodes:
        return nodes[0].reasons[0].text
    # Nova does not query Placement for a request that is refused.
    query = asking.first(decision, request)
    if rejected := rejection(snapshot, query):
        return rejected
    differs = comparison.difference(
        question.cloud, request, decision, snapshot
    )
    left_out = differs.roots if differs else frozenset()
    if all(each.provider in left_out for each in open_nodes):
        return _LEFT_OUT
    return ''
