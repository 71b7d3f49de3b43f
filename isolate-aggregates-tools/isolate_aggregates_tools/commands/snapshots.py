# SPDX-License-Identifier: Apache-2.0
"""``snapshot save``: writes a cloud file."""

import argparse
import dataclasses
import logging
from typing import Any

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception, options
from isolate_aggregates_tools import domains as tools_domains
from isolate_aggregates_tools.cli import base, progress, usage
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.cloud.live import snapshots
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.commands import clouds

LOG = logging.getLogger(__name__)


class SaveSnapshot(usage.Command):
    """Write a cloud file from the live cloud.

    It has everything that decides where servers may go: aggregates, resource
    providers, flavors, images, and the scheduler settings of the configuration
    file. Of the servers it has what they were requested with, and their hosts.
    It has no credentials.
    """

    app: Any

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        base.add_output_argument(parser, 'Cloud file to write', required=True)
        parser.add_argument(
            '--no-servers',
            action='store_true',
            help='Leave out the servers of the projects',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        cloud_file.check_output(parsed_args.output)
        snapshot = with_names(
            self.app, taken(self.app, not parsed_args.no_servers)
        )
        cloud_file.save(snapshot, parsed_args.output)
        known = snapshot.servers
        servers = '' if known is None else f', {len(known.placed)} servers'
        self.app.stdout.write(
            f'Wrote {len(snapshot.aggregates)} aggregates, '
            f'{len(snapshot.providers)} resource providers{servers}, '
            f'{len(snapshot.flavors)} flavors and '
            f'{len(snapshot.images)} images to {parsed_args.output}.\n'
        )


def with_names(app: Any, snapshot: Snapshot) -> Snapshot:
    """Return a snapshot of the live cloud with the names in Keystone.

    Without them it is as good for all but tools that name projects.
    """
    # It loads keystoneauth, which cloud files do not need.
    from isolate_aggregates_tools.identity import KeystoneClient

    try:
        known = KeystoneClient(app.connect()).everything()
    except exception.ServiceError as exc:
        LOG.warning(
            'The names of projects are left out, so tools that are rehearsed '
            'cannot name projects: %s',
            exc,
        )
        return snapshot
    return dataclasses.replace(snapshot, keystone=known)


def taken(app: Any, servers: bool) -> Snapshot:
    """Return the live cloud with everything that a cloud file has.

    :param servers: Whether to read the servers of the projects.
    """
    conf = app.conf
    cloud = clouds.live_cloud(app)
    snapshot = snapshots.take(
        cloud.index,
        cloud.nova,
        cloud.glance,
        cloud.placement,
        {
            (ia_conf.GROUP, 'nova_release'): cloud.nova_releases[-1],
            **{
                (g, o): value
                for g, o in options.CLOUD_SETTINGS
                # Options that are not set stay unknown.
                if (value := options.value_of(conf, g, o)) is not None
            },
        },
        progress.reading,
    )
    named = tools_domains.of_all(snapshot.aggregates)
    snapshot = dataclasses.replace(
        snapshot, domains=cloud.domain_projects(named)
    )
    if not servers:
        return snapshot
    known = cloud.servers(snapshot, progress.reading)
    try:
        known = cloud.with_ports(known)
    except exception.ServiceError as exc:
        LOG.warning(
            'The ports of servers are left out, so explain --server '
            'does not know what they request: %s',
            exc,
        )
    return dataclasses.replace(
        snapshot, servers=known, images=tuple(known.images.values())
    )
