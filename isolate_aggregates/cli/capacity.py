# SPDX-License-Identifier: Apache-2.0
"""``capacity``: how many more such servers fit."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from isolate_aggregates.cli import base, output
from isolate_aggregates.filters import loading
from isolate_aggregates.inspect import candidates, capacity


class ListCapacity(output.ReportLister):
    """Show how many more such servers fit, in total and on each host.

    They are packed one by one into a picture of the cloud, so production is
    only read. As json or yaml: one document with total and hosts. As csv or
    value: the hosts alone.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        base.add_request_arguments(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Pack the servers."""
        with base.opened(self.app, parsed_args) as cloud:
            pipeline = loading.as_in_nova(self.app.conf)
            request = base.request_from(parsed_args, cloud)
            query = candidates.decide_on(
                cloud, pipeline, request, base.max_length_from(self.app.conf)
            ).query(request)
            self._found = capacity.capacity(cloud.snapshot, query)
            base.warn_if_unguarded(cloud, self.app.conf)
        rows = [(one.host, one.servers) for one in self._found]
        return ('Host', 'Servers'), rows

    @property
    def _total(self) -> int:
        return sum(one.servers for one in self._found)

    def document(self) -> dict[str, Any]:
        """Return the total and the hosts."""
        return {
            'total': self._total,
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
        yield f'{self._total} more such servers fit.'
        yield ''
