# SPDX-License-Identifier: Apache-2.0
"""``lock create`` and ``lock delete``: isolate an aggregate, or stop it."""

import argparse
from collections.abc import Iterable

from isolate_aggregates import conf as ia_conf
from isolate_aggregates_tools.cli import base
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates_tools.commands import change_documents as documents
from isolate_aggregates_tools.commands import changes, clouds
from isolate_aggregates_tools.documents import Aggregate
from isolate_aggregates_tools.locks import key_holders
from isolate_aggregates_tools.operate import domain_locks, lock, unlock
from isolate_aggregates_tools.operate.plan import Plan, joined


class LockAggregate(changes.ChangeCommand):
    """Let only servers with some traits or projects use hosts of an aggregate.

    Creates the traits, adds missing hosts to the aggregate's Placement
    aggregate, tags the aggregate and adds the traits to the hosts' resource
    providers, in this order: until it is done, the hosts take no new servers.
    Run it again after an error, or for new hosts: it does what is missing.
    With domains, the aggregate gets tags for them and their projects.
    """

    live_options = ('yes', 'domain')

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_aggregate(parser)
        parser.add_argument(
            '--trait',
            action='append',
            default=[],
            type=base.trait,
            metavar='<trait>',
            help='Trait that servers must require, such as '
            'CUSTOM_LICENSED_WINDOWS; if repeated, they must require all',
        )
        parser.add_argument(
            '--domain',
            action='append',
            default=[],
            metavar='<domain>',
            help='Name or id of the Keystone domain whose projects may use '
            'the hosts; if repeated, the projects of all of them',
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Check the arguments and run the command."""
        if not parsed_args.trait and not parsed_args.domain:
            self._usage.error('--trait or --domain is required')
        return super().run(parsed_args)

    def plan(self, cloud: LiveCloud, args: argparse.Namespace) -> Plan:
        plans = []
        if args.domain:
            plans.append(domain_locks.lock(cloud, args.aggregate, args.domain))
        if args.trait:
            plans.append(lock.plan(cloud, args.aggregate, args.trait))
        return joined(plans)

    def again(
        self, cloud: LiveCloud, args: argparse.Namespace, previous: Plan
    ) -> Plan:
        return self.plan(cloud, args)

    def remains(
        self, cloud: LiveCloud, plan: Plan, args: argparse.Namespace
    ) -> Iterable[tuple[bool, str]]:
        """Yield which flavors and images can use the hosts."""
        group = self.app.conf[ia_conf.GROUP]
        if args.domain and 'isolate_tenants' not in group.request_filters:
            yield (
                True,
                'name isolate_tenants in [isolate_aggregates] request_filters '
                'of nova-scheduler; without it, only a host filter of Nova '
                'keeps out other projects, if it is enabled',
            )
        if not plan.traits:
            return
        clouds.warn_if_unguarded(cloud, self.app.conf)
        sources = self.app.conf[ia_conf.GROUP].trait_sources
        yield from key_holders.after_lock(cloud, plan.traits, sources)
        if plan.aggregate:
            for note in key_holders.flavors_without_key(
                cloud, plan.aggregate, plan.traits, self.app.conf
            ):
                yield False, note

    def document(
        self, changes: documents.Changes, plan: Plan, args: argparse.Namespace
    ) -> documents.LockChanges:
        """Return the changes, and the aggregate with the lock it has then."""
        aggregate = plan.aggregate
        return documents.LockChanges(
            lock=documents.NewLock(
                aggregate=Aggregate(name=aggregate.name, uuid=aggregate.uuid),
                hosts=tuple(sorted(aggregate.hosts)),
                traits=plan.traits,
                domains=tuple(args.domain),
            )
            if aggregate
            else None,
            **vars(changes),
        )


class UnlockAggregate(changes.ChangeCommand):
    """Let all servers use the hosts of an aggregate again.

    Removes the traits from the hosts' resource providers, except those that
    another program or person added and those that another aggregate of the
    host requires, and removes the tag from the aggregate. Until it is done,
    the hosts take no new servers. With hosts, only they lose the traits, and
    leave the aggregate.
    """

    live_options = ('yes', 'domain')

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_aggregate(parser)
        parser.add_argument(
            '--trait',
            action='append',
            default=[],
            metavar='<trait>',
            help='Trait that servers no longer need to require; may be '
            'repeated. Default without --domain: all that lock the aggregate',
        )
        parser.add_argument(
            '--domain',
            action='append',
            default=[],
            metavar='<domain>',
            help='Name or id of a Keystone domain for whose projects the '
            'hosts are no longer kept; may be repeated',
        )
        parser.add_argument(
            '--host',
            action='append',
            default=[],
            metavar='<host>',
            help='Host to take out of the aggregate, which stays locked: it '
            'loses the traits first, so that no server with the key is placed '
            'there meanwhile; may be repeated, not with --trait or --domain',
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Check the arguments and run the command."""
        if parsed_args.host and (parsed_args.trait or parsed_args.domain):
            self._usage.error(
                '--host is not allowed with --trait or --domain: a host that '
                'leaves the aggregate leaves all its locks'
            )
        return super().run(parsed_args)

    def plan(self, cloud: LiveCloud, args: argparse.Namespace) -> Plan:
        if args.host:
            return unlock.plan(cloud, args.aggregate, (), leaving=args.host)
        plans = []
        if args.trait or not args.domain:
            plans.append(unlock.plan(cloud, args.aggregate, args.trait))
        if args.domain:
            plans.append(
                domain_locks.unlock(cloud, args.aggregate, args.domain)
            )
        return joined(plans)

    def again(
        self, cloud: LiveCloud, args: argparse.Namespace, previous: Plan
    ) -> Plan:
        """Return what is missing to remove the traits of the first plan."""
        if not previous.traits:
            return Plan()
        return unlock.plan(
            cloud, args.aggregate, previous.traits, True, args.host
        )

    def remains(
        self, cloud: LiveCloud, plan: Plan, args: argparse.Namespace
    ) -> Iterable[tuple[bool, str]]:
        """Yield which flavors and images still require the traits."""
        if args.host:
            return ()
        sources = self.app.conf[ia_conf.GROUP].trait_sources
        return key_holders.after_unlock(cloud, plan.traits, sources)


def _add_aggregate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'aggregate',
        metavar='<aggregate>',
        help='Name, uuid or number of the aggregate',
    )
