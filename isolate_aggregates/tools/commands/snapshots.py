# SPDX-License-Identifier: Apache-2.0
"""``snapshot save`` and ``snapshot diff``: write and compare cloud files."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from typing import Any

from oslo_log import log as logging

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.aggregates import domains
from isolate_aggregates.text import escaped
from isolate_aggregates.tools.cli import base, fields, output, progress, usage
from isolate_aggregates.tools.cloud import diff
from isolate_aggregates.tools.cloud.file import cloud_file
from isolate_aggregates.tools.cloud.live import snapshots
from isolate_aggregates.tools.commands import documents
from isolate_aggregates.tools.effect import effect, shown

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
        conf = self.app.conf
        cloud_file.check_output(parsed_args.output)
        cloud = base.live_cloud(self.app)
        snapshot = snapshots.take(
            cloud.index,
            cloud.nova,
            cloud.glance,
            cloud.placement,
            {
                (ia_conf.GROUP, 'nova_release'): cloud.nova_releases[-1],
                **{
                    (g, o): value
                    for g, o in ia_conf.CLOUD_SETTINGS
                    # Options that are not set stay unknown.
                    if (value := ia_conf.value_of(conf, g, o)) is not None
                },
            },
            progress.reading,
        )
        named = domains.of_all(snapshot.aggregates)
        snapshot = dataclasses.replace(
            snapshot, domains=cloud.domain_projects(named)
        )
        servers = ''
        if not parsed_args.no_servers:
            known = cloud.servers(snapshot, progress.reading)
            try:
                known = cloud.with_ports(known)
            except exception.ServiceError as exc:
                LOG.warning(
                    'The ports of servers are left out, so explain --server '
                    'does not know what they request: %s',
                    exc,
                )
            snapshot = dataclasses.replace(
                snapshot, servers=known, images=tuple(known.images.values())
            )
            servers = f', {len(known.placed)} servers'
        cloud_file.save(snapshot, parsed_args.output)
        self.app.stdout.write(
            f'Wrote {len(snapshot.aggregates)} aggregates, '
            f'{len(snapshot.providers)} resource providers{servers}, '
            f'{len(snapshot.flavors)} flavors and '
            f'{len(snapshot.images)} images to {parsed_args.output}.\n'
        )


class DiffSnapshots(output.ReportLister):
    """Show what has changed between two cloud files, and its effect.

    The effect on servers, flavors, projects and findings is that of all
    differences together, with the settings of the newer file. As json or yaml:
    one document with the differences and the effect.
    """

    nothing = 'Both files describe the same cloud.'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'before', metavar='<before>', help='The older cloud file'
        )
        parser.add_argument(
            'after', metavar='<after>', help='The newer cloud file'
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        before = cloud_file.load(parsed_args.before)
        after = cloud_file.load(parsed_args.after)
        self._changes = list(diff.changes(before, after))
        base.apply_settings(self.app.conf, after)
        self._effect = effect(before, after, self.app.conf)
        rows = [
            (
                change.kind,
                change.name,
                change.what,
                *_shown(change),
            )
            for change in self._changes
        ]
        return ('Kind', 'Name', 'What', 'Before', 'After'), rows

    def document(self) -> documents.Diff:
        return documents.Diff(
            changes=tuple(
                documents.Changed(
                    kind=change.kind,
                    name=change.name,
                    what=change.what,
                    before=before.machine_readable(),
                    after=after.machine_readable(),
                )
                for change in self._changes
                for before, after in [_shown(change)]
            ),
            effect=shown.document(self._effect),
        )

    def after(self) -> Iterable[str]:
        """Yield the effect, the worst first."""
        if self._changes:
            yield from shown.lines(self._effect)


def _shown(change: diff.Change) -> list[fields.Value]:
    """Return the cells Before and After; for an object, "present" or empty."""
    both = change.before, change.after
    if not change.what:
        return [fields.Value(value and 'present') for value in both]
    return [
        _Names(value, other or ())
        # The order of a setting may matter.
        if isinstance(value, list) and change.kind != 'setting'
        else fields.Value(value)
        for value, other in (both, both[::-1])
    ]


class _Names(fields.Value):
    """A list of names; a table shows only those that others lack."""

    def __init__(self, value: list[Any], others: Sequence[Any]) -> None:
        super().__init__(value)
        self._others = others

    def human_readable(self) -> str:
        some = [
            _name(item) for item in self._value if item not in self._others
        ]
        same = len(self._value) - len(some)
        parts = [', '.join(some)] if some else []
        return ' and '.join([*parts, f'{same} in both'] if same else parts)


def _name(item: Any) -> str:
    if isinstance(item, Mapping):
        # An aggregate, or a port of a server.
        item = item.get('name') or item.get('uuid') or item['id']
    return escaped(str(item))
