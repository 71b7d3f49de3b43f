# SPDX-License-Identifier: Apache-2.0
"""``provider set`` and ``provider unset``: one trait or one membership."""

import argparse

from isolate_aggregates_tools.cli import base
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates_tools.commands import changes
from isolate_aggregates_tools.operate import providers
from isolate_aggregates_tools.operate.plan import Plan


class _ProviderCommand(changes.ChangeCommand):
    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'provider',
            metavar='<provider>',
            help='Name or uuid of the resource provider; a compute node has '
            'the name that nova-compute gives its hypervisor',
        )
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            '--trait', type=base.trait, metavar='<trait>', help='Trait'
        )
        what.add_argument(
            '--aggregate',
            metavar='<aggregate>',
            help='Name, uuid or number of the aggregate; of one that only '
            'Placement has, the uuid',
        )
        return parser

    def again(
        self, cloud: LiveCloud, args: argparse.Namespace, previous: Plan
    ) -> Plan:
        return self.plan(cloud, args)


class SetProvider(_ProviderCommand):
    """Add a trait to a resource provider, or add it to an aggregate.

    All other traits and memberships stay, also those that others change at
    the same time. A trait that is missing in Placement is created.
    """

    def plan(self, cloud: LiveCloud, args: argparse.Namespace) -> Plan:
        if args.trait:
            return providers.add_trait(cloud, args.provider, args.trait)
        return providers.add_aggregate(cloud, args.provider, args.aggregate)


class UnsetProvider(_ProviderCommand):
    """Remove a trait from a resource provider, or it from an aggregate.

    All other traits and memberships stay, also those that others change at
    the same time. The host aggregate in Nova does not change.
    """

    def plan(self, cloud: LiveCloud, args: argparse.Namespace) -> Plan:
        if args.trait:
            return providers.remove_trait(cloud, args.provider, args.trait)
        return providers.remove_aggregate(cloud, args.provider, args.aggregate)
