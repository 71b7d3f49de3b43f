# SPDX-License-Identifier: Apache-2.0
"""Shows the effect of changes before they are made."""

import argparse
from collections.abc import Iterable

from isolate_aggregates import exception
from isolate_aggregates.tools.cli import base, consent
from isolate_aggregates.tools.cli.reading import read
from isolate_aggregates.tools.cloud.changes import Change, pool
from isolate_aggregates.tools.cloud.cloud import Cloud
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.effect import Effect, documents, effect, shown


class Previewing(consent.Confirming):
    """A mixin for commands that show the effect of their changes.

    It is shown before the question, and with ``--dry-run``. To compute it, the
    whole cloud is read.
    """

    _effect: Effect | None = None
    _problem = ''

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--no-effect',
            action='store_true',
            help='Do not show what the changes would do to servers, flavors '
            'and projects; with many hosts, this saves time',
        )
        return parser

    def preview(
        self, args: argparse.Namespace, change: Change, cloud: Cloud
    ) -> list[str]:
        """Return lines that describe the effect of a change.

        :param cloud: The cloud; its data must not have been read before.
        """
        self._effect, self._problem = None, ''
        if args.no_effect:
            return []
        try:
            before = read(cloud, True)
            self._effect = effect(before, change(before), self.app.conf)
        except exception.IsolateAggregatesError as exc:
            self._problem = str(exc)
        return list(self.effect_lines())

    def preview_moved(
        self, args: argparse.Namespace, before: Snapshot, after: Snapshot
    ) -> list[str]:
        """Return lines that describe the effect of moving servers.

        :param after: The cloud with its servers on other hosts.
        """
        self._effect, self._problem = None, ''
        if args.no_effect:
            return []
        self._effect = effect(before, after, self.app.conf, after.servers)
        return list(self.effect_lines())

    def preview_pool(
        self, args: argparse.Namespace, hosts: Iterable[str], enable: bool
    ) -> list[str]:
        """Return lines on the effect of more or fewer reservable hosts."""
        change = pool(hosts, enable)
        return self.preview(args, change, base.live_cloud(self.app))

    def effect_lines(self) -> Iterable[str]:
        """Yield the effect of the changes, the worst first."""
        if self._problem:
            yield f'The effect is not known: {self._problem}'
        if self._effect is None:
            return
        yield from shown.lines(self._effect)

    def effect_document(self) -> documents.Effect | None:
        """Return the effect as a document; None if it was not computed."""
        if self._effect is None:
            return None
        return shown.document(self._effect)
