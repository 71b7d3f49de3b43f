# SPDX-License-Identifier: Apache-2.0
"""``snapshot save``: the picture of a live cloud."""

import argparse
from typing import Any

from cliff import command

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.cloud import file as cloud_file
from isolate_aggregates.cloud import save
from isolate_aggregates.clouds import LiveCloud


class SaveSnapshot(command.Command):
    """Write a cloud file from the live cloud.

    It has what decides where servers may go, and no credentials: aggregates,
    resource providers, flavors, images, and the scheduler settings that the
    configuration file has.
    """

    app: Any

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        parser.add_argument('file', help='Cloud file to write')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Take the snapshot and write it."""
        conf = self.app.conf
        cloud = LiveCloud(conf, self.app.connect)
        snapshot = save.take(
            cloud.index,
            cloud.nova,
            cloud.glance,
            cloud.placement,
            {(g, o): conf[g][o] for g, o in ia_conf.CLOUD_SETTINGS},
        )
        cloud_file.save(snapshot, parsed_args.file)
        self.app.stdout.write(
            f'Wrote {len(snapshot.aggregates)} aggregates, '
            f'{len(snapshot.providers)} resource providers, '
            f'{len(snapshot.flavors)} flavors and '
            f'{len(snapshot.images)} images to {parsed_args.file}.\n'
        )
