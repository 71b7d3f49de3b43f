# SPDX-License-Identifier: Apache-2.0
"""``reservation host``: the hosts for reservations."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from oslo_log import log as logging

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception, reservations
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.decision import decide
from isolate_aggregates.request import Flavor
from isolate_aggregates.reservations import names
from isolate_aggregates.reservations.commands import common, times
from isolate_aggregates.reservations.host_health import host_problems
from isolate_aggregates.reservations.locks import Locks
from isolate_aggregates.tools import filter_sets
from isolate_aggregates.tools.cli import consent, output, preview
from isolate_aggregates.tools.request import Request

LOG = logging.getLogger(__name__)

_DONE = 'done'
_FAILED = 'failed'
_UNCHANGED = 'nothing to do'


class SetHosts(preview.Previewing, output.ReportLister):
    """Enable or disable hosts for reservations.

    --enable adds them to the pool, an aggregate that is created and locked if
    necessary to keep ordinary servers out, and gives each a resource provider
    for the slots of reservations below its own. A host with ordinary servers
    is refused. --disable makes them hosts for ordinary servers again. It is
    refused if reservations have slots there, which the message names, or if it
    may be a host of Blazar. If one host fails, this is reported and the others
    are still changed. Run it again after an error: it does what is missing.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'host',
            nargs='+',
            metavar='<host>',
            help='Name of the compute node, or of its compute service',
        )
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument(
            '--enable',
            action='store_true',
            help='Keep the hosts for servers of reservations',
        )
        which.add_argument(
            '--disable',
            action='store_true',
            help='Give the hosts back to ordinary servers',
        )
        parser.add_argument(
            '--delete-pool',
            action='store_true',
            help='With --disable: also delete the pool, with its lock and its '
            'trait; refused if it has other hosts or there are reservations',
        )
        self._usage = parser
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command.

        :returns: 0, 1 if a host failed, or 3 if nothing was done.
        """
        if parsed_args.delete_pool and not parsed_args.disable:
            self._usage.error('--delete-pool needs --disable')
        code = super().run(parsed_args)
        return int(self.has_failed) or code

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Change all hosts, after confirmation."""
        if parsed_args.enable:
            self._warn_if_open()
        store = common.store(self.app.conf, self.app.connect())
        # Remove duplicates, but keep the order.
        hosts = list(dict.fromkeys(parsed_args.host))
        self._results: dict[str, str] = {}
        verb = 'enable' if parsed_args.enable else 'disable'

        def find() -> list[str]:
            nonlocal hosts
            self._results |= _results_of(
                hosts, lambda host: _plan(store, parsed_args, host)
            )
            hosts = [
                host
                for host in hosts
                if self._results[host] == consent.PLANNED
            ]
            changes = [
                f'{verb} host {host} for reservations' for host in hosts
            ]
            if not self.has_failed:
                changes += _also(store, parsed_args)
            return changes

        def effect() -> list[str]:
            return self.preview_pool(parsed_args, hosts, parsed_args.enable)

        if parsed_args.yes:
            self.is_agreed = True
            # Raises now if it will be refused, before anything is changed.
            list(_also(store, parsed_args))
        else:
            if not self.agrees(parsed_args, find(), find, effect):
                return self._table()
        act = self._enable if parsed_args.enable else _disable
        self._results |= _results_of(hosts, lambda host: act(store, host))
        if parsed_args.disable:
            self._finish(parsed_args)
        return self._table()

    def _table(self) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        return ('Host', 'Result'), self._results.items()

    @property
    def has_failed(self) -> bool:
        """Whether a host failed."""
        return _FAILED in self._results.values()

    def document(self) -> dict[str, Any]:
        """Return the results as a JSON document."""
        return {
            'hosts': [
                {'host': host, 'result': result}
                for host, result in self._results.items()
            ],
            'effect': self.effect_document(),
        }

    def after(self) -> Iterable[str]:
        """Yield the effect, if the changes were only shown."""
        if self.is_undone:
            yield from self.effect_lines()

    def _enable(self, store: reservations.ReservationStore, host: str) -> str:
        enabled = reservations.enable_host(store, host)
        locks = Locks(
            store.compute.aggregates(), filter_sets.deciding(self.app.conf)
        )
        closed = locks.closed_to_flavor(
            Flavor(
                'of a reservation',
                extra_specs=names.flavor_extra_specs(
                    names.new_reservation_id()
                ),
            ),
            {enabled.name: enabled.service},
        )
        for name, reason in closed.items():
            LOG.warning(
                'Host %s %s. Only reservations whose flavors open it get '
                'slots there.',
                name,
                reason,
            )
        return _DONE

    def _warn_if_open(self) -> None:
        """Log a warning if no configured filter enforces the pool's lock."""
        name = self.app.conf[ia_conf.BLAZAR].aggregate_freepool_name
        pool = Aggregate('pool', name, names.POOL_METADATA)
        ordinary = decide(
            Request(Flavor('ordinary')),
            AggregateIndex([pool]),
            filter_sets.deciding(self.app.conf),
        ).destination
        if not ordinary.objections({pool.uuid}):
            LOG.warning(
                'With this configuration no filter keeps ordinary servers out '
                'of the pool; set [scheduler] '
                'enable_isolated_aggregate_filtering for nova-scheduler.'
            )

    def _finish(self, args: argparse.Namespace) -> None:
        """Delete the pool if asked to, or warn if it is empty."""
        store = common.store(self.app.conf, self.app.connect())
        if args.delete_pool:
            if self.has_failed:
                LOG.warning('The pool was not deleted.')
            else:
                reservations.delete_pool(store)
            return
        pool = store.read_pool()
        if pool and not pool.hosts:
            LOG.warning(
                'Pool %s has no hosts left. It stays locked; '
                '--delete-pool deletes it.',
                pool.name,
            )


