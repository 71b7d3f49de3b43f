# SPDX-License-Identifier: Apache-2.0
"""Opens the cloud that a command names, and reads as much as it needs."""

import argparse
from collections.abc import Iterator, Sequence
import contextlib
import dataclasses
import logging
from typing import TYPE_CHECKING, cast

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates import options as tools_options
from isolate_aggregates.aggregates.index import lock_groups
from isolate_aggregates.request.extra_specs import REQUIRED, TRAIT_PREFIX
from isolate_aggregates_tools.cli import progress
from isolate_aggregates_tools.cli.base import Program
from isolate_aggregates_tools.cloud.cloud import Cloud
from isolate_aggregates_tools.cloud.file import cloud_file, document
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot

if TYPE_CHECKING:
    from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud
    from isolate_aggregates_tools.cloud.live.provider_memory import (
        ProviderMemory,
    )

LOG = logging.getLogger(__name__)


def add_servers_argument(
    parser: argparse.ArgumentParser,
    meaning: str = 'Also check whether the servers of all projects may run on '
    'their hosts',
) -> None:
    """Add ``--servers`` to the parser of a command that audits."""
    parser.add_argument('--servers', action='store_true', help=meaning)


def live_cloud(
    app: Program,
    memory: 'ProviderMemory | None' = None,
    remembers: bool = False,
) -> 'LiveCloud':
    """Return the live cloud.

    :param memory: What earlier rounds of a service have read; it learns.
    :param remembers: Whether to use what earlier commands have read of the
        resource providers. Only for commands that change nothing.
    """
    # Imported late: novaclient and keystoneauth take longer to import than the
    # rest of a command.
    from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud

    return LiveCloud(app.conf, app.connect, memory, remembers)


@contextlib.contextmanager
def opened(
    app: Program,
    args: argparse.Namespace,
    memory: 'ProviderMemory | None' = None,
    remembers: bool = False,
) -> Iterator[Cloud]:
    """Open the live cloud or the cloud file that the arguments name.

    :param memory: As for :func:`live_cloud`.
    :param remembers: As for :func:`live_cloud`.
    """
    cloud: Cloud
    if args.snapshot:
        snapshot = cloud_file.load(args.snapshot)
        apply_settings(app.conf, snapshot)
        cloud = SnapshotCloud(snapshot)
    else:
        cloud = live_cloud(app, memory, remembers)
    with contextlib.closing(cloud):
        yield cloud


def apply_settings(conf: cfg.ConfigOpts, snapshot: Snapshot) -> None:
    """Make the scheduler settings of a snapshot the defaults."""
    for (group, option), value in snapshot.settings.items():
        text = document.as_configured(value)
        tools_options.set_default(conf, group, option, text)


def read(cloud: Cloud, servers: bool) -> Snapshot:
    """Read everything that an effect depends on.

    :param servers: Whether to read the servers; a cloud file may have none.
    """
    if isinstance(cloud, SnapshotCloud):
        servers = servers and cloud.snapshot.servers is not None
    survey = cloud.survey(servers, progress.reading)
    return dataclasses.replace(survey.snapshot, servers=survey.servers)


def read_all(cloud: Cloud) -> tuple[Snapshot, Sequence[int]]:
    """Read everything that decides where servers can go.

    :returns: The cloud with its servers and their ports, and the possible
        releases of its Nova.
    """
    survey = cloud.survey(True, progress.reading)
    servers = survey.servers
    if servers and not isinstance(cloud, SnapshotCloud):
        live: LiveCloud = cast('LiveCloud', cloud)
        try:
            servers = live.with_ports(servers)
        except exception.ServiceError as exc:
            LOG.warning('It is not known what ports request: %s', exc)
    return (
        dataclasses.replace(survey.snapshot, servers=servers),
        survey.nova_releases,
    )


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
