# SPDX-License-Identifier: Apache-2.0
"""``matrix list``: shows which flavors and images may use which hosts."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.text import listed
from isolate_aggregates.tools import filter_sets, ranges
from isolate_aggregates.tools.answers.requests import Requests
from isolate_aggregates.tools.cli import base, output
from isolate_aggregates.tools.cloud.cloud import Cloud
from isolate_aggregates.tools.commands import request_documents
from isolate_aggregates.tools.matrix import columns
from isolate_aggregates.tools.matrix.matrix import (
    Objection,
    Row,
    matrix,
    requests,
)
from isolate_aggregates.tools.mirrored import chain

# Printed instead of a table that would have no columns except the flavors.
_NO_COLUMNS = {
    'host': 'There are no compute hosts.',
    'aggregate': 'There are no aggregates.',
    'lock': 'There are no locks and no compute hosts.',
}


def add_row_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for images and project, which apply to each flavor."""
    parser.add_argument(
        '--image',
        action='append',
        default=[],
        dest='images',
        metavar='<image>',
        help='Name or id; may be repeated. Each flavor is shown with each '
        'image; default: without an image',
    )
    base.add_project_arguments(parser)


class ShowMatrix(output.ReportLister):
    """Show which flavors and images may use which hosts.

    That is what the cloud would offer if every host was empty. As a table,
    hosts that the same requests may use share a column; --long names them
    below. As json or yaml: one document with the reasons. As csv or value,
    each host has a column.
    """

    nothing = 'There are no flavors.'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--flavor',
            action='append',
            dest='flavors',
            metavar='<flavor>',
            help='Name or id; may be repeated. Default: all flavors',
        )
        add_row_arguments(parser)
        parser.add_argument(
            '--by',
            choices=tuple(_NO_COLUMNS),
            default='host',
            help='What each column stands for; default: host',
        )
        base.add_snapshot_argument(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        conf = self.app.conf
        with base.opened(self.app, parsed_args) as cloud:
            filters = chain.as_in_nova(conf)
            questions = requests(
                Requests(cloud, conf),
                [cloud.flavor(name) for name in parsed_args.flavors]
                if parsed_args.flavors
                else cloud.flavors,
                [cloud.image(name) for name in parsed_args.images],
                base.project_from(parsed_args, cloud),
            )
            locks = filter_sets.locks(conf, cloud.index)
            self._matrix = matrix(cloud.snapshot, filters, questions, locks)
            self._nowhere = self._without_host(cloud, filters)
            base.warn_if_unguarded(cloud, conf)
        self._by = parsed_args.by
        if parsed_args.by == 'aggregate':
            self._columns = columns.by_aggregate(self._matrix, cloud.index)
        elif parsed_args.by == 'lock':
            self._columns = columns.by_lock(self._matrix, locks)
        elif parsed_args.formatter in ('csv', 'value'):
            self._columns = columns.by_host(self._matrix)
        else:
            self._columns = columns.alike(self._matrix)
        names = [column.name for column in self._columns]
        about = ['Flavor', 'Image'] if parsed_args.images else ['Flavor']
        rows = [self._row(row) for row in self._matrix.rows]
        if rows and not names and parsed_args.formatter == 'table':
            self.nothing = _NO_COLUMNS[parsed_args.by]
            rows = []
        return (*about, *names), rows

    def _without_host(
        self, cloud: Cloud, filters: Pipeline
    ) -> Mapping[str, str]:
        """Return the flavors that no host could ever take, and why."""
        flavors = {
            row.request.flavor
            for row in self._matrix.rows
            if row.objections and all(row.objections)
        }
        if not flavors:
            return {}
        # Imported late: most clouds do not need it.
        from isolate_aggregates.tools.advice.causes import Causes
        from isolate_aggregates.tools.advice.nowhere import Nowhere
        from isolate_aggregates.tools.advice.spelling import Speller

        snapshot = cloud.snapshot
        every = Pipeline(loading.load(self.app.conf))
        nowhere = Nowhere(
            Causes(snapshot, filters, Speller(snapshot, filters, every)),
            Requests(cloud, self.app.conf),
        )
        return {
            flavor.name: why.problem
            for flavor in sorted(flavors, key=lambda flavor: flavor.name)
            if (why := nowhere.why(flavor))
        }

    def document(self) -> request_documents.Matrix:
        return request_documents.Matrix(
            by=self._by,
            groups=tuple(
                request_documents.Group(hosts=tuple(group.hosts))
                for group in self._matrix.groups
            ),
            columns=tuple(
                request_documents.Column(
                    name=c.name, hosts=c.hosts, groups=c.groups
                )
                for c in self._columns
            ),
            rows=tuple(
                request_documents.Row(
                    flavor=row.request.flavor.name,
                    projects=None
                    if row.request.flavor.is_public
                    else tuple(sorted(row.request.flavor.projects)),
                    image=row.request.image.name
                    if row.request.image
                    else None,
                    verdicts=tuple(
                        columns.access(row, c).value for c in self._columns
                    ),
                    no_host=self._nowhere.get(row.request.flavor.name),
                    reasons=_reasons(row.objections),
                    not_enforced=_reasons(row.unenforced),
                )
                for row in self._matrix.rows
            ),
        )

    def after(self) -> Iterable[str]:
        """Yield notes on flavors, what is not enforced, and the hosts."""
        for name, why in self._nowhere.items():
            yield f'No host could ever take flavor {name}: it {why}.'
        flavors = {row.request.flavor for row in self._matrix.rows}
        for flavor in sorted(flavors, key=lambda flavor: flavor.name):
            if not flavor.is_public:
                projects = listed(flavor.projects, None) or 'no project'
                yield f'Flavor {flavor.name} is private, for {projects}.'
        unenforced: dict[str, set[str]] = {}
        for row in self._matrix.rows:
            for objection, places in columns.reasons(row.unenforced).items():
                unenforced.setdefault(objection.text, set()).update(
                    host
                    for place in places
                    for host in self._matrix.groups[place].hosts
                )
        if unenforced:
            yield ''
            yield 'Not enforced, because Placement lacks memberships (sync):'
        for text, hosts in unenforced.items():
            yield f'  {ranges.folded(hosts)}: {text}'
        yield from self._hosts()

    def _hosts(self) -> Iterable[str]:
        """Yield the hosts of each column, or how to show them."""
        columns_by_name = [
            (column.name, ', '.join(column.hosts)) for column in self._columns
        ]
        merged = [
            (name, hosts) for name, hosts in columns_by_name if hosts != name
        ]
        if not merged or not self._matrix.rows:
            return
        yield ''
        if self.is_long:
            yield from (f'{name}: {hosts or "none"}' for name, hosts in merged)
        else:
            yield '--long names the hosts of each column.'

    def _row(self, row: Row) -> list[str]:
        image = [row.request.image.name] if row.request.image else []
        access = (columns.access(row, c).value for c in self._columns)
        return [row.request.flavor.name, *image, *access]


def _reasons(
    cells: Iterable[Iterable[Objection]],
) -> tuple[request_documents.Objection, ...]:
    return tuple(
        request_documents.Objection(
            filter=objection.filter_name,
            kind=objection.kind,
            reason=objection.text,
            groups=tuple(places),
        )
        for objection, places in columns.reasons(cells).items()
    )
