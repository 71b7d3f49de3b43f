# SPDX-License-Identifier: Apache-2.0
"""``candidates`` and ``query``: where a server may go, and what is asked."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from cliff import command, lister
from cliff.formatters import json_format, yaml_format
from oslo_log import log as logging

from isolate_aggregates import candidates
from isolate_aggregates import conf as ia_conf
from isolate_aggregates.cli import base
from isolate_aggregates.clouds import Cloud
from isolate_aggregates.destination import Destination
from isolate_aggregates.extra_specs import REQUIRED, TRAIT_PREFIX
from isolate_aggregates.pipeline import Pipeline

LOG = logging.getLogger(__name__)

# The formatters that can write more than a table.
_DOCUMENT_FORMATTERS: dict[str, Any] = {
    'json': json_format.JSONFormatter,
    'yaml': yaml_format.YAMLFormatter,
}


class ListCandidates(lister.Lister):
    """Show the hosts that may be used for a server, and why only those.

    As a table: the hosts, the constraints with their reasons, and the query
    that was sent to Placement. As json or yaml: one document with all of it.
    As csv or value: the hosts alone.
    """

    app: Any

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        base.add_request_arguments(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Find the hosts."""
        with base.opened(self.app, parsed_args) as cloud:
            pipeline = Pipeline.from_conf(self.app.conf)
            request = base.request_from(parsed_args, cloud)
            limit = base.limit_from(parsed_args, self.app.conf)
            self._outcome = candidates.find(cloud, pipeline, request, limit)
            _warn_if_unguarded(cloud, self.app.conf)
        rows = [
            (
                host.name,
                ', '.join(f'{rc} {n}' for rc, n in host.free.items()),
                host.candidates,
            )
            for host in self._outcome.hosts
        ]
        return ('Host', 'Free', 'Candidates'), rows

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
    ) -> int:
        """Write the hosts, with the rest where the format has room for it."""
        if parsed_args.formatter in _DOCUMENT_FORMATTERS:
            self._write_document(parsed_args)
            return 0
        super().produce_output(parsed_args, column_names, data)
        if parsed_args.formatter == 'table':
            self._write_reasons()
        return 0

    def _write_document(self, parsed_args: argparse.Namespace) -> None:
        outcome = self._outcome
        document = {
            'hosts': [
                {
                    'name': host.name,
                    'uuid': host.uuid,
                    'free': dict(host.free),
                    'candidates': host.candidates,
                }
                for host in outcome.hosts
            ],
            'constraints': _constraints(outcome.destination),
            'query': outcome.query.to_querystring(),
            'microversion': outcome.query.microversion,
        }
        formatter = _DOCUMENT_FORMATTERS[parsed_args.formatter]()
        formatter.emit_one(
            tuple(document),
            tuple(document.values()),
            self.app.stdout,
            parsed_args,
        )

    def _write_reasons(self) -> None:
        outcome = self._outcome
        write = self.app.stdout.write
        found = len(outcome.hosts)
        write(f'{found} {"host" if found == 1 else "hosts"} may be used.\n\n')
        write('Constraints:\n')
        for constraint in _constraints(outcome.destination):
            write(f'  {constraint["filter"]}: {constraint["reason"]}\n')
        if not outcome.destination.conclusions:
            write('  none\n')
        write(f'\nQuery (microversion {outcome.query.microversion}):\n')
        write(f'  {outcome.query.to_querystring()}\n')


class ShowQuery(command.Command):
    """Print the query string to send to Placement for a server.

    It belongs behind ``GET /allocation_candidates?``.
    """

    app: Any

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        base.add_request_arguments(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Print the query string."""
        with base.opened(self.app, parsed_args) as cloud:
            pipeline = Pipeline.from_conf(self.app.conf)
            request = base.request_from(parsed_args, cloud)
            limit = base.limit_from(parsed_args, self.app.conf)
            _, query = candidates.build_query(cloud, pipeline, request, limit)
            _warn_if_unguarded(cloud, self.app.conf)
        self.app.stdout.write(f'{query.to_querystring()}\n')


def _constraints(destination: Destination) -> list[dict[str, str]]:
    return [
        {
            'filter': conclusion.filter_name,
            'reason': conclusion.constraint.reason,
        }
        for conclusion in destination.conclusions
    ]


def _warn_if_unguarded(cloud: Cloud, conf: Any) -> None:
    """Say so when aggregates are tagged but the option is off."""
    if conf[ia_conf.SCHEDULER].enable_isolated_aggregate_filtering:
        return
    locked = sum(
        len(group.aggregates)
        for group in cloud.index.locks(TRAIT_PREFIX, REQUIRED)
    )
    if locked:
        LOG.warning(
            '%d of the aggregates are tagged %s<NAME>=%s, which has no effect '
            'because [scheduler] enable_isolated_aggregate_filtering is '
            'false.',
            locked,
            TRAIT_PREFIX,
            REQUIRED,
        )
