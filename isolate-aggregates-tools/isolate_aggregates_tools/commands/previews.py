# SPDX-License-Identifier: Apache-2.0
"""Computes the effect of changes for the commands that make them."""

from collections.abc import Iterable, Iterator
import dataclasses

from isolate_aggregates_tools.cli.base import Program
from isolate_aggregates_tools.cloud.changes import Change, pool
from isolate_aggregates_tools.cloud.cloud import Cloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.effect import Effect, documents, effect, shown


@dataclasses.dataclass(frozen=True)
class ShownEffect:
    """An effect, as a command shows it."""

    effect: Effect

    def lines(self) -> Iterator[str]:
        """Yield the effect, the worst first."""
        return shown.lines(self.effect)

    def document(self) -> documents.Effect:
        """Return what "effect show" writes as json."""
        return shown.document(self.effect)


def of_change(app: Program, change: Change, cloud: Cloud) -> ShownEffect:
    """Return the effect of a change.

    :param cloud: The cloud; its data must not have been read before.
    """
    before = clouds.read(cloud, True)
    return ShownEffect(effect(before, change(before), app.conf))


def of_moves(app: Program, before: Snapshot, after: Snapshot) -> ShownEffect:
    """Return the effect of moving servers.

    :param after: The cloud with its servers on other hosts.
    """
    return ShownEffect(effect(before, after, app.conf, after.servers))


def of_pool(app: Program, hosts: Iterable[str], enable: bool) -> ShownEffect:
    """Return the effect of more or fewer reservable hosts."""
    return of_change(app, pool(hosts, enable), clouds.live_cloud(app))
