# SPDX-License-Identifier: Apache-2.0
"""The program ``isolate-aggregates``: options, credentials, errors."""

import argparse
from collections.abc import Sequence
import functools
import io
import itertools
import logging
import sys
from typing import TYPE_CHECKING, Any
import warnings

from cliff import app, command, help
from oslo_config import cfg
import pbr.version

from isolate_aggregates import exception
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.cli import (
    completion,
    program_help,
    settings,
    terminal,
    usage,
    versions,
)
from isolate_aggregates_tools.cli.commands import CommandManager
from isolate_aggregates_tools.cli.exit_status import ExitStatus, of_error

if TYPE_CHECKING:
    from isolate_aggregates.rest.connection import Connection
    from isolate_aggregates_tools.cli.credentials import Credentials

# The entry points of the commands.
COMMANDS = 'isolate_aggregates.cli'

# Options of openstacksdk that do not begin with --os-.
_CLOUD_OPTIONS = frozenset(
    {
        '--collect-timing',
        '--compute-api-version',
        '--endpoint-type',
        '--http-timeout',
        '--image-api-version',
        '--insecure',
        '--placement-api-version',
        '--timeout',
        '--tls-ciphers',
        '--tls-min-version',
    }
)


class _LogFile(logging.FileHandler):
    """Says once that a log file cannot be written, without a traceback."""

    _has_failed = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Say what is wrong with the file."""
        exc = sys.exc_info()[1]
        if not isinstance(exc, OSError):
            super().handleError(record)
        elif not self._has_failed:
            self._has_failed = True
            problem = errors.LogFileError(self.baseFilename, exc.strerror)
            print(problem, file=sys.stderr)


class IsolateAggregatesApp(app.App):
    """The program ``isolate-aggregates``.

    The ``--os-*`` options come from openstacksdk, which takes longer to import
    than everything else. So they are added only if the arguments contain one
    of them.

    :param argv: The arguments, which also decide which credential options are
        added; None to add all.
    """

    def __init__(self, argv: Sequence[str] | None = None) -> None:
        self._argv = () if argv is None else argv
        self._names_cloud = argv is None or any(map(_is_of_cloud, argv))
        self._connection: Connection | None = None
        self._running: command.Command | None = None
        super().__init__(
            description='Isolate hosts, and show which hosts a server may '
            'use and why.',
            version=pbr.version.VersionInfo(settings.PROJECT).release_string(),
            command_manager=CommandManager(COMMANDS),
            deferred_help=True,
        )
        self.command_manager.add_command('help', program_help.HelpCommand)
        self.command_manager.add_command('complete', completion.Complete)
        self.conf = cfg.ConfigOpts()

    @lazy_property
    def _credentials(self) -> 'Credentials':
        from isolate_aggregates_tools.cli.credentials import Credentials

        return Credentials(self._argv)

    def build_option_parser(
        self,
        description: str | None,
        version: str | None,
        argparse_kwargs: dict[str, Any] | None = None,
    ) -> argparse.ArgumentParser:
        """Return the parser for the global options."""
        # If abbreviations were allowed, --image of a command would match
        # --image-endpoint-override of keystoneauth.
        parser = super().build_option_parser(
            description,
            version,
            {
                **(argparse_kwargs or {}),
                'allow_abbrev': False,
                'parents': (
                    [self._credentials.parser] if self._names_cloud else []
                ),
            },
        )
        if not self._names_cloud:
            parser.add_argument_group(
                'cloud options',
                '--os-cloud <name> and all other cloud options of the '
                'openstack command. To list them: isolate-aggregates '
                '--os-cloud <name> --help',
            )
        parser.add_argument(
            '--config-file',
            action='append',
            type=usage.not_empty,
            metavar='<path>',
            help='Configuration file, such as nova.conf; may be repeated. '
            f'Default: {settings.DEFAULT_FILES}',
        )
        parser.add_argument(
            '--config-dir',
            action='append',
            type=usage.not_empty,
            metavar='<path>',
            help='Directory of configuration files, read after '
            '--config-file; may be repeated',
        )
        help_parser = program_help.Parser.like(parser)
        help_parser.is_help = bool({'-h', '--help'} & {*self._argv})
        help_parser.commands = functools.partial(
            program_help.lines, self.command_manager
        )
        return help_parser

    def configure_logging(self) -> None:
        """Wrap log lines to the width of the terminal.

        :raises IsolateAggregatesError: if the log file cannot be written.
        """
        path, self.options.log_file = self.options.log_file, None
        super().configure_logging()
        if path:
            try:
                log_file = _LogFile(path)
            except OSError as exc:
                raise errors.LogFileError(path, exc.strerror) from exc
            log_file.setFormatter(
                logging.Formatter(self.LOG_FILE_MESSAGE_FORMAT)
            )
            logging.getLogger().addHandler(log_file)
        if self.options.debug:
            return
        for handler in logging.getLogger().handlers:
            if isinstance(handler, logging.StreamHandler) and (
                handler.stream is self.stderr and handler.stream.isatty()
            ):
                handler.setFormatter(
                    terminal.Formatter(self.CONSOLE_MESSAGE_FORMAT)
                )

    def initialize_app(self, argv: list[str]) -> None:
        """Register the options before any command runs."""
        if argv[:1] == ['help']:
            # What follows an option is no part of the name of a command.
            argv[:] = itertools.takewhile(lambda word: word[:1] != '-', argv)
        # The help needs none of the following.
        self.print_help_if_requested()
        settings.quiet_libraries(self.options.debug)
        settings.register(self.conf)

    def prepare_to_run_command(self, cmd: command.Command) -> None:
        """Read the configuration files."""
        self._running = cmd
        if isinstance(cmd, help.HelpCommand | completion.Complete):
            # They must work even if the files are invalid.
            return
        settings.read(
            self.conf,
            self.options.config_file or (),
            self.options.config_dir or (),
        )

    def get_fuzzy_matches(self, cmd: str) -> list[str]:
        """Return nothing; the error message suggests a command itself."""
        return []

    def run_subcommand(self, argv: list[str]) -> int:
        """Run a command and return its exit status.

        A command whose failures are invalid arguments sets ``error_status``.
        """
        if argv[0].startswith('-'):
            usage.refuse(
                self.parser,
                argv[0].partition('=')[0],
                ' before the command; options of a command follow it',
            )
        self._failed: command.Command | None = None
        self._error: BaseException | None = None
        status = super().run_subcommand(argv)
        if (own := of_error(self._error)) is not None:
            return own
        return int(getattr(self._failed, 'error_status', status))

    def clean_up(
        self,
        cmd: command.Command,
        result: int,
        err: BaseException | None,
    ) -> None:
        """Record the command if it failed."""
        self._failed, self._error = (cmd, err) if err else (None, None)

    def connect(self) -> 'Connection':
        """Return the connection to the live cloud, always the same one."""
        if self._connection is None:
            credentials = self._credentials
            options = (
                self.options
                if self._names_cloud
                # There may be credentials in the environment.
                else credentials.parser.parse_args([])
            )
            try:
                self._connection = credentials.connect(options, self.conf)
            except errors.NoCredentialsError as exc:
                instead = getattr(self._running, 'without_cloud', '')
                raise errors.NoCredentialsError(instead) from exc
        return self._connection

    def print_help_if_requested(self) -> None:
        """Show the help and exit, if ``--help`` was given."""
        if self.deferred_help and self.options.deferred_help:
            program_help.show(self.parser, self.stdout)
            raise help.HelpExit

    def interact(self) -> None:
        """Show the help, as there is no interactive mode."""
        self.parser.print_help(self.stderr)
        raise SystemExit(ExitStatus.INVALID)


def _is_of_cloud(argument: str) -> bool:
    name = argument.partition('=')[0]
    return name.startswith('--os') or name in _CLOUD_OPTIONS


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program.

    :param argv: The arguments, without the name of the program.
    :returns: The exit status: 0, 1 after an error, or 2 for invalid arguments;
        some commands have more.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None:
        # As after >&-.
        print('The standard output is closed.', file=sys.stderr)
        return ExitStatus.ERROR
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names may have characters that the terminal's encoding lacks.
            stream.reconfigure(errors='backslashreplace')
    if problem := versions.mismatch():
        print(problem, file=sys.stderr)
        return ExitStatus.ERROR
    with warnings.catch_warnings():
        if not sys.warnoptions and '--debug' not in arguments:
            # Warnings are for developers.
            warnings.simplefilter('ignore')
        try:
            # A command reports what it could not write; the help does not.
            with usage.writing():
                return IsolateAggregatesApp(arguments).run(arguments)
        except exception.IsolateAggregatesError as exc:
            print(exc, file=sys.stderr)
            return ExitStatus.ERROR
