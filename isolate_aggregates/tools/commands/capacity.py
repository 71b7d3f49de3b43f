# SPDX-License-Identifier: Apache-2.0
"""``capacity list``: shows how many more servers of a flavor fit."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from isolate_aggregates.text import counted
from isolate_aggregates.tools import comparison, taken
from isolate_aggregates.tools.capacity import (
    fitting_servers,
    rejection,
    scheduling,
)
from isolate_aggregates.tools.cli import output
from isolate_aggregates.tools.cli.exit_status import ExitStatus
from isolate_aggregates.tools.commands import (
    request_arguments,
    request_documents,
)
from isolate_aggregates.tools.request import asking


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

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Show it; return the exit status."""
        code = super().run(parsed_args)
        return ExitStatus.NO if self._rejection else code

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        with request_arguments.opened(self.app, parsed_args) as question:
            limit = request_arguments.limit_from(parsed_args, self.app.conf)
            queries = asking.every(question.decision, question.request, limit)
            query, *fallbacks = queries
            snapshot = question.cloud.snapshot
            self._rejection = rejection(snapshot, query)
            self._fits = (
                ()
                if self._rejection
                else fitting_servers(
                    snapshot,
                    query,
                    question.decision.destination,
                    fallbacks,
                )
            )
            self._difference = (
                None
                if self._rejection
                else comparison.difference(
                    question.cloud, question.request, question.decision
                )
            )
            self._scheduling = (
                taken.NORMAL
                if self._rejection
                else scheduling(snapshot, queries)
            )
            self._not_known = question.not_known
        rows = [(entry.host, entry.servers) for entry in self._fits]
        return ('Host', 'Servers'), rows

    @property
    def _total(self) -> int:
        return sum(entry.servers for entry in self._fits)

    def document(self) -> request_documents.Capacity:
        return request_documents.Capacity(
            total=self._total,
            rejected=self._rejection,
            not_known=tuple(self._not_known.sentences),
            placement_differs=comparison.document(self._difference),
            **self._scheduling.document(),
            hosts=tuple(
                request_documents.Fit(
                    name=entry.host,
                    uuid=entry.provider,
                    servers=entry.servers,
                    depends_on_candidates=entry.depends,
                )
                for entry in self._fits
            ),
        )

    def before(self) -> Iterable[str]:
        """Yield the total."""
        rules = (
            " according to Placement's documentation"
            if self._difference
            else ''
        )
        hint = '' if self._total else ' Use explain to see why.'
        number = self._total or 'No'
        yield f'{number} more servers of this flavor fit{rules}.{hint}'
        yield from request_arguments.rejected_lines(self._rejection)
        yield from comparison.lines(self._difference)
        yield from self._scheduling.lines()
        depends = sum(entry.depends for entry in self._fits)
        if depends:
            yield ''
            yield (
                f'On {counted(depends, "host")} Nova may take other '
                'candidates than those counted; then more or fewer servers '
                'may fit.'
            )
        not_known = list(self._not_known.lines())
        if self._fits or not_known:
            yield ''
        yield from not_known
