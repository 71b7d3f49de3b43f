# SPDX-License-Identifier: Apache-2.0
"""``capacity list``: shows how many more servers of a flavor fit."""

import argparse
from collections.abc import Iterable, Sequence
import dataclasses

from isolate_aggregates.text import counted
from isolate_aggregates_tools import comparison, nova_candidates
from isolate_aggregates_tools.capacity import (
    HostFit,
    fitting_servers,
    rejection,
    scheduling,
)
from isolate_aggregates_tools.cli import output
from isolate_aggregates_tools.cli.exit_status import ExitStatus
from isolate_aggregates_tools.commands import (
    request_arguments,
    request_documents,
)
from isolate_aggregates_tools.request import asking


class ListCapacity(output.ReportLister):
    """Show how many more servers of a flavor fit, in total and on each host.

    The servers are placed one by one on a copy of the cloud in memory; the
    cloud itself is only read. Each server takes the first candidate of its
    host. If a host has several, as with nested resource providers, Nova may
    take others, and then more or fewer servers may fit. What hosts share,
    such as storage, is taken by the first of them: a host that is not listed
    may be a candidate all the same. As json or yaml: one document with total
    and hosts. As csv or value: only the hosts.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        request_arguments.add_arguments(parser)
        return parser

    def report(self, args: argparse.Namespace) -> output.Report:
        with request_arguments.opened(self.app, args) as question:
            limit = request_arguments.limit_from(args, self.app.conf)
            queries = asking.every(question.decision, question.request, limit)
            query, *fallbacks = queries
            snapshot = question.cloud.snapshot
            if rejected := rejection(snapshot, query):
                answer = _Answer(question.not_known, rejected)
            else:
                answer = _Answer(
                    question.not_known,
                    None,
                    fitting_servers(
                        snapshot,
                        query,
                        question.decision.destination,
                        fallbacks,
                    ),
                    comparison.difference(
                        question.cloud,
                        question.request,
                        question.decision,
                        snapshot,
                    ),
                    scheduling(snapshot, queries),
                )
        return output.Report(
            document=answer.document,
            columns=('Host', 'Servers'),
            rows=[(entry.host, entry.servers) for entry in answer.fits],
            before=answer.lines(),
            status=ExitStatus.NO if rejected else ExitStatus.DONE,
        )


@dataclasses.dataclass(frozen=True)
class _Answer:
    """How many servers fit, and what there is to say about it.

    :param rejection: Why Placement rejects the query; None if it does not.
    """

    not_known: request_arguments.NotKnown
    rejection: str | None
    fits: Sequence[HostFit] = ()
    difference: comparison.Difference | None = None
    scheduling: nova_candidates.Scheduling = nova_candidates.NORMAL

    @property
    def _total(self) -> int:
        return sum(entry.servers for entry in self.fits)

    def document(self) -> request_documents.Capacity:
        return request_documents.Capacity(
            total=self._total,
            rejected=self.rejection,
            not_known=tuple(self.not_known.sentences),
            placement_differs=comparison.document(self.difference),
            **self.scheduling.document(),
            hosts=tuple(
                request_documents.Fit(
                    name=entry.host,
                    uuid=entry.provider,
                    servers=entry.servers,
                    depends_on_candidates=entry.depends,
                )
                for entry in self.fits
            ),
        )

    def lines(self) -> Iterable[str]:
        """Yield the total."""
        rules = (
            " according to Placement's documentation"
            if self.difference
            else ''
        )
        hint = '' if self._total else ' Use explain to see why.'
        number = self._total or 'No'
        yield f'{number} more servers of this flavor fit{rules}.{hint}'
        yield from request_arguments.rejected_lines(self.rejection)
        yield from comparison.lines(self.difference)
        yield from self.scheduling.lines()
        depends = sum(entry.depends for entry in self.fits)
        if depends:
            yield ''
            yield (
                f'On {counted(depends, "host")} Nova may take other '
                'candidates than those counted; then more or fewer servers '
                'may fit. Servers of a single request all get the same '
                'candidate, so fewer may fit.'
            )
        not_known = list(self.not_known.lines())
        if self.fits or not_known:
            yield ''
        yield from not_known
