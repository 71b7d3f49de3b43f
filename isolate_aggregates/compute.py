# SPDX-License-Identifier: Apache-2.0
"""Reads the host aggregates from Nova's API, with python-novaclient.

See `Host aggregates <https://docs.openstack.org/api-ref/compute/>`_.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
from typing import Any

from novaclient import client as nova_client
from novaclient import exceptions as nova_exceptions
from oslo_config import cfg

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.rest import client
from isolate_aggregates.rest.connection import Connection

# The uuids of aggregates.
_MICROVERSION = '2.41'
# What Nova's log and a rehearsal know requests of this package by.
USER_AGENT = 'isolate-aggregates'


class NovaApi:
    """Nova's API, as far as nova-scheduler reads it.

    Every method raises a ServiceError or one of its subclasses if Nova gives
    no usable answer.
    """

    def __init__(self, connection: Connection) -> None:
        self._client = nova_client.Client(
            _MICROVERSION,
            session=connection.session,
            region_name=connection.region_name,
            endpoint_type=list(connection.interface),
            endpoint_override=connection.endpoints.get('compute'),
            user_agent=USER_AGENT,
            connect_retries=client.RETRIES,
            connect_retry_delay=client.RETRY_DELAY,
            status_code_retries=client.RETRIES,
            status_code_retry_delay=client.RETRY_DELAY,
            retriable_status_codes=list(client.RETRIABLE),
        )
        # For what novaclient does not support, and for errors.
        self.direct = client.Service(
            'Nova',
            connection.adapter('compute'),
            options=connection.options,
        )

    @property
    def client(self) -> Any:
        """novaclient, with the microversion to use."""
        return self._client

    @contextlib.contextmanager
    def translated(self, what: str) -> Iterator[None]:
        """Translate novaclient's exceptions into ours.

        :param what: The requested objects, for example "the flavors".
        """
        try:
            with self.direct.translated(what):
                yield
        except nova_exceptions.ClientException as exc:
            raise self.direct.refusal(
                f'{exc.method} {exc.url}', exc.code, exc.message
            ) from exc
        except (
            nova_exceptions.UnsupportedVersion,
            LookupError,
            TypeError,
            AttributeError,
            ValueError,
        ) as exc:
            raise exception.ServiceError(
                'Nova',
                self.direct.endpoint,
                f'returned something other than {what}: {exc!r}; is this the '
                'right endpoint?',
            ) from exc

    def aggregates(self) -> list[Aggregate]:
        """Return all host aggregates."""
        nova = self.client
        with self.translated('the host aggregates'):
            return [
                Aggregate(
                    uuid=aggregate.uuid,
                    name=aggregate.name,
                    metadata=dict(aggregate.metadata),
                    hosts=frozenset(aggregate.hosts),
                    id=aggregate.id,
                    availability_zone=aggregate.availability_zone,
                )
                for aggregate in nova.aggregates.list()
            ]


class NovaclientSource:
    """The aggregates of a live cloud."""

    def __init__(
        self, conf: cfg.ConfigOpts, connect: Callable[[], Connection]
    ) -> None:
        self._nova = NovaApi(connect())

    def aggregates(self) -> Sequence[Aggregate]:
        """Read all host aggregates from Nova."""
        return self._nova.aggregates()
