# SPDX-License-Identifier: Apache-2.0
"""Arguments that several commands share, and how to interpret them."""

import argparse
from collections.abc import Callable, Iterator
import contextlib
import logging
from typing import TYPE_CHECKING, Protocol

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.aggregates.index import lock_groups
from isolate_aggregates.request.extra_specs import REQUIRED, TRAIT_PREFIX
from isolate_aggregates.tools import errors as tools_errors
from isolate_aggregates.tools import options as tools_options
from isolate_aggregates.tools.cloud.cloud import Cloud
from isolate_aggregates.tools.cloud.file import cloud_file, document
from isolate_aggregates.tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates.tools.cloud.snapshot import Snapshot

if TYPE_CHECKING:
    from isolate_aggregates.rest.connection import Connection
    from isolate_aggregates.tools.cloud.live.live_cloud import LiveCloud

LOG = logging.getLogger(__name__)


class Program(Protocol):
    """What a command needs from the program that runs it.

    The program is ``isolate-aggregates`` or ``openstack``.
    """

    conf: cfg.ConfigOpts

    def connect(self) -> 'Connection':
        """Return the connection to the live cloud, always the same one."""


def add_snapshot_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--snapshot`` to the parser of a command that only reads."""
    parser.add_argument(
        '--snapshot',
        metavar='<file>',
        help='Use this cloud file instead of the live cloud',
    )


def add_output_argument(
    parser: argparse._ActionsContainer, meaning: str, required: bool = False
) -> None:
    """Add ``--output``, the file that a command writes."""
    parser.add_argument(
        '--output', metavar='<file>', required=required, help=meaning
    )


def add_servers_argument(
    parser: argparse.ArgumentParser,
    meaning: str = 'Also check whether the servers of all projects may run on '
    'their hosts',
) -> None:
    """Add ``--servers`` to the parser of a command that audits."""
    parser.add_argument('--servers', action='store_true', help=meaning)


def add_project_arguments(
    parser: argparse.ArgumentParser,
    meaning: str = 'Name or id of the project that requests the server; with '
    '--snapshot, its id',
    required: bool = False,
) -> None:
    """Add ``--project`` and ``--project-domain`` to a parser."""
    parser.add_argument(
        '--project', required=required, metavar='<project>', help=meaning
    )
    parser.add_argument(
        '--project-domain',
        metavar='<domain>',
        help='Name or id of the domain of the project, if several domains '
        'have a project of that name',
    )


def project_from(args: argparse.Namespace, cloud: Cloud) -> str | None:
    """Return the id of the project in the arguments; None if none is given."""
    if not args.project:
        return None
    return cloud.project(args.project, args.project_domain)


def live_cloud(
    app: Program, connect: 'Callable[[], Connection] | None' = None
) -> 'LiveCloud':
    """Return the live cloud."""
    # Imported late: novaclient and keystoneauth take longer to import than the
    # rest of a command.
    from isolate_aggregates.tools.cloud.live.live_cloud import LiveCloud

    return LiveCloud(app.conf, connect or app.connect)


@contextlib.contextmanager
def opened(app: Program, args: argparse.Namespace) -> Iterator[Cloud]:
    """Open the live cloud or the cloud file that the arguments name."""
    cloud: Cloud
    if args.snapshot:
        snapshot = cloud_file.load(args.snapshot)
        apply_settings(app.conf, snapshot)
        cloud = SnapshotCloud(snapshot)
    else:

        def connect() -> 'Connection':
            try:
                return app.connect()
            except tools_errors.NoCredentialsError as exc:
                raise tools_errors.NoCredentialsError(
                    'use a cloud file with --snapshot'
                ) from exc

        cloud = live_cloud(app, connect)
    with contextlib.closing(cloud):
        yield cloud


def check_live(
    parser: argparse.ArgumentParser, args: argparse.Namespace, *options: str
) -> None:
    """Exit with status 2 if ``--snapshot`` is used with certain options.

    :param options: The options that need a live cloud, such as ``servers``.
    """
    for option in options if args.snapshot else ():
        if getattr(args, option):
            parser.error(
                f'--{option} needs a live cloud: leave out --{option} or '
                '--snapshot'
            )


def check_metrics_client() -> None:
    """Check that prometheus-client is installed."""
    try:
        import prometheus_client  # noqa: F401
    except ImportError as exc:
        raise tools_errors.MetricsError(
            'The metrics need prometheus-client; install '
            'isolate-aggregates[metrics].'
        ) from exc


def apply_settings(conf: cfg.ConfigOpts, snapshot: Snapshot) -> None:
    """Make the scheduler settings of a snapshot the defaults."""
    for (group, option), value in snapshot.settings.items():
        text = document.as_configured(value)
        tools_options.set_default(conf, group, option, text)


def pair(what: str) -> Callable[[str], tuple[str, str]]:
    """Return a parser for arguments like ``<key>=<value>``.

    :param what: The name of the pair in errors, such as "scheduler hint".
    """

    def parse(text: str) -> tuple[str, str]:
        key, equals, value = text.partition('=')
        if not key or not equals:
            raise argparse.ArgumentTypeError(
                f'{text!r} is not a valid {what}; write <key>=<value>'
            )
        return key, value

    return parse


def positive(text: str) -> int:
    """Parse a positive integer."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(
            f'must be a positive integer, not {text!r}'
        )
    return int(text)


def warn_if_unguarded(cloud: Cloud, conf: cfg.ConfigOpts) -> None:
    """Warn if aggregates are tagged but isolation is switched off."""
    if conf[ia_conf.SCHEDULER].enable_isolated_aggregate_filtering:
        return
    number = sum(
        len(group.aggregates)
        for group in lock_groups(cloud.index, TRAIT_PREFIX, REQUIRED)
    )
    if not number:
        return
    if _is_unread(conf):
        why = (
            'no configuration was read, so the tag counts as without effect '
            f'here; specify nova.conf with {tools_options.CONFIG_FILE}'
        )
    else:
        why = (
            'the tag has no effect because [scheduler] '
            'enable_isolated_aggregate_filtering is false'
        )
    LOG.warning(
        'Aggregates tagged %s<NAME>=%s: %d; %s.',
        TRAIT_PREFIX,
        REQUIRED,
        number,
        why,
    )


def _is_unread(conf: cfg.ConfigOpts) -> bool:
    """Return whether neither a file nor a cloud file says what is on."""
    found = conf.get_location(
        'enable_isolated_aggregate_filtering', ia_conf.SCHEDULER
    )
    is_default = (
        found is not None and found.location is cfg.Locations.opt_default
    )
    return is_default and not (conf.config_file or conf.config_dir)
