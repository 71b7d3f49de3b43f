# SPDX-License-Identifier: Apache-2.0
"""The program ``isolate-aggregates``: options, credentials, errors."""

import argparse
from collections.abc import Sequence
import logging
import sys
from typing import Any
import warnings

from cliff import app, command, commandmanager, help
from oslo_config import cfg
from oslo_log import log
import pbr.version

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception, faults
from isolate_aggregates.cli.credentials import Credentials
from isolate_aggregates.cloud.connection import Connection

_PROJECT = 'isolate-aggregates'

# What libraries say below these levels is of no use to an operator.
_QUIET = {
    'alembic': logging.WARNING,
    'keystoneauth': logging.ERROR,
    'novaclient': logging.ERROR,
    'openstack': logging.ERROR,
    'oslo_policy': logging.ERROR,
    'placement': logging.WARNING,
    'stevedore': logging.CRITICAL,
    'urllib3': logging.ERROR,
}


class IsolateAggregatesApp(app.App):
    """``isolate-aggregates``.

    :param argv: The arguments, which say which credentials can be given.
    """

    def __init__(self, argv: Sequence[str] = ()) -> None:
        self._credentials = Credentials(argv)
        super().__init__(
            description='Keep hosts apart: which hosts may a server use, and '
            'why.',
            version=pbr.version.VersionInfo(_PROJECT).release_string(),
            command_manager=commandmanager.CommandManager(
                'isolate_aggregates.cli'
            ),
            deferred_help=True,
        )
        self.conf = cfg.ConfigOpts()

    def build_option_parser(
        self,
        description: str | None,
        version: str | None,
        argparse_kwargs: dict[str, Any] | None = None,
    ) -> argparse.ArgumentParser:
        """Return the parser of the options that all commands have."""
        # With abbreviations the --image of a command would be taken for the
        # start of keystoneauth's --image-endpoint-override.
        parser = super().build_option_parser(
            description,
            version,
            {
                **(argparse_kwargs or {}),
                'allow_abbrev': False,
                'parents': [self._credentials.parser],
            },
        )
        parser.add_argument(
            '--config-file',
            action='append',
            metavar='<path>',
            help='Configuration file, such as nova.conf; may be repeated. '
            f'Default: {_PROJECT}.conf in ~/.{_PROJECT}, ~, /etc/{_PROJECT} '
            'and /etc',
        )
        parser.add_argument(
            '--config-dir',
            action='append',
            metavar='<path>',
            help='Directory of configuration files, read after '
            '--config-file; may be repeated',
        )
        return parser

    def initialize_app(self, argv: list[str]) -> None:
        """Read the configuration before any command runs."""
        for name, level in _QUIET.items():
            logging.getLogger(name).setLevel(
                logging.NOTSET if self.options.debug else level
            )
        ia_conf.register_opts(self.conf)
        # A nova.conf has these as well.
        log.register_options(self.conf)

    def prepare_to_run_command(self, cmd: command.Command) -> None:
        """Read the configuration files.

        :raises ConfigFilesError: if one of them can not be read.
        :raises ConfigError: if one of them has a value that can not work.
        """
        if isinstance(cmd, help.HelpCommand):
            # It is to be had whatever the files are like.
            return
        files = self.options.config_file or ()
        directories = self.options.config_dir or ()
        try:
            self.conf(
                [
                    *(f'--config-file={path}' for path in files),
                    *(f'--config-dir={path}' for path in directories),
                ],
                project=_PROJECT,
            )
        except (cfg.Error, OSError, ValueError) as exc:
            names = ', '.join([*files, *directories])
            raise exception.ConfigFilesError(
                f'The configuration {names or f"{_PROJECT}.conf"} can not be '
                f'read: {_reason(exc)}.'
            ) from exc
        ia_conf.check(self.conf)

    def connect(self) -> Connection:
        """Return the connection to the live cloud.

        :raises CredentialsError: if there are no credentials, or bad ones.
        """
        return self._credentials.connect(self.options, self.conf)

    def interact(self) -> None:
        """Show the help: there is no interactive mode."""
        self.parser.print_help(self.stderr)
        raise SystemExit(2)


def _reason(exc: Exception) -> str:
    inner = exc.__context__
    if isinstance(inner, cfg.ParseError):
        # Its text quotes the line, which may be that with the password.
        return f'{inner.filename}, line {inner.lineno}: {inner.msg}'
    if isinstance(exc, OSError) and exc.strerror:
        return exc.strerror
    return faults.short(exc)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program.

    :param argv: The arguments, without the name of the program.
    :returns: 0, or 1 after an error, or 2 for arguments that make no sense.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    with warnings.catch_warnings():
        if not sys.warnoptions and '--debug' not in arguments:
            # They are for those who write programs.
            warnings.simplefilter('ignore')
        return IsolateAggregatesApp(arguments).run(arguments)
