# SPDX-License-Identifier: Apache-2.0
"""The two ways to say the same with fewer aggregates."""

from collections.abc import Callable, Iterable, Mapping
import heapq

from isolate_aggregates.aggregates.rollups import Rollup

Hosts = Mapping[str, frozenset[str]]


def with_rollups(
    forbidden: frozenset[str],
    rollups: Iterable[Rollup],
    covered: Callable[[Rollup], frozenset[str]],
) -> tuple[tuple[Rollup, ...], frozenset[str]]:
    """Return rollups to forbid, and the aggregates that are left.

    A rollup is of use only if all that it stands for is forbidden; else it
    would forbid more. An aggregate is replaced only if all its members are
    members of the rollup; else less would be forbidden.

    :param forbidden: Uuids of the forbidden aggregates.
    :param rollups: All rollups, those of most aggregates first.
    :param covered: Returns the uuids of those aggregates of a rollup whose
        members are all members of the rollup.
    """
    chosen: list[Rollup] = []
    left = set(forbidden)
    for rollup in rollups:
        if (
            rollup.aggregates <= forbidden
            and len(rollup.aggregates & left) > 1
            and len(replaced := covered(rollup) & left) > 1
        ):
            chosen.append(rollup)
            left -= replaced
    return tuple(chosen), frozenset(left)


def without_empty(aggregates: frozenset[str], hosts: Hosts) -> frozenset[str]:
    """Return the aggregates that have hosts, or of which it is not known.

    :param aggregates: Uuids of the aggregates.
    :param hosts: Names of hosts by uuid of their aggregate.
    """
    return frozenset(a for a in aggregates if hosts.get(a, True))


def fewest(
    aggregates: frozenset[str], hosts: Hosts, covered: Iterable[str]
) -> frozenset[str]:
    """Return few of some aggregates that have all their hosts.

    The greedy set cover: it takes the aggregate with most hosts that are not
    covered yet until none is left. An aggregate whose hosts are not known
    stays.

    :param aggregates: Uuids of the aggregates.
    :param hosts: Names of hosts by uuid of their aggregate.
    :param covered: Uuids of other aggregates whose hosts are covered anyway.
    """
    chosen = {a for a in aggregates if a not in hosts}
    done = frozenset().union(*(hosts.get(a, frozenset()) for a in covered))
    open_hosts = {
        a: hosts[a] - done for a in sorted(aggregates) if a not in chosen
    }
    # Largest first; the numbers only shrink, so one that is out of date is
    # put back with the true one.
    waiting = [(-len(found), a) for a, found in open_hosts.items() if found]
    heapq.heapify(waiting)
    while waiting:
        size, aggregate = heapq.heappop(waiting)
        found = open_hosts[aggregate] - done
        if -size == len(found):
            chosen.add(aggregate)
            done |= found
        elif found:
            heapq.heappush(waiting, (-len(found), aggregate))
    return frozenset(chosen)
