# SPDX-License-Identifier: Apache-2.0
"""Writes rows and reports in every output format."""

import argparse
from collections.abc import Iterable, Sequence
import contextlib
from typing import Any

from cliff import lister, show
from cliff.formatters import json_format, yaml_format

from isolate_aggregates import exception
from isolate_aggregates.cli import fields, terminal, usage
from isolate_aggregates.text import all_escaped, escaped, meant, unabridged

# The formats that can contain more than rows.
_DOCUMENT_FORMATTERS: dict[str, Any] = {
    'json': json_format.JSONFormatter,
    'yaml': yaml_format.YAMLFormatter,
}


class Lister(usage.Command, lister.Lister):
    """Lists rows, with texts escaped for terminals.

    For json and yaml, texts are not escaped here; the formatter does it. The
    text ``nothing`` replaces a table without rows. A table has only the
    columns in ``for_people``, unless it is empty or ``-c`` is given.
    """

    app: Any
    nothing = ''
    for_people: Sequence[str] = ()

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
    ) -> int:
        data = list(data)
        if (
            not data
            and parsed_args.formatter == 'table'
            and not parsed_args.print_empty
        ):
            self._write([self.nothing] if self.nothing else ())
            return 0
        if parsed_args.formatter not in _DOCUMENT_FORMATTERS:
            column_names = all_escaped(column_names)
            # In value, only spaces separate cells; an empty one would be lost.
            nothing = '-' if parsed_args.formatter == 'value' else ''
            data = [_written(row, parsed_args, nothing) for row in data]
        if parsed_args.formatter == 'table' and not parsed_args.columns:
            parsed_args.columns = list(self.for_people)
        _prepare(self, parsed_args, column_names)
        super().produce_output(parsed_args, column_names, data)
        return 0

    def _write(self, lines: Iterable[str]) -> None:
        stdout = self.app.stdout
        for line in lines:
            shown = type(line)(escaped(line))
            if stdout.isatty():
                shown = terminal.folded(shown)
            stdout.write(f'{shown}\n')


def _written(
    cells: Sequence[Any], args: argparse.Namespace, nothing: str = ''
) -> list[Any]:
    """Return cells for all formats except json and yaml."""
    if args.formatter == 'table':
        return list(all_escaped(cells))
    return [fields.plain(cell, nothing) for cell in cells]


def _prepare(
    command: Any, args: argparse.Namespace, names: Sequence[str]
) -> None:
    """Make tables fit the terminal, unless options of cliff set the width.

    :raises IsolateAggregatesError: if none of the columns given by ``-c``
        exists.
    """
    if args.columns and not _known(args.columns, names):
        raise exception.IsolateAggregatesError(
            'There is no column '
            f'{" or ".join(args.columns)}{meant(args.columns[0], names)}; the '
            f'columns are {", ".join(names)}.'
        )
    if (
        args.formatter == 'table'
        and command.app.stdout.isatty()
        and not (args.max_width or args.fit_width)
    ):
        command.formatter = terminal.Tables(command.formatter)


def _known(columns: Iterable[str], names: Iterable[str]) -> set[str]:
    """Return which columns exist, compared as cliff does for ``-c``."""
    wanted, known = (
        {name.lower().strip().replace(' ', '_') for name in some}
        for some in (columns, names)
    )
    return wanted & known


class ShowOne(usage.Command, show.ShowOne):
    """Shows fields, with texts escaped for terminals."""

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Sequence[Any],
    ) -> int:
        if parsed_args.formatter not in _DOCUMENT_FORMATTERS:
            data = _written(data, parsed_args)
        _prepare(self, parsed_args, column_names)
        super().produce_output(parsed_args, column_names, data)
        return 0


class ReportLister(Lister):
    """Lists rows as part of a report.

    A table has the lines of ``before`` above it and those of ``after`` below
    it. As json or yaml, the whole report is one document. As csv or value,
    there are only the rows.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--long',
            action='store_true',
            help='Name all hosts, aggregates and other objects, instead of '
            'the first ones and the number of the others',
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        self.is_long = parsed_args.long
        with unabridged() if self.is_long else contextlib.nullcontext():
            return int(super().run(parsed_args))

    def document(self) -> dict[str, Any]:
        """Return the whole report for json and yaml."""
        return {}

    def before(self) -> Iterable[str]:
        """Yield the lines above the table."""
        return ()

    def after(self) -> Iterable[str]:
        """Yield the lines below the table."""
        return ()

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
    ) -> int:
        if parsed_args.formatter in _DOCUMENT_FORMATTERS:
            document = self.document()
            _DOCUMENT_FORMATTERS[parsed_args.formatter]().emit_one(
                tuple(document),
                tuple(document.values()),
                self.app.stdout,
                parsed_args,
            )
            return 0
        people = parsed_args.formatter == 'table'
        if people:
            self._write(self.before())
        super().produce_output(parsed_args, column_names, data)
        if people:
            self._write(self.after())
        return 0
