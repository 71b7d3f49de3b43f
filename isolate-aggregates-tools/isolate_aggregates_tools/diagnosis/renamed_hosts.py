# SPDX-License-Identifier: Apache-2.0
"""Recognizes hosts that aggregates have by the name that they had before."""

from collections.abc import Iterator
import dataclasses

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.commands import Commands


@dataclasses.dataclass(frozen=True)
class RenamedHost:
    """A host with another name than its aggregates have.

    :param is_down: Whether the old name has a compute node still.
    """

    old: str
    new: str
    aggregates: tuple[Aggregate, ...]
    is_down: bool

    @property
    def commands(self) -> Commands:
        """The commands that give the aggregates the new name."""
        return tuple(
            command
            for aggregate in self.aggregates
            for command in (
                *commands.add_hosts(aggregate, [self.new]),
                *commands.remove_hosts(aggregate, [self.old]),
            )
        )


def renamed(snapshot: Snapshot) -> Iterator[RenamedHost]:
    """Yield the hosts with another name.

    The names of one host differ only in the domain or in case. The old one is
    down or gone, and the new one is up and in no aggregate.
    """
    by_host, down = snapshot.index.by_host, snapshot.down_hosts
    nodes = {node.host for node in snapshot.providers if node.host}
    new_names: dict[str, list[str]] = {}
    for host in sorted(nodes - down - by_host.keys()):
        new_names.setdefault(_short(host), []).append(host)
    for old in sorted(by_host.keys() - (nodes - down)) if new_names else ():
        others = new_names.get(_short(old), ())
        if len(others) == 1:
            yield RenamedHost(old, others[0], by_host[old], old in nodes)


def _short(host: str) -> str:
    return host.partition('.')[0].lower()
