# SPDX-License-Identifier: Apache-2.0
"""Reads the configuration of a command, and quiets the logs of libraries."""

from collections.abc import Sequence
import logging

from oslo_config import cfg

from isolate_aggregates import options, programs
from isolate_aggregates.exception import IsolateAggregatesError
from isolate_aggregates.upgrade_check import unknown
from isolate_aggregates_tools import files as ia_files

LOG = logging.getLogger(__name__)

PROJECT = 'isolate-aggregates'

# The default locations of oslo.config, for the help.
DEFAULT_FILES = (
    'isolate-aggregates.conf in ~/.isolate-aggregates, ~, '
    '/etc/isolate-aggregates and /etc'
)

# Messages of libraries below these levels do not help operators.
_QUIET = {
    'alembic': logging.WARNING,
    'keystoneauth': logging.ERROR,
    'novaclient': logging.ERROR,
    'openstack': logging.ERROR,
    'oslo_db': logging.CRITICAL,
    'oslo_policy': logging.ERROR,
    'oslo_service': logging.WARNING,
    'placement': logging.WARNING,
    # An embedded Placement also returns these errors in its answers.
    'placement.fault_wrap': logging.CRITICAL,
    'stevedore': logging.CRITICAL,
    'urllib3': logging.ERROR,
}


def quiet_libraries(debug: bool) -> None:
    """Suppress messages of libraries that do not help operators."""
    for name, level in _QUIET.items():
        logging.getLogger(name).setLevel(logging.NOTSET if debug else level)


def register(conf: cfg.ConfigOpts) -> None:
    """Register the options that a command may read.

    Those for the connection to a live cloud are registered when it is needed.
    """
    options.register_own_opts(conf)


def read(
    conf: cfg.ConfigOpts, files: Sequence[str], directories: Sequence[str]
) -> None:
    """Read the configuration files, and warn of names that nothing reads.

    :param files: The files; empty for those in the default locations.
    """
    if (
        files
        or directories
        or cfg.find_config_files(PROJECT, PROJECT)
        or cfg.find_config_dirs(PROJECT, PROJECT)
    ):
        # Imported late: it takes longer than most commands.
        from oslo_log import log

        # Because a nova.conf has these options, too.
        log.register_options(conf)
    for path in files:
        try:
            ia_files.check_text(path)
        except OSError as exc:
            raise IsolateAggregatesError(
                f'The configuration {path} cannot be read: {exc.strerror}.'
            ) from exc
    programs.read(
        conf,
        [
            *(f'--config-file={path}' for path in files),
            *(f'--config-dir={path}' for path in directories),
        ],
        # The same file names for isolate-aggregates and openstack.
        *(PROJECT, PROJECT),
    )
    options.check(conf)
    for name in unknown.misspelt_names(conf):
        LOG.warning('%s.', name.problem)
