# SPDX-License-Identifier: Apache-2.0
"""The sizes of hosts, by tags of aggregates or as Nova tells them."""

from isolate_aggregates_tools.ledger.days import HostSize
from isolate_aggregates_tools.ledger.state import State

# Metadata of aggregates with the size of each of their hosts.
_SOCKETS, _CORES = 'ledger:sockets', 'ledger:cores'


def sizes(state: State) -> dict[str, HostSize]:
    """Return the sizes of hosts; tags of aggregates take precedence."""
    result = {
        host: HostSize(each.sockets, each.cores)
        for host, each in state.hosts.items()
    }
    for _, aggregate in sorted(state.aggregates.items()):
        sockets = _number(aggregate.metadata.get(_SOCKETS))
        cores = _number(aggregate.metadata.get(_CORES))
        for host in aggregate.hosts:
            size = result.get(host, HostSize())
            result[host] = HostSize(
                size.sockets if sockets is None else sockets,
                size.cores if cores is None else cores,
            )
    return result


def newer(
    before: dict[str, HostSize], after: dict[str, HostSize]
) -> dict[str, HostSize]:
    """Return sizes; what is no longer known stays as it was."""
    result = dict(before)
    for host, size in after.items():
        old = before.get(host, HostSize())
        result[host] = HostSize(
            old.sockets if size.sockets is None else size.sockets,
            old.cores if size.cores is None else size.cores,
        )
    return result


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
