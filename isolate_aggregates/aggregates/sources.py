# SPDX-License-Identifier: Apache-2.0
"""Aggregate sources: where the host aggregates are read from.

A source is made with the configuration and a function that returns the
connection to the cloud, which it calls only if it needs one. Its method
``aggregates()`` returns all aggregates or raises; it never returns a part of
them, and never nothing for a cloud it could not read. One line under
``isolate_aggregates.aggregate_sources`` in ``setup.cfg`` makes a source known.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, cast

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import entry_points, exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.rest.connection import Connection

NAMESPACE = 'isolate_aggregates.aggregate_sources'


class AggregateSource(Protocol):
    """Something that can read all host aggregates."""

    def aggregates(self) -> Sequence[Aggregate]:
        """Return all host aggregates.

        :raises IsolateAggregatesError: if they can not all be read.
        """


def load(
    conf: cfg.ConfigOpts,
    connect: Callable[[], Connection],
    name: str | None = None,
) -> AggregateSource:
    """Return the source that the configuration names.

    :param conf: A configuration with our options registered.
    :param connect: Returns the connection to the cloud.
    :param name: The name of another source to return instead.
    :raises ConfigError: if there is no such source, or it can not be loaded.
    """

    def error(name: str, problem: str) -> exception.ConfigError:
        return exception.ConfigError(
            f'[{ia_conf.GROUP}] aggregate_source',
            f'names {name}, which {problem}',
        )

    name = name or conf[ia_conf.GROUP].aggregate_source
    [make] = entry_points.load(NAMESPACE, [name], error).values()
    return cast('AggregateSource', make(conf, connect))
