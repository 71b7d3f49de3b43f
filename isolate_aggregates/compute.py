# SPDX-License-Identifier: Apache-2.0
"""Reads the host aggregates from Nova's API, in nova-scheduler.

See `Host aggregates <https://docs.openstack.org/api-ref/compute/>`_. Commands
use python-novaclient.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.rest import client
from isolate_aggregates.rest.connection import Connection

# Aggregates have uuids.
_MICROVERSION = '2.41'


class NovaApiSource:
    """The aggregates of a live cloud, from Nova's API."""

    def __init__(
        self, conf: cfg.ConfigOpts, connect: Callable[[], Connection]
    ) -> None:
        connection = connect()
        self._nova = client.Service(
            'Nova', connection.adapter('compute'), options=connection.options
        )

    def aggregates(self) -> Sequence[Aggregate]:
        """Read all host aggregates from Nova."""
        path = '/os-aggregates'
        document = self._nova.get(path, _MICROVERSION)
        return self._nova.parsed(path, _aggregates, document)


def _aggregates(document: Mapping[str, Any]) -> list[Aggregate]:
    return [
        Aggregate(
            uuid=each['uuid'],
            name=each['name'],
            metadata=dict(each['metadata']),
            hosts=frozenset(each['hosts']),
            id=each['id'],
            availability_zone=each['availability_zone'],
        )
        for each in document['aggregates']
    ]
