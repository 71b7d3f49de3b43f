# SPDX-License-Identifier: Apache-2.0
"""``grant`` and ``revoke``: give the key of a lock, or take it back."""

import argparse

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.tools.cli import changes
from isolate_aggregates.tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates.tools.operate import grants
from isolate_aggregates.tools.operate.plan import Plan


class _KeyCommand(changes.ChangeCommand):
    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            '--flavor', metavar='<flavor>', help='Name or id of the flavor'
        )
        what.add_argument(
            '--image', metavar='<image>', help='Name or id of the image'
        )
        parser.add_argument(
            '--trait',
            required=True,
            metavar='<trait>',
            help='Trait that locks the hosts',
        )
        return parser


class GrantKey(_KeyCommand):
    """Let servers of a flavor or an image use hosts locked by a trait.

    Makes the flavor or the image require the trait. Its servers can then use
    no other hosts; existing servers do not change.
    """

    def plan(self, cloud: LiveCloud, args: argparse.Namespace) -> Plan:
        if args.flavor:
            return grants.grant_flavor(cloud, args.flavor, args.trait)
        sources = self.app.conf[ia_conf.GROUP].trait_sources
        return grants.grant_image(cloud, args.image, args.trait, sources)


class RevokeKey(_KeyCommand):
    """Keep servers of a flavor or an image out of hosts locked by a trait.

    The flavor or the image no longer requires the trait. Existing servers do
    not change.
    """

    def plan(self, cloud: LiveCloud, args: argparse.Namespace) -> Plan:
        if args.flavor:
            return grants.revoke_flavor(cloud, args.flavor, args.trait)
        return grants.revoke_image(cloud, args.image, args.trait)
