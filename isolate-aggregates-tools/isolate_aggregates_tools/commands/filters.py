# SPDX-License-Identifier: Apache-2.0
"""``filter list``: lists the request filters."""

import argparse
from dataclasses import astuple

from isolate_aggregates_tools.cli import base, output
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.mirrored import chain


class ListFilters(output.Lister):
    """Show the installed request filters, and whether they run.

    Those that run come first, in the order in which they run. As csv, value,
    json or yaml, also the filters of Nova that the commands reproduce, and the
    package and the class of each.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--long',
            action='store_true',
            help='List also the filters of Nova that the commands reproduce',
        )
        base.add_snapshot_argument(parser)
        return parser

    def report(self, args: argparse.Namespace) -> output.Report:
        # A cloud file may set which filters run.
        with clouds.opened(self.app, args):
            whole = args.long or args.formatter != 'table'
            filters = chain.installed_filters(self.app.conf, whole)
        return output.Report(
            document=None,
            columns=('Name', 'Enabled', 'Note', 'Origin'),
            rows=map(astuple, filters),
            # The values of Origin are too long for most terminals.
            people=('Name', 'Enabled', 'Note'),
            after=()
            if whole
            else [
                f'{len(chain.MIRRORS)} filters of Nova that the commands '
                'reproduce are not listed; use --long.'
            ],
        )
