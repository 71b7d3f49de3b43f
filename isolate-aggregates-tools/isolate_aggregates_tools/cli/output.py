# SPDX-License-Identifier: Apache-2.0
"""Writes rows and reports in every output format."""

import abc
import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
import contextlib
import dataclasses
import json
from typing import Any

from cliff import columns, lister, show
from cliff.formatters import json_format, yaml_format

from isolate_aggregates.suggestions import meant
from isolate_aggregates.text import escaped
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.cli import terminal, usage
from isolate_aggregates_tools.cli.exit_status import ExitStatus
from isolate_aggregates_tools.documents import content, schema_id
from isolate_aggregates_tools.wording import all_escaped, unabridged

# The formats that can contain more than rows.
DOCUMENTS: dict[str, Any] = {
    'json': json_format.JSONFormatter,
    'yaml': yaml_format.YAMLFormatter,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """What a command says, for every output format.

    :param document: Returns the document for json and yaml: a dataclass, or a
        dictionary with such values. None if the rows are the document.
    :param columns: The names of the columns.
    :param rows: The rows; as csv or value, there is nothing else.
    :param people: The columns of a table, unless ``-c`` names them; empty for
        all columns.
    :param text: Lines that people read better than a table: they replace it,
        unless ``-c`` or ``--sort-column`` ask for one.
    :param before: The lines above a table.
    :param after: The lines below a table.
    :param nothing: Replaces a table without rows.
    :param status: The exit status.
    :param error: Raised when the report has been written.
    """

    document: Callable[[], Any] | None
    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]
    people: Sequence[str] = ()
    text: Iterable[str] = ()
    before: Iterable[str] = ()
    after: Iterable[str] = ()
    nothing: str = ''
    status: int = ExitStatus.DONE
    error: BaseException | None = None


class _Columns(usage.Command):
    """A mixin that checks columns before anything is read or changed.

    The columns of some commands depend on what they read; they are checked
    when it is written.
    """

    # The columns, if they are known; a command that changes something must
    # know them.
    columns: Sequence[str] = ()

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Check the columns, and run the command."""
        if self.columns:
            _check_columns(parsed_args, self.columns)
        return super().run(parsed_args)


class Lister(_Columns, lister.Lister):
    """Writes a report, with texts escaped for terminals.

    For json and yaml, texts are not escaped here; the formatter does it.
    """

    app: Any
    cmd_name: str
    reported: Report

    @abc.abstractmethod
    def report(self, args: argparse.Namespace) -> Report:
        """Do what the arguments say, and report it."""

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        self.reported = self.report(parsed_args)
        return self.reported.columns, self.reported.rows

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command; return its exit status."""
        return int(super().run(parsed_args)) or self.reported.status

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
    ) -> int:
        report = self.reported
        if parsed_args.formatter in DOCUMENTS and report.document:
            document = {
                'schema': schema_id(self.cmd_name),
                **content(report.document()),
            }
            DOCUMENTS[parsed_args.formatter]().emit_one(
                tuple(document),
                tuple(document.values()),
                self.app.stdout,
                parsed_args,
            )
            return 0
        # Before anything is written.
        _check_columns(parsed_args, column_names)
        people = parsed_args.formatter == 'table'
        rows = list(data)
        if people:
            self._write(report.before)
        if (
            people
            and rows
            and report.text
            and not (parsed_args.columns or parsed_args.sort_columns)
        ):
            self._write(report.text)
        else:
            self._write_rows(parsed_args, column_names, rows)
        if people:
            self._write(report.after)
        return 0

    def _write_rows(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Sequence[Sequence[Any]],
    ) -> None:
        if (
            not data
            and parsed_args.formatter == 'table'
            and not parsed_args.print_empty
        ):
            nothing = self.reported.nothing
            self._write([nothing] if nothing else ())
            return
        if parsed_args.formatter in DOCUMENTS:
            # The keys of a document.
            column_names = [_normalized(name) for name in column_names]
        else:
            column_names = all_escaped(column_names)
            # In value, only spaces separate cells; an empty one would be lost.
            nothing = '-' if parsed_args.formatter == 'value' else ''
            data = [_written(row, parsed_args, nothing) for row in data]
        if parsed_args.formatter == 'table' and not parsed_args.columns:
            parsed_args.columns = list(self.reported.people)
        self.formatter = _fitting(self, parsed_args)
        super().produce_output(parsed_args, column_names, data)

    def _write(self, lines: Iterable[str]) -> None:
        stdout = self.app.stdout
        for line in lines:
            text = type(line)(escaped(line))
            if stdout.isatty():
                text = terminal.folded(text)
            stdout.write(f'{text}\n')


