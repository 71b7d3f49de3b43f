# SPDX-License-Identifier: Apache-2.0
"""``lock show``: everything about one lock, aggregate or host."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from isolate_aggregates import filter_sets
from isolate_aggregates_tools.cli import base, output
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.documents import content
from isolate_aggregates_tools.locks import details


class ShowDetails(output.ShowOne):
    """Show everything about one lock, aggregate or host.

    If a lock does not work, the output says why.
    """

    app: Any

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'name',
            metavar='<name>',
            help='Lock (its metadata key or its trait), aggregate (name, uuid '
            'or number), or host',
        )
        parser.add_argument(
            '--kind',
            choices=details.KINDS,
            help='Kind of the object, if several have the same name',
        )
        base.add_snapshot_argument(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        with clouds.opened(self.app, parsed_args, remembers=True) as cloud:
            locks = filter_sets.locks(self.app.conf, cloud.index)
            description = details.Details(cloud, locks, self.app.conf).find(
                parsed_args.name, parsed_args.kind
            )
            clouds.warn_if_unguarded(cloud, self.app.conf)
        found = content(description)
        if parsed_args.formatter not in output.DOCUMENTS:
            # Unlike an empty list, these do not apply.
            for name in ('flavors', 'images', 'sent_flavors'):
                if found.get(name, ()) is None:
                    del found[name]
            if not found.get('unusable_hosts', True):
                del found['unusable_hosts']
        return tuple(found), [output.field(v) for v in found.values()]
