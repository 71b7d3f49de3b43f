# SPDX-License-Identifier: Apache-2.0
"""Writes metadata of aggregates and extra specs of flavors into Nova.

See the `Compute API reference <https://docs.openstack.org/api-ref/compute/>`_.
Each call may be made again: it then changes nothing.
"""

from typing import Any
from urllib import parse

from novaclient import exceptions as nova_exceptions

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.cloud.nova_api import NovaApi
from isolate_aggregates.request import Flavor
from isolate_aggregates.rest.connection import Connection


class NovaWriter:
    """Nova, as far as it is written here.

    :param connection: How to reach it.
    :param retry_delay: Seconds to wait before each retry; None for half a
        second before the first one and twice as long before each further.
    """

    def __init__(
        self, connection: Connection, retry_delay: float | None = None
    ) -> None:
        self._api = NovaApi(connection, retry_delay)

    def set_metadata(
        self, aggregate: Aggregate, key: str, value: str | None
    ) -> None:
        """Set one metadata key of an aggregate; the others stay.

        :param aggregate: The aggregate as Nova told it, with its number.
        :param key: The key.
        :param value: The value; None takes the key away.
        :raises ServiceNotFound: if the aggregate is gone.
        :raises ServiceError: if it can not be done.
        """
        nova = self._api.client
        with self._api.translated(f'aggregate {aggregate.name}'):
            nova.aggregates.set_metadata(aggregate.id, {key: value})

    def set_extra_spec(self, flavor: Flavor, key: str, value: str) -> None:
        """Set one extra spec of a flavor; the others stay.

        :param flavor: The flavor.
        :param key: The key.
        :param value: The value.
        :raises ServiceNotFound: if the flavor is gone.
        :raises ServiceError: if it can not be done.
        """
        with self._api.translated(f'flavor {flavor.name}'):
            self._flavor(flavor).set_keys({key: value})

    def unset_extra_spec(self, flavor: Flavor, key: str) -> None:
        """Take one extra spec off a flavor, unless it is gone already.

        :param flavor: The flavor.
        :param key: The key.
        :raises ServiceError: if it can not be done.
        """
        with self._api.translated(f'flavor {flavor.name}'):
            try:
                self._flavor(flavor).unset_keys([key])
            except nova_exceptions.NotFound:
                # Somebody was faster.
                return

    def _flavor(self, flavor: Flavor) -> Any:
        """Return novaclient's flavor without asking Nova for it.

        An id is part of the address and may be anything.
        """
        manager = self._api.client.flavors
        return manager.resource_class(
            manager, {'id': parse.quote(flavor.id, safe='')}
        )