def _written(
    cells: Sequence[Any], args: argparse.Namespace, nothing: str = ''
) -> list[Any]:
    """Return cells for all formats except json and yaml."""
    if args.formatter == 'table':
        return list(all_escaped(cells))
    return [plain(cell, nothing) for cell in cells]


def _fitting(command: Any, args: argparse.Namespace) -> Any:
    """Return the formatter of a command; of tables, one that fits them."""
    width = max(args.max_width, 0)
    if args.formatter == 'table' and (
        width or args.fit_width or command.app.stdout.isatty()
    ):
        return terminal.Tables(command.formatter, width)
    return command.formatter


def _check_columns(args: argparse.Namespace, names: Sequence[str]) -> None:
    """Check that the columns that arguments name, if any, exist."""
    known = {*map(_normalized, names)}
    for column in (*args.columns, *getattr(args, 'sort_columns', ())):
        if _normalized(column) not in known:
            raise errors.InvalidArgument(
                f'There is no column {column}{meant(column, names)}; the '
                f'columns are {", ".join(names)}.'
            )


def _normalized(column: str) -> str:
    """Return the name of a column as cliff compares it for ``-c``."""
    return column.lower().strip().replace(' ', '_')


class ShowOne(_Columns, show.ShowOne):
    """Shows fields, with texts escaped for terminals."""

    cmd_name: str

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Sequence[Any],
    ) -> int:
        if parsed_args.formatter not in DOCUMENTS:
            cells = _written(data, parsed_args)
            data = ['' if cell is None else cell for cell in cells]
        _check_columns(parsed_args, column_names)
        if parsed_args.formatter in DOCUMENTS and not parsed_args.columns:
            column_names = 'schema', *column_names
            data = schema_id(self.cmd_name), *data
        self.formatter = _fitting(self, parsed_args)
        super().produce_output(parsed_args, column_names, data)
        return 0


class ReportLister(Lister):
    """Writes a report that names all objects only on request."""

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
        # A program needs every name.
        full = parsed_args.long or parsed_args.formatter != 'table'
        with unabridged() if full else contextlib.nullcontext():
            return super().run(parsed_args)


class Lines(columns.FormattableColumn[Any]):
    """Several values, one per line in a table."""

    def human_readable(self) -> str:
        value = self._value
        if isinstance(value, Mapping):
            lines = [f'{k}: {_inline(v)}' for k, v in value.items()]
        else:
            lines = list(map(str, value))
        return '\n'.join(map(escaped, lines))


class Value(columns.FormattableColumn[Any]):
    """A value of any type, empty in a table if it is None."""

    def human_readable(self) -> str:
        return str(plain(self._value))


def plain(cell: Any, nothing: str = '') -> Any:
    """Return a cell for the formats csv, value and shell.

    :returns: A text or a number; JSON for lists and mappings.
    """
    if isinstance(cell, columns.FormattableColumn):
        cell = cell.machine_readable()
    if cell is None:
        return nothing
    if isinstance(cell, Mapping | list | tuple):
        text = json.dumps(cell, ensure_ascii=False)
        return text if text.isprintable() else json.dumps(cell)
    return escaped(cell) if isinstance(cell, str) else cell


def field(value: Any) -> Any:
    """Return a value as a cell for cliff."""
    return Lines(value) if isinstance(value, Mapping | list) else value


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return ', '.join(f'{amount} {what}' for what, amount in value.items())
    return str(value)
