# SPDX-License-Identifier: Apache-2.0
"""Loads the configured aggregate source."""

from collections.abc import Callable, Iterable, Mapping

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import entry_points, exception
from isolate_aggregates.aggregates import (
    AggregateIndex,
    AggregateSource,
    Membership,
)
from isolate_aggregates.rest.connection import Connection

NAMESPACE = 'isolate_aggregates.aggregate_sources'

_API = 'novaclient'


class IndexMembership:
    """The membership for sources that return aggregates with their hosts."""

    def __init__(self, index: Callable[[], AggregateIndex]) -> None:
        self._index = index

    def aggregates_of(
        self, hosts: Iterable[str]
    ) -> Mapping[str, frozenset[str]]:
        """Return the uuids of the aggregates of hosts, by host."""
        uuids = self._index().aggregates_of
        return {host: uuids.get(host, frozenset()) for host in hosts}


def membership(
    source: AggregateSource, index: Callable[[], AggregateIndex]
) -> Membership:
    """Return the membership for a source: the source itself, or its index."""
    if isinstance(source, Membership):
        return source
    return IndexMembership(index)


def load(
    conf: cfg.ConfigOpts,
    connect: Callable[[], Connection],
    name: str | None = None,
) -> AggregateSource:
    """Load an aggregate source; without a name, the configured one."""

    def error(name: str, problem: str) -> exception.ConfigError:
        return exception.ConfigError(
            f'[{ia_conf.GROUP}] aggregate_source',
            f'names {name}, which {problem}',
        )

    name = name or conf[ia_conf.GROUP].aggregate_source or _API
    [make] = entry_points.load(NAMESPACE, [name], error).values()
    source = make(conf, connect)
    if not isinstance(source, AggregateSource):
        raise error(
            name,
            f'is not an aggregate source: {type(source).__name__} has no '
            'method aggregates().',
        )
    return source
