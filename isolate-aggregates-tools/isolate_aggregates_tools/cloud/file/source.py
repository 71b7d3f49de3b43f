# SPDX-License-Identifier: Apache-2.0
"""Reads the host aggregates from a cloud file."""

from collections.abc import Callable, Sequence

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates_tools.cloud.file import cloud_file


class FileSource:
    """The aggregates of the file in ``[isolate_aggregates] cloud_file``."""

    def __init__(
        self, conf: cfg.ConfigOpts, connect: Callable[[], Connection]
    ) -> None:
        self._path = conf[ia_conf.GROUP].cloud_file
        if not self._path:
            raise exception.ConfigError(
                f'[{ia_conf.GROUP}] cloud_file',
                'is not set, but aggregate_source = file requires it.',
            )

    def aggregates(self) -> Sequence[Aggregate]:
        """Read all host aggregates from the file."""
        return cloud_file.load(self._path).aggregates
