# SPDX-License-Identifier: Apache-2.0
"""Aggregate sources: where the host aggregates are read from.

A source is made with the configuration and a function that returns the
connection to the cloud, which it calls only if it needs one. Its method
``aggregates()`` returns all aggregates or raises; it never returns a part of
them, and never nothing for a cloud it could not read. One line under
``isolate_aggregates.aggregate_sources`` in ``setup.cfg`` makes a source known.
"""

from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any, Protocol, cast

from oslo_config import cfg
from stevedore import driver
from stevedore import exception as stevedore_exception

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.cloud.connection import Connection

NAMESPACE = 'isolate_aggregates.aggregate_sources'


class AggregateSource(Protocol):
    """Something that can read all host aggregates."""

    def aggregates(self) -> Sequence[Aggregate]:
        """Return all host aggregates.

        :raises IsolateAggregatesError: if they can not all be read.
        """


def load(
    conf: cfg.ConfigOpts, connect: Callable[[], Connection]
) -> AggregateSource:
    """Return the source that the configuration names.

    :param conf: A configuration with our options registered.
    :param connect: Returns the connection to the cloud.
    :raises ConfigError: if there is no such source, or it can not be loaded.
    """
    name = conf[ia_conf.GROUP].aggregate_source
    option = f'[{ia_conf.GROUP}] aggregate_source'

    def broken(_manager: object, entry_point: Any, exc: BaseException) -> None:
        raise exception.ConfigError(
            option,
            f'names {entry_point.name}, which can not be loaded from '
            f'{entry_point.value}: {exc}.',
        ) from exc

    try:
        manager: driver.DriverManager[Any] = driver.DriverManager(
            NAMESPACE,
            name,
            on_load_failure_callback=broken,
            warn_on_missing_entrypoint=False,
        )
    except stevedore_exception.NoMatches as exc:
        known = sorted(metadata.entry_points(group=NAMESPACE).names)
        raise exception.ConfigError(
            option,
            f'names {name}, which is not installed; known are '
            f'{", ".join(known)}.',
        ) from exc
    return cast('AggregateSource', manager.driver(conf, connect))
