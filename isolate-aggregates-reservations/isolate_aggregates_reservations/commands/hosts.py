# SPDX-License-Identifier: Apache-2.0
"""``reservation host``: the hosts for reservations."""

import argparse
from collections.abc import Callable, Iterable

from oslo_log import log as logging

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception, filter_sets
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.decision import decide
from isolate_aggregates.request import Flavor
from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import names
from isolate_aggregates_reservations.commands import common, documents, times
from isolate_aggregates_reservations.host_health import host_problems
from isolate_aggregates_reservations.locks import Locks
from isolate_aggregates_reservations.status import slots_by_host
from isolate_aggregates_tools.cli import base, consent, output, preview
from isolate_aggregates_tools.cli.exit_status import ExitStatus
from isolate_aggregates_tools.request import Request

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

    columns = ('Host', 'Result')

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
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
        return parser

    def report(self, args: argparse.Namespace) -> output.Report:
        if args.delete_pool and not args.disable:
            self._usage.error('--delete-pool needs --disable')
        results = self._changed(args)
        # The changes were only shown.
        planned = self.changes if self.is_undone else ()
        return output.Report(
            document=lambda: documents.ChangedHosts(
                hosts=tuple(
                    documents.ChangedHost(host=host, result=result)
                    for host, result in results.items()
                ),
                planned=tuple(planned),
                effect=self.effect_document(),
            ),
            columns=self.columns,
            rows=results.items(),
            after=('', 'To be done:', *planned, *self.effect_lines())
            if planned
            else (),
            status=ExitStatus.ERROR
            if _FAILED in results.values()
            else ExitStatus.DONE,
        )

    def _changed(self, args: argparse.Namespace) -> dict[str, str]:
        """Change the hosts; return the result for each."""
        if args.enable:
            self._warn_if_open()
        store = common.store(self.app.conf, self.app.connect())
        # Remove duplicates, but keep the order.
        hosts = list(dict.fromkeys(args.host))
        results: dict[str, str] = {}
        plan = (
            reservations.to_enable if args.enable else reservations.to_disable
        )

        def find() -> list[str]:
            nonlocal hosts, results
            changes: list[str] = []

            def planned(host: str) -> str:
                words = [
                    f'host {host}: {action.words}'
                    for action in plan(store, host)
                ]
                changes.extend(words)
                return consent.PLANNED if words else _UNCHANGED

            results |= _results_of(hosts, planned)
            hosts = [
                host for host in hosts if results[host] == consent.PLANNED
            ]
            if args.delete_pool and _FAILED not in results.values():
                actions = reservations.to_delete_pool(store, args.host)
                changes += [action.words for action in actions]
            return changes

        def effect() -> list[str]:
            return self.preview(
                args,
                lambda: preview.loaded('pool')(self.app, hosts, args.enable),
            )

        if args.yes and args.delete_pool:
            # Raises now if it will be refused, before anything is changed.
            reservations.to_delete_pool(store, args.host)
        if not self.goes_ahead(args, find, effect):
            return results
        act = self._enable if args.enable else _disable
        results |= _results_of(hosts, lambda host: act(store, host))
        if args.disable:
            self._finish(args, _FAILED in results.values())
        return results

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

    def _finish(self, args: argparse.Namespace, has_failed: bool) -> None:
        """Delete the pool if asked to, or warn if it is empty.

        :param has_failed: Whether a host could not be disabled.
        """
        store = common.store(self.app.conf, self.app.connect())
        if args.delete_pool:
            if has_failed:
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


def _disable(store: reservations.ReservationStore, host: str) -> str:
    reservations.disable_host(store, host)
    return _DONE


def _results_of(
    hosts: Iterable[str], act: Callable[[str], str]
) -> dict[str, str]:
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

    columns = ('Host', 'State', 'Enabled', 'Slots', 'Used', 'Reservations')

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        base.add_snapshot_argument(parser)
        return parser

    def report(self, args: argparse.Namespace) -> output.Report:
        with common.reading(self.app, args) as store:
            state = store.read()
            hosts = list(state.hosts.values())
            now = store.read_at or times.now()
            problems = host_problems(store, state, now)
        for problem in problems:
            LOG.error('%s', problem)
        return output.Report(
            document=lambda: documents.Hosts(
                hosts=tuple(
                    documents.drawn(
                        documents.Host,
                        host,
                        enabled=host.is_enabled,
                        problems=tuple(
                            problem.problem
                            for problem in problems
                            if problem.host == host.name
                        ),
                        reservations=host.slots,
                    )
                    for host in hosts
                )
            ),
            columns=self.columns,
            rows=[
                (
                    host.name,
                    host.state.value,
                    host.is_enabled,
                    sum(on.total for on in host.slots.values()),
                    sum(on.used for on in host.slots.values()),
                    slots_by_host(host.slots),
                )
                for host in hosts
            ],
            nothing='There are no hosts for reservations.',
        )
