# SPDX-License-Identifier: Apache-2.0
"""Reads the host aggregates from Nova's API."""

from collections.abc import Callable, Sequence

from oslo_config import cfg

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.compute.api import NovaApi
from isolate_aggregates.rest.connection import Connection


class NovaclientSource:
    """The aggregates of a live cloud, through python-novaclient."""

    def __init__(
        self, conf: cfg.ConfigOpts, connect: Callable[[], Connection]
    ) -> None:
        self._nova = NovaApi(connect())

    def aggregates(self) -> Sequence[Aggregate]:
        """Read all host aggregates from Nova."""
        return self._nova.aggregates()
