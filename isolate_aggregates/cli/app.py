# SPDX-License-Identifier: Apache-2.0
"""The program ``isolate-aggregates``: options, credentials, errors."""

import argparse
from collections.abc import Sequence
import logging
import sys
from typing import Any

from cliff import app, command, commandmanager
from keystoneauth1 import exceptions as ks_exceptions
from openstack import config as os_config
from openstack import exceptions as os_exceptions
from oslo_config import cfg
from oslo_log import log
import pbr.version

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.cloud import connection as cloud_connection
from isolate_aggregates.cloud.connection import Connection

_PROJECT = 'isolate-aggregates'
_SERVICES = ('compute', 'placement', 'image')

# What libraries say below these levels is of no use to an operator.
_QUIET = {
    'alembic': logging.WARNING,
    'keystoneauth': logging.WARNING,
    'novaclient': logging.WARNING,
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
        self._cloud_config = os_config.OpenStackConfig()
        self._argv = list(argv)
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
            {**(argparse_kwargs or {}), 'allow_abbrev': False},
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
            help='Directory of *.conf files, read after --config-file; may '
            'be repeated',
        )
        self._cloud_config.register_argparse_arguments(
            parser, self._argv, list(_SERVICES)
        )
        return parser

    def initialize_app(self, argv: list[str]) -> None:
        """Read the configuration before any command runs."""
        for name, level in _QUIET.items():
            if not self.options.debug:
                logging.getLogger(name).setLevel(level)
        ia_conf.register_opts(self.conf)
        # A nova.conf has these as well.
        log.register_options(self.conf)

    def prepare_to_run_command(self, cmd: command.Command) -> None:
        """Read the configuration files.

        :raises ConfigFilesError: if one of them can not be read.
        """
        args = []
        for name in ('config_file', 'config_dir'):
            for path in getattr(self.options, name) or ():
                args += [f'--{name.replace("_", "-")}', path]
        try:
            self.conf(args, project=_PROJECT)
        except cfg.Error as exc:
            raise exception.ConfigFilesError(
                f'The configuration files can not be read: {exc}'
            ) from exc

    def connect(self) -> Connection:
        """Return the connection to the live cloud.

        Credentials are those of the OpenStack commands (``--os-*`` options,
        ``OS_*`` variables, ``clouds.yaml``); without any of them, those of
        the configuration file.

        :raises CredentialsError: if there are none, or bad ones.
        """
        given = (
            self.options.os_cloud
            or self.options.os_auth_type not in (None, 'password')
            or getattr(self.options, 'os_auth_url', None)
        )
        if not given and self.conf[ia_conf.GROUP].auth_type:
            return cloud_connection.from_conf(self.conf)
        if not given:
            raise exception.CredentialsError(
                'There are no credentials for a cloud: give --os-cloud, OS_* '
                f'variables or [{ia_conf.GROUP}] auth_type with what it '
                'needs, or ask a cloud file with --snapshot.'
            )
        try:
            region = self._cloud_config.get_one(argparse=self.options)
            endpoints = {
                service: endpoint
                for service in _SERVICES
                if (endpoint := region.get_endpoint(service))
            }
            interface = region.get_interface('compute') or 'public'
            return Connection(
                session=region.get_session(),
                region_name=region.get_region_name(),
                interface=(
                    (interface,)
                    if isinstance(interface, str)
                    else tuple(interface)
                ),
                endpoints=endpoints,
            )
        except (
            os_exceptions.SDKException,
            ks_exceptions.ClientException,
        ) as exc:
            raise exception.CredentialsError(
                f'The credentials for the cloud can not be used: {exc}'
            ) from exc

    def interact(self) -> None:
        """Show the help: there is no interactive mode."""
        self.parser.print_help(self.stderr)
        raise SystemExit(2)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program.

    :param argv: The arguments, without the name of the program.
    :returns: 0, or 1 after an error, or 2 for arguments that make no sense.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        program = IsolateAggregatesApp(arguments)
    except os_exceptions.SDKException as exc:
        print(f'isolate-aggregates: {exc}', file=sys.stderr)
        return 2
    return int(program.run(arguments) or 0)
