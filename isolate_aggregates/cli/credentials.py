# SPDX-License-Identifier: Apache-2.0
"""Chooses the cloud to connect to, and the credentials."""

import argparse
from collections.abc import Sequence
import contextlib
import io
import os

from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import session
from openstack import config as os_config
from openstack import exceptions as os_exceptions
from openstack.config import cloud_region
from openstack.config import loader as os_loader
from oslo_config import cfg
import yaml

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.rest import connection as cloud_connection
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates.text import short

_SERVICES = ('compute', 'placement', 'image')

# What openstacksdk raises if clouds.yaml or the options are invalid. It does
# not check their structure, which leads to errors such as LookupError.
_UNUSABLE = (
    os_exceptions.SDKException,
    ks_exceptions.ClientException,
    OSError,
    LookupError,
    TypeError,
    AttributeError,
    ValueError,
    # Older releases of openstacksdk do not wrap it.
    yaml.YAMLError,
)


class Credentials:
    """The credentials, from openstacksdk or from the configuration file.

    :param argv: The arguments, which decide which credential options exist.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self._problem: Exception | None = None
        try:
            self._config = os_config.OpenStackConfig()
            self.parser = self._options(argv)
        except _UNUSABLE as exc:
            # Reported only if a live cloud is needed.
            self._problem = exc
            self._config = os_config.OpenStackConfig(
                load_yaml_config=False, load_envvars=False
            )
            self.parser = self._options([])

    def connect(
        self, options: argparse.Namespace, conf: cfg.ConfigOpts
    ) -> Connection:
        """Return the connection to the live cloud.

        A cloud named by ``--os-*`` options or ``OS_*`` variables takes
        precedence over the configuration file, and this over the only cloud
        of ``clouds.yaml``.

        :param options: The options as parsed by :attr:`parser`.
        :raises CredentialsError: if credentials are missing or invalid.
        :raises ConfigError: if those in the configuration are invalid.
        """
        if self._problem:
            check_files()
            raise _unusable(self._problem)
        named = (
            options.os_auth_type == 'none'
            or options.os_auth_type != self.parser.get_default('os_auth_type')
            or any(
                getattr(options, name, None)
                for name in ('os_cloud', 'os_auth_url', 'os_endpoint')
            )
        )
        if not named and _is_configured(conf):
            return cloud_connection.from_conf(conf)
        if not named and self._config.default_cloud == 'defaults':
            check_files()
            raise exception.NoCredentialsError
        try:
            return self._connection(options)
        except _UNUSABLE as exc:
            raise _unusable(exc) from exc

    def _options(self, argv: Sequence[str]) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(add_help=False)
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                self._config.register_argparse_arguments(
                    parser, list(argv), list(_SERVICES)
                )
        except SystemExit:
            # The value of an option is missing; the program reports it.
            return self._options([])
        return parser

    def _connection(self, options: argparse.Namespace) -> Connection:
        region = self._config.get_one(argparse=options)
        return from_region(region, region.get_session())


def _is_configured(conf: cfg.ConfigOpts) -> bool:
    ia_conf.register_connection_opts(conf)
    ia_conf.check(conf)
    return cloud_connection.is_configured(conf)


def check_files() -> None:
    """Check the ``clouds.yaml`` that openstacksdk may have skipped silently.

    :raises CredentialsError: if it cannot be read.
    """
    first = os.environ.get('OS_CLIENT_CONFIG_FILE')
    for path in ([first] if first else []) + os_loader.CONFIG_FILES:
        if not os.path.exists(path):
            continue
        try:
            with open(path, encoding='utf-8') as stream:
                yaml.safe_load(stream)
            # openstacksdk ignores any further files.
            return
        except (OSError, ValueError, yaml.YAMLError) as exc:
            mark = getattr(exc, 'problem_mark', None)
            line = f'line {mark.line + 1}: ' if mark else ''
            said = short(getattr(exc, 'problem', exc))
            raise exception.CredentialsError(
                f'The file {path} cannot be read: {line}{said}.'
            ) from exc


def from_region(
    region: cloud_region.CloudRegion, session: session.Session
) -> Connection:
    """Return a connection with the settings of openstacksdk."""
    session.timeout = session.timeout or cloud_connection.TIMEOUT
    interface = region.get_interface('compute') or 'public'
    return Connection(
        session=session,
        region_name=region.get_region_name(),
        interface=(
            (interface,) if isinstance(interface, str) else (*interface,)
        ),
        endpoints={
            service: endpoint
            for service in _SERVICES
            if (endpoint := region.get_endpoint(service))
        },
    )


def _unusable(exc: Exception) -> exception.CredentialsError:
    if isinstance(
        exc, os_exceptions.SDKException | ks_exceptions.ClientException
    ):
        # The remaining sentences are long lists of alternatives.
        said = short(str(exc).partition('. ')[0])
    else:
        said = f'openstacksdk failed with {type(exc).__name__}: {short(exc)}'
    return exception.CredentialsError(
        f'The credentials for the cloud cannot be used: {said}; check the '
        '--os-* options, the OS_* variables and clouds.yaml.'
    )
