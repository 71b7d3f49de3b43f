# SPDX-License-Identifier: Apache-2.0
"""Makes commands of ``isolate-aggregates`` run inside OpenStackClient."""

import argparse
from collections.abc import Sequence
import inspect
import logging
from typing import TYPE_CHECKING, Any

from cliff import command
from keystoneauth1 import exceptions as ks_exceptions
from openstack import exceptions as os_exceptions
from oslo_config import cfg

from isolate_aggregates import entry_points, exception
from isolate_aggregates.cli import credentials, settings
from isolate_aggregates.rest import errors
from isolate_aggregates.rest.connection import Connection

if TYPE_CHECKING:
    from osc_lib import shell

LOG = logging.getLogger(__name__)


class ClientProgram:
    """The client, with what our commands want of their program on top."""

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

        :raises ConfigFilesError: if one of them cannot be read.
        :raises ConfigError: if one of them has a value that cannot work.
        """
        settings.quiet_libraries(bool(self._client.options.debug))
        settings.register(self.conf)
        # Those of the options, or else those that clouds.yaml has.
        given = self._client.cloud.config
        settings.read(
            self.conf,
            _paths(given.get('isolation_config_file')),
            _paths(given.get('isolation_config_dir')),
        )

    def connect(self) -> Connection:
        """Return the connection to the live cloud, the same each time.

        :raises CredentialsError: if a clouds.yaml cannot be read.
        :raises ServiceError: if Keystone gives no token.
        """
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> Connection:
        client = self._client
        # Only now, so that a command that asks a cloud file needs none.
        self._running.auth_required = True
        try:
            client.prepare_to_run_command(self._running)
        except (ks_exceptions.ClientException, OSError) as exc:
            raise errors.from_keystone(
                client.cloud.config['auth'].get('auth_url'), exc
            ) from exc
        except os_exceptions.ConfigException:
            credentials.check_files()
            # The client itself says what it misses.
            raise
        return credentials.from_region(
            client.cloud, client.client_manager.session
        )


class ClientCommand(command.Command):
    """The part of a command that is the same for all of them.

    :param app_args: Its parsed options; None to look at the help only.
    """

    app: Any

    # Told before the arguments are parsed, so before it is known.
    auth_required = False

    # What to type instead, if its name is deprecated.
    instead = ''

    # So that the help says whose command this is.
    app_dist_name = 'python-openstackclient'

    def __init__(
        self,
        app: 'shell.OpenStackShell',
        app_args: argparse.Namespace | None,
    ) -> None:
        program: Any = ClientProgram(app, self)
        super().__init__(program, app_args)

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Read the configuration and run the command.

        :raises IsolateAggregatesError: if something foreseeable goes wrong.
        """
        if self.instead:
            LOG.warning('This command is deprecated. Use %s.', self.instead)
        try:
            self.app.configure()
        except exception.IsolateAggregatesError as exc:
            # See IsolateAggregatesApp.run_subcommand.
            status = getattr(self, 'error_status', None)
            if status is None:
                raise
            LOG.error('%s', exc)
            return int(status)
        return super().run(parsed_args)


def load(name: str, instead: str) -> type[ClientCommand]:
    """Return a command of ours as one of the client's.

    :param name: The name of its entry point in ``isolate_aggregates.cli``.
    :param instead: What to type instead; empty if its name is the one to
        use.
    """
    ours = entry_points.load('isolate_aggregates.cli', [name], _unknown)[name]
    said = inspect.getdoc(ours)
    if instead:
        said = f'Deprecated: use {instead}.\n\n{said}'
    return type(
        ours.__name__,
        (ClientCommand, ours),
        {
            # What the help shows.
            '__doc__': said,
            '__module__': ours.__module__,
            'instead': instead,
        },
    )


def _unknown(name: str, problem: str) -> exception.IsolateAggregatesError:
    return exception.IsolateAggregatesError(f'The command {name} {problem}')


def _paths(given: str | Sequence[str] | None) -> Sequence[str]:
    if isinstance(given, str):
        return [given]
    return given or ()
