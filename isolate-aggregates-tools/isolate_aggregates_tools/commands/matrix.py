# SPDX-License-Identifier: Apache-2.0
"""``matrix list``: shows which flavors and images may use which hosts."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
import dataclasses

from isolate_aggregates import filter_sets
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.text import listed
from isolate_aggregates_tools import ranges
from isolate_aggregates_tools.answers.requests import Requests
from isolate_aggregates_tools.cli import base, output
from isolate_aggregates_tools.cloud.cloud import Cloud
from isolate_aggregates_tools.commands import clouds, request_documents
from isolate_aggregates_tools.matrix import columns
from isolate_aggregates_tools.matrix.matrix import (
    Matrix,
    Objection,
    Row,
    matrix,
    requests,
)
from isolate_aggregates_tools.mirrored import chain

# Printed instead of a table that would have no columns except the flavors.
_NO_COLUMNS = {
    'host': 'There are no compute hosts.',
    'aggregate': 'There are no aggregates.',
    'lock': 'There are no locks and no compute hosts.',
}


def add_row_arguments(
    parser: argparse.ArgumentParser, use_of_images: str
) -> None:
    """Add the arguments for images and project, which apply to each flavor.

    :param use_of_images: A sentence of the help.
    """
    parser.add_argument(
        '--image',
        action='append',
        default=[],
        dest='images',
        metavar='<image>',
        help=f'Name or id; may be repeated. {use_of_images}',
    )
    base.add_project_arguments(parser)


class ShowMatrix(output.ReportLister):
    """Show which flavors and images may use which hosts.

    That is what the cloud would offer if every host was empty. As a table,
    hosts that the same requests may use share a column; --long names them
    below. As json or yaml: one document with the reasons. As csv or value,
    each host has a column.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--flavor',
            action='append',
            dest='flavors',
            metavar='<flavor>',
            help='Name or id; may be repeated. Default: all flavors',
        )
        add_row_arguments(
            parser,
            'Each flavor is shown with each image; default: without an image',
        )
        parser.add_argument(
            '--by',
            choices=tuple(_NO_COLUMNS),
            default='host',
            help='What each column stands for; default: host',
        )
        base.add_snapshot_argument(parser)
        return parser

    def report(self, args: argparse.Namespace) -> output.Report:
        conf = self.app.conf
        with clouds.opened(self.app, args, remembers=True) as cloud:
            filters = chain.as_in_nova(conf)
            questions = requests(
                Requests(cloud, conf),
                [cloud.flavor(name) for name in args.flavors]
                if args.flavors
                else cloud.flavors,
                [cloud.image(name) for name in args.images],
                base.project_from(args, cloud),
            )
            locks = filter_sets.locks(conf, cloud.index)
            found = matrix(cloud.snapshot, filters, questions, locks)
            nowhere = self._without_host(cloud, filters, found)
            clouds.warn_if_unguarded(cloud, conf)
        if args.by == 'aggregate':
            shown = columns.by_aggregate(found, cloud.index)
        elif args.by == 'lock':
            shown = columns.by_lock(found, locks)
        elif args.formatter in ('csv', 'value'):
            shown = columns.by_host(found)
        else:
            shown = columns.alike(found)
        answer = _Answer(found, args.by, shown, nowhere)
        about = ['Flavor', 'Image'] if args.images else ['Flavor']
        rows = [answer.row(row) for row in found.rows]
        nothing = 'There are no flavors.'
        if rows and not shown and args.formatter == 'table':
            nothing = _NO_COLUMNS[args.by]
            rows = []
        return output.Report(
            document=answer.document,
            columns=(*about, *(column.name for column in shown)),
            rows=rows,
            after=answer.lines(args.long),
            nothing=nothing,
        )

    def _without_host(
        self, cloud: Cloud, filters: Pipeline, found: Matrix
    ) -> Mapping[str, str]:
        """Return the flavors that no host could ever take, and why."""
        flavors = {
            row.request.flavor
            for row in found.rows
            if found.groups and len(row.closed) == len(found.groups)
        }
        if not flavors:
            return {}
        # Imported late: most clouds do not need it.
        from isolate_aggregates_tools.diagnosis.causes import Causes
        from isolate_aggregates_tools.diagnosis.spelling.known import (
            KnownNames,
        )
        from isolate_aggregates_tools.diagnosis.unplaceable import Nowhere

        snapshot = cloud.snapshot
        every = Pipeline(loading.load(self.app.conf))
        nowhere = Nowhere(
            Causes(snapshot, filters, KnownNames(snapshot, filters, every)),
            Requests(cloud, self.app.conf),
        )
        return {
            flavor.name: why.problem
            for flavor in sorted(flavors, key=lambda flavor: flavor.name)
            if (why := nowhere.why(flavor))
        }


@dataclasses.dataclass(frozen=True)
class _Answer:
    """The matrix, and what there is to say about it.

    :param by: What each column stands for.
    :param nowhere: The flavors that no host could ever take, and why.
    """

    matrix: Matrix
    by: str
    columns: Sequence[columns.Column]
    nowhere: Mapping[str, str]

    def document(self) -> request_documents.Matrix:
        return request_documents.Matrix(
            by=self.by,
            groups=tuple(
                request_documents.Group(hosts=tuple(group.hosts))
                for group in self.matrix.groups
            ),
            columns=tuple(
                request_documents.Column(
                    name=c.name, hosts=c.hosts, groups=c.groups
                )
                for c in self.columns
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
                        columns.access(row, c).value for c in self.columns
                    ),
                    no_host=self.nowhere.get(row.request.flavor.name),
                    reasons=_reasons(row.objections),
                    not_enforced=_reasons(row.unenforced),
                )
                for row in self.matrix.rows
            ),
        )

    def lines(self, is_long: bool) -> Iterable[str]:
        """Yield notes on flavors, what is not enforced, and the hosts."""
        for name, why in self.nowhere.items():
            yield f'No host could ever take flavor {name}: it {why}.'
        flavors = {row.request.flavor for row in self.matrix.rows}
        for flavor in sorted(flavors, key=lambda flavor: flavor.name):
            if not flavor.is_public:
                projects = listed(flavor.projects, None) or 'no project'
                yield f'Flavor {flavor.name} is private, for {projects}.'
        unenforced: dict[str, set[str]] = {}
        for row in self.matrix.rows:
            for objection, places in columns.reasons(row.unenforced).items():
                unenforced.setdefault(objection.text, set()).update(
                    host
                    for place in places
                    for host in self.matrix.groups[place].hosts
                )
        if unenforced:
            yield ''
            yield 'Not enforced, because Placement lacks memberships (sync):'
        for text, hosts in unenforced.items():
            yield f'  {ranges.folded(hosts)}: {text}'
        yield from self._hosts(is_long)

    def _hosts(self, is_long: bool) -> Iterable[str]:
        """Yield the hosts of each column, or how to show them."""
        columns_by_name = [
            (column.name, ', '.join(column.hosts)) for column in self.columns
        ]
        merged = [
            (name, hosts) for name, hosts in columns_by_name if hosts != name
        ]
        if not merged or not self.matrix.rows:
            return
        yield ''
        if is_long:
            yield from (f'{name}: {hosts or "none"}' for name, hosts in merged)
        else:
            yield '--long names the hosts of each column.'

    def row(self, row: Row) -> list[str]:
        image = [row.request.image.name] if row.request.image else []
        access = (columns.access(row, c).value for c in self.columns)
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
