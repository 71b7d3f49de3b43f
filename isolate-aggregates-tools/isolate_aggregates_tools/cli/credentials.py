# SPDX-License-Identifier: Apache-2.0
"""Chooses the cloud to connect to, and the credentials."""

import argparse
from collections.abc import Sequence
import contextlib
import dataclasses
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
from isolate_aggregates.rest import connection as cloud_connection
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates.text import short
from isolate_aggregates_tools import errors as tools_errors

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
    """The credentials, from openstacksdk or from the configuration file."""

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
        """
        if self._problem:
            check_files()
            raise _unusable(self._problem)
        is_selected = (
            options.os_auth_type == 'none'
            or options.os_auth_type != self.parser.get_default('os_auth_type')
            or any(
                getattr(options, name, None)
                for name in ('os_cloud', 'os_auth_url', 'os_endpoint')
            )
        )
        if not is_selected and _is_configured(conf):
            return limited(cloud_connection.from_conf(conf), conf)
        if not is_selected and self._config.default_cloud == 'defaults':
            check_files()
            raise tools_errors.NoCredentialsError
        try:
            return limited(self._connection(options), conf)
        except _UNUSABLE as exc:
            check_files()
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
    section = conf[ia_conf.GROUP]
    return bool(section.auth_type or section.auth_section)


def check_files() -> None:
    """Check the files that openstacksdk may have skipped silently."""
    for variable, paths in (
        ('OS_CLIENT_CONFIG_FILE', os_loader.CONFIG_FILES),
        ('OS_CLIENT_SECURE_FILE', os_loader.SECURE_FILES),
        ('OS_CLIENT_VENDOR_FILE', os_loader.VENDOR_FILES),
    ):
        first = os.environ.get(variable)
        for path in ([first] if first else []) + paths:
            if os.path.exists(path):
                _check_file(path)
                # openstacksdk ignores any further files of this kind.
                break


def _check_file(path: str) -> None:
    try:
        with open(path, encoding='utf-8') as stream:
            yaml.safe_load(stream)
    except OSError as exc:
        problem = short(exc.strerror or exc)
    # PyYAML does not translate what constructors of values raise.
    except (ValueError, LookupError, TypeError, yaml.YAMLError) as exc:
        problem = _yaml_problem(exc)
    else:
        return
    raise tools_errors.CredentialsError(
        f'The file {path} cannot be read: {problem}.'
    )


def _yaml_problem(exc: Exception) -> str:
    """Describe a YAML error without quoting the text, which has passwords."""
    mark = getattr(exc, 'problem_mark', None)
    problem = getattr(exc, 'problem', None)
    if not problem or any(quote in problem for quote in '\'"'):
        problem = 'invalid YAML; put values with special characters in quotes'
    return f'line {mark.line + 1}: {problem}' if mark else problem


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


def limited(connection: Connection, conf: cfg.ConfigOpts) -> Connection:
    """Return a connection with the configured limits."""
    return dataclasses.replace(
        connection, max_concurrency=conf[ia_conf.GROUP].max_concurrency
    )


def _unusable(exc: Exception) -> tools_errors.CredentialsError:
    if isinstance(
        exc, os_exceptions.SDKException | ks_exceptions.ClientException
    ):
        # The remaining sentences are long lists of alternatives.
        reason = short(str(exc).partition('. ')[0])
    else:
        reason = f'openstacksdk failed with {type(exc).__name__}: {short(exc)}'
    return tools_errors.CredentialsError(
        f'The credentials for the cloud cannot be used: {reason}; check the '
        '--os-* options, the OS_* variables and clouds.yaml.'
    )
