# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of ``isolate-aggregates`` in OpenStackClient."""

import argparse
from collections.abc import Sequence
import inspect
import logging
from typing import TYPE_CHECKING, Any, NoReturn

from cliff import command
from keystoneauth1 import exceptions as ks_exceptions
from openstack import exceptions as os_exceptions
from oslo_config import cfg

from isolate_aggregates import entry_points, exception
from isolate_aggregates.rest import errors
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates.suggestions import meant
from isolate_aggregates_tools.cli import (
    base,
    command_help,
    credentials,
    settings,
    usage,
    versions,
)
from isolate_aggregates_tools.cli.exit_status import WITH_STATUS, of_error
from isolate_aggregates_tools.cli.osc import deferred
from isolate_aggregates_tools.errors import InvalidRequest

if TYPE_CHECKING:
    from osc_lib import shell

LOG = logging.getLogger(__name__)


class ClientProgram:
    """The program for our commands: the client, with what they need on top."""

    def __init__(
        self, client: 'shell.OpenStackShell', running: 'ClientCommand'
    ) -> None:
        self._client = client
        self._running = running
        self._connection: Connection | None = None
        self.conf = cfg.ConfigOpts()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def configure(self) -> None:
        """Read the configuration files.

        :raises InvalidRequest: if distributions of different releases are
            installed.
        """
        if problem := versions.mismatch():
            raise InvalidRequest(problem)
        settings.quiet_libraries(bool(self._client.options.debug))
        settings.register(self.conf)
        # From the options, or else from clouds.yaml.
        region = self._client.cloud.config
        settings.read(
            self.conf,
            _paths(region.get('isolation_config_file')),
            _paths(region.get('isolation_config_dir')),
        )

    def connect(self) -> Connection:
        """Return the connection to the live cloud, always the same one."""
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> Connection:
        client = self._client
        # Set this late, as commands on a cloud file need no credentials.
        self._running.auth_required = True
        try:
            client.prepare_to_run_command(self._running)
        except (ks_exceptions.ClientException, OSError) as exc:
            raise errors.from_keystone(
                client.cloud.config['auth'].get('auth_url'), exc
            ) from exc
        except os_exceptions.ConfigException:
            credentials.check_files()
            # The message of the client says what is missing.
            raise
        connection = credentials.from_region(
            client.cloud, client.client_manager.session
        )
        return credentials.limited(connection, self.conf)


class ClientCommand(command.Command):
    """The base class of our commands in the client.

    :param app_args: The global options; None if only the help is shown.
    """

    app: Any
    # The name of the command in our program.
    name: str

    # The client reads it before it parses the arguments, which decide whether
    # the command needs credentials.
    auth_required = False
    is_in_client = True

    # As the client does for commands of others.
    epilog = 'This command is provided by the isolate-aggregates plugin.'

    def __init__(
        self,
        app: 'shell.OpenStackShell',
        app_args: argparse.Namespace | None,
    ) -> None:
        program: Any = ClientProgram(app, self)
        super().__init__(program, app_args)
        # Not given to cliff, which would look for hooks of this name.
        self.cmd_name = self.name

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Read the configuration and run the command."""
        self.app.configure()
        program = base.program.set(('openstack', deferred.GROUP))
        try:
            return super().run(parsed_args)
        except WITH_STATUS as exc:
            # The client has one status for all errors.
            LOG.error('%s', exc)
            return of_error(exc) or 0
        finally:
            base.program.reset(program)


def refuse(name: str) -> NoReturn:
    """Report that a command does not exist, and exit with status 2."""
    names = deferred.names(command_help.descriptions())
    suggestion = meant(name, names.values())
    parser = usage.Parser(prog='openstack')
    parser.error(f'there is no command {name!r}{suggestion}')


def load(name: str) -> type[ClientCommand]:
    """Return one of our commands as a command of the client."""
    ours = entry_points.load('isolate_aggregates.cli', [name], _unknown)[name]
    return type(
        ours.__name__,
        (ClientCommand, ours),
        # The help shows the docstring.
        {
            '__doc__': inspect.getdoc(ours),
            '__module__': ours.__module__,
            'name': name.replace('_', ' '),
        },
    )


def _unknown(name: str, problem: str) -> exception.IsolateAggregatesError:
    return exception.IsolateAggregatesError(f'The command {name} {problem}')


def _paths(paths: str | Sequence[str] | None) -> Sequence[str]:
    if isinstance(paths, str):
        return [paths]
    return paths or ()
