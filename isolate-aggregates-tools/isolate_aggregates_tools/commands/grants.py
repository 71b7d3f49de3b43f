# SPDX-License-Identifier: Apache-2.0
"""``key add`` and ``key remove``: give the key of a lock, or take it back."""

import argparse

from isolate_aggregates import conf as ia_conf
from isolate_aggregates_tools.cli import base
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates_tools.commands import changes
from isolate_aggregates_tools.operate import domain_locks, grants
from isolate_aggregates_tools.operate.plan import Plan


class _KeyCommand(changes.ChangeCommand):
    live_options = ('yes', 'domain')

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            '--flavor', metavar='<flavor>', help='Name or id of the flavor'
        )
        what.add_argument(
            '--image', metavar='<image>', help='Name or id of the image'
        )
        what.add_argument(
            '--domain',
            metavar='<domain>',
            help='Name or id of the Keystone domain',
        )
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument(
            '--trait',
            type=base.trait,
            metavar='<trait>',
            help='Trait that locks the hosts',
        )
        where.add_argument(
            '--aggregate',
            metavar='<aggregate>',
            help='With --domain: name, uuid or number of the aggregate that '
            'is reserved for projects',
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Check the arguments and run the command."""
        if bool(parsed_args.domain) != bool(parsed_args.aggregate):
            self._usage.error('--domain and --aggregate need each other')
        return super().run(parsed_args)


class GrantKey(_KeyCommand):
    """Let servers of a flavor or an image use hosts locked by a trait.

    Makes the flavor or the image require the trait. Its servers can then use
    no other hosts; existing servers do not change. A domain is let in beside
    the projects and domains that an aggregate is reserved for.
    """

    def plan(self, cloud: LiveCloud, args: argparse.Namespace) -> Plan:
        if args.domain:
            return domain_locks.grant(cloud, args.aggregate, args.domain)
        if args.flavor:
            return grants.grant_flavor(cloud, args.flavor, args.trait)
        sources = self.app.conf[ia_conf.GROUP].trait_sources
        return grants.grant_image(cloud, args.image, args.trait, sources)


class RevokeKey(_KeyCommand):
    """Keep servers of a flavor or an image out of hosts locked by a trait.

    The flavor or the image no longer requires the trait. Existing servers do
    not change. Of a domain, the projects can no longer use the hosts of the
    aggregate.
    """

    def plan(self, cloud: LiveCloud, args: argparse.Namespace) -> Plan:
        if args.domain:
            return domain_locks.revoke(cloud, args.aggregate, args.domain)
        if args.flavor:
            return grants.revoke_flavor(cloud, args.flavor, args.trait)
        return grants.revoke_image(cloud, args.image, args.trait)
