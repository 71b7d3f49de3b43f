# SPDX-License-Identifier: Apache-2.0
"""``capacity``: shows how many more servers of a flavor fit."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from isolate_aggregates.cli import asking, differences, output
from isolate_aggregates.inspect import comparison
from isolate_aggregates.inspect.capacity import fitting_servers


class ListCapacity(output.ReportLister):
    """Show how many more servers of a flavor fit, in total and on each host.

    The servers are placed one by one on a copy of the cloud in memory; the
    cloud itself is only read. As json or yaml: one document with total and
    hosts. As csv or value: only the hosts.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        asking.add_arguments(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        with asking.asked(self.app, parsed_args) as asked:
            query = asked.decision.query(asked.request)
            self._found = fitting_servers(
                asked.cloud.snapshot, query, asked.decision.destination
            )
            self._difference = comparison.difference(
                asked.cloud, asked.request, asked.decision
            )
            self._not_known = asked.not_known
        rows = [(one.host, one.servers) for one in self._found]
        return ('Host', 'Servers'), rows

    @property
    def _total(self) -> int:
        return sum(one.servers for one in self._found)

    def document(self) -> dict[str, Any]:
        return {
            'total': self._total,
            'not_known': list(self._not_known.sentences),
            'placement_differs': differences.document(self._difference),
            'hosts': [
                {
                    'name': one.host,
                    'uuid': one.provider,
                    'servers': one.servers,
                }
                for one in self._found
            ],
        }

    def before(self) -> Iterable[str]:
        """Yield the total."""
        rules = (
            " according to Placement's documentation"
            if self._difference
            else ''
        )
        hint = '' if self._total else ' Use explain to see why.'
        yield f'{self._total} more such servers fit{rules}.{hint}'
        yield from differences.lines(self._difference)
        not_known = list(self._not_known.lines())
        if self._found or not_known:
            yield ''
        yield from not_known
