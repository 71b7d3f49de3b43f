# SPDX-License-Identifier: Apache-2.0
"""``filter list``: lists the request filters."""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import Any

from isolate_aggregates.tools.cli import base, output
from isolate_aggregates.tools.mirrored import chain


class ListFilters(output.Lister):
    """Show the installed request filters, and whether they run.

    Those that run come first, in the order in which they run. As csv, value,
    json or yaml, and with -c Origin, the package and the class of each.
    """

    app: Any
    # The values of Origin are too long for most terminals.
    for_people = ('Name', 'Enabled', 'Note')

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        base.add_snapshot_argument(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        # A cloud file may set which filters run.
        with base.opened(self.app, parsed_args):
            rows = map(astuple, chain.installed_filters(self.app.conf))
        return ('Name', 'Enabled', 'Note', 'Origin'), rows
