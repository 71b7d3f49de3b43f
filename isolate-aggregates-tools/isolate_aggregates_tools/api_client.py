# SPDX-License-Identifier: Apache-2.0
"""The common part of the clients of commands."""

from typing import ClassVar

from isolate_aggregates.rest.client import Service
from isolate_aggregates.rest.connection import Connection


class ApiClient:
    """The API of one service.

    Every method raises a ServiceError or one of its subclasses if the service
    gives no usable answer.
    """

    # The name in messages, and the service type in the catalog.
    NAME: ClassVar[str]
    TYPE: ClassVar[str]

    def __init__(self, connection: Connection) -> None:
        self._service = Service(
            self.NAME,
            connection.adapter(self.TYPE),
            options=connection.options,
        )


def root(service: Service, version: str) -> str:
    """Return the prefix of paths, as endpoints may or may not have it."""
    endpoint = service.endpoint.rstrip('/')
    return '' if endpoint.endswith(f'/{version}') else f'/{version}'
