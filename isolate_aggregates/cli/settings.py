# SPDX-License-Identifier: Apache-2.0
"""What a command needs before it runs: configuration, and quiet libraries."""

from collections.abc import Sequence
import logging

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.text import short

PROJECT = 'isolate-aggregates'

# Where oslo.config looks, for the help.
DEFAULT_FILES = (
    'isolate-aggregates.conf in ~/.isolate-aggregates, ~, '
    '/etc/isolate-aggregates and /etc'
)

# What libraries say below these levels is of no use to an operator.
_QUIET = {
    'alembic': logging.WARNING,
    'keystoneauth': logging.ERROR,
    'novaclient': logging.ERROR,
    'openstack': logging.ERROR,
    'oslo_policy': logging.ERROR,
    'oslo_service': logging.WARNING,
    'placement': logging.WARNING,
    # The embedded one answers with what it logs.
    'placement.fault_wrap': logging.CRITICAL,
    'stevedore': logging.CRITICAL,
    # It says each second that it has lost its service.
    'tooz': logging.CRITICAL,
    'urllib3': logging.ERROR,
}


def quiet_libraries(debug: bool) -> None:
    """Keep libraries from saying what is of no use to an operator."""
    for name, level in _QUIET.items():
        logging.getLogger(name).setLevel(logging.NOTSET if debug else level)


def register(conf: cfg.ConfigOpts) -> None:
    """Register the options that a command may read.

    Those of a live cloud come with its credentials.
    """
    # Takes longer to import than the help of the program takes.
    from oslo_log import log

    ia_conf.register_own_opts(conf)
    # A nova.conf has these as well.
    log.register_options(conf)


def read(
    conf: cfg.ConfigOpts, files: Sequence[str], directories: Sequence[str]
) -> None:
    """Read the configuration files.

    :param files: The files; none for those in the usual places.
    :raises ConfigFilesError: if one of them cannot be read.
    :raises ConfigError: if one of them has a value that cannot work.
    """
    try:
        conf(
            [
                *(f'--config-file={path}' for path in files),
                *(f'--config-dir={path}' for path in directories),
            ],
            project=PROJECT,
            # Whatever program reads them, they have the same names.
            prog=PROJECT,
        )
    except (cfg.Error, OSError, ValueError) as exc:
        names = ', '.join([*files, *directories])
        raise unreadable(names or f'{PROJECT}.conf', exc) from exc
    ia_conf.check(conf)


def unreadable(names: str, exc: Exception) -> exception.ConfigFilesError:
    """Return the error for configuration files that cannot be read.

    :param exc: What oslo.config has raised.
    """
    return exception.ConfigFilesError(
        f'The configuration {names} cannot be read: {_reason(exc)}.'
    )


def _reason(exc: Exception) -> str:
    inner = exc.__context__
    if isinstance(inner, cfg.ParseError):
        # Its text quotes the line, which may be that with the password.
        return f'{inner.filename}, line {inner.lineno}: {inner.msg}'
    if isinstance(exc, OSError) and exc.strerror:
        return exc.strerror
    return short(exc)