def _plan(
    store: reservations.ReservationStore, args: argparse.Namespace, host: str
) -> str:
    is_needed = (
        reservations.would_enable_host
        if args.enable
        else reservations.would_disable_host
    )
    return consent.PLANNED if is_needed(store, host) else _UNCHANGED


def _also(
    store: reservations.ReservationStore, args: argparse.Namespace
) -> Iterable[str]:
    """Yield the deletion of the pool, if it is requested.

    It raises if it will be refused.
    """
    if args.delete_pool and reservations.would_delete_pool(store, args.host):
        yield 'delete the pool with its lock and its trait'


def _disable(store: reservations.ReservationStore, host: str) -> str:
    reservations.disable_host(store, host)
    return _DONE


def _results_of(
    hosts: Iterable[str], act: Callable[[str], str]
) -> dict[str, str]:
    """Return the result for each host."""
    results = {}
    for host in hosts:
        try:
            results[host] = act(host)
        except exception.IsolateAggregatesError as exc:
            LOG.error('%s', exc)
            results[host] = _FAILED
    return results


class ListHosts(output.ReportLister):
    """Show the hosts for reservations, and the slots on each.

    Also those that are only in the pool, or only have slots. As json or yaml:
    one document with the slots of each reservation.
    """

    nothing = 'There are no hosts for reservations.'

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """List the hosts."""
        store = common.store(self.app.conf, self.app.connect())
        state = store.read()
        self._hosts = list(state.hosts.values())
        self._problems = host_problems(store, state, times.now())
        for problem in self._problems:
            LOG.error('%s', problem)
        return (
            ('Host', 'State', 'Enabled', 'Slots', 'Used', 'Reservations'),
            [
                (
                    host.name,
                    host.state.value,
                    host.is_enabled,
                    sum(on.total for on in host.slots.values()),
                    sum(on.used for on in host.slots.values()),
                    common.slots_by_host(host.slots),
                )
                for host in self._hosts
            ],
        )

    def document(self) -> dict[str, Any]:
        """Return the hosts as a JSON document."""
        return {
            'hosts': [
                {
                    'name': host.name,
                    'service': host.service,
                    'state': host.state.value,
                    'enabled': host.is_enabled,
                    'in_pool': host.in_pool,
                    'obstacle': host.obstacle,
                    'problems': [
                        problem.problem
                        for problem in self._problems
                        if problem.host == host.name
                    ],
                    'reservations': common.hosts(host.slots),
                }
                for host in self._hosts
            ]
        }
