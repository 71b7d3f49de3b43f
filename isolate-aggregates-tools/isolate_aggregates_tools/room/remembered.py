# SPDX-License-Identifier: Apache-2.0
"""Remembers what becomes of servers, with the hosts that decided it."""

from collections.abc import Callable, Collection, Hashable, Iterator, Set
from typing import Generic, TypeVar

from isolate_aggregates_tools.room.kinds import Kind

_T = TypeVar('_T')

# What more hosts decide is not remembered.
_FEW = 1_000


class Memory(Generic[_T]):
    """Remembers what becomes of the same servers without other hosts.

    That is the same if it does not concern any of the hosts that were looked
    at.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[tuple[str, ...], list[str], _T]] = {}

    def of(
        self, key: Hashable, out: Set[str], find: Callable[[set[str]], _T]
    ) -> _T:
        """Return what is found, or was found before.

        :param key: Equal for the same servers.
        :param out: The hosts that take none.
        :param find: Finds it, and adds the hosts that it looks at to a set.
        """
        known = self._known.get(key)
        if known:
            hosts, missing, found = known
            if [host for host in hosts if host in out] == missing:
                return found
        looked_at: set[str] = set()
        found = find(looked_at)
        if len(looked_at) <= _FEW:
            missing = [host for host in looked_at if host in out]
            if known is None or len(missing) < len(known[1]):
                self._known[key] = tuple(looked_at), missing, found
        return found


class Remaining(Collection[str]):
    """The hosts of a kind without a few of them.

    Most servers find one among the first, of thousands.

    :param hosts: Those that may have room, in order.
    :param looked_at: Gets the hosts that somebody came to, also those that are
        left out.
    """

    def __init__(
        self,
        kind: Kind,
        hosts: Collection[str],
        out: Set[str],
        looked_at: set[str],
    ) -> None:
        self._kind = kind
        self._hosts = hosts
        self._out = out
        self._looked_at = looked_at

    def __iter__(self) -> Iterator[str]:
        for host in self._hosts:
            self._looked_at.add(host)
            if host not in self._out:
                yield host

    def __len__(self) -> int:
        return len(self._kind.hosts) - len(self._out & self._kind.hosts)

    def __contains__(self, host: object) -> bool:
        return any(host == one for one in self)
