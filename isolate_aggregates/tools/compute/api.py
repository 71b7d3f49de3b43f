# SPDX-License-Identifier: Apache-2.0
"""Connects to Nova's API, and reads the host aggregates.

It uses python-novaclient with the newest microversion that both Nova and this
package support.
"""

from collections.abc import Iterator
import contextlib
from typing import Any

from novaclient import api_versions
from novaclient import client as nova_client
from novaclient import exceptions as nova_exceptions

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.rest import client
from isolate_aggregates.rest.connection import Connection

# Nova without support for microversions.
_NO_MICROVERSIONS = api_versions.APIVersion('2.0')

# 2.41: uuids of aggregates; 2.61: flavors are listed with extra specs.
_AGGREGATE_UUIDS = api_versions.APIVersion('2.41')
INLINE_EXTRA_SPECS = api_versions.APIVersion('2.61')

# novaclient uses no newer microversion, as its requests here have not changed
# since.
_NEWEST = INLINE_EXTRA_SPECS


class NovaApi:
    """Nova's API, as far as all commands read it.

    Every method raises a ServiceError or one of its subclasses if Nova gives
    no usable answer, and ServiceTooOld if it does not provide the uuids of
    aggregates.
    """

    def __init__(self, connection: Connection) -> None:
        self._client = nova_client.Client(
            '2.1',
            session=connection.session,
            region_name=connection.region_name,
            endpoint_type=list(connection.interface),
            endpoint_override=connection.endpoints.get('compute'),
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

    @lazy_property
    def newest(self) -> api_versions.APIVersion:
        """The newest microversion that Nova supports."""
        with self.translated('its versions'):
            current = self._client.versions.get_current()
            if current is None:
                # novaclient raises this for a 401.
                raise nova_exceptions.Unauthorized(
                    401, method='GET', url='its versions'
                )
            return api_versions.APIVersion(
                current.version or _NO_MICROVERSIONS.get_string()
            )

    @lazy_property
    def client(self) -> Any:
        """novaclient, with the microversion to use."""
        self.require(
            _AGGREGATE_UUIDS, 'Ocata', 'reading the uuids of aggregates'
        )
        self._client.api_version = min(self.newest, _NEWEST)
        return self._client

    def require(
        self, oldest: api_versions.APIVersion, release: str, purpose: str
    ) -> None:
        """Check that Nova supports a microversion.

        :param purpose: What needs it, for example "reading the flavors".
        """
        if self.newest < oldest:
            raise exception.ServiceTooOld(
                'Nova',
                self.direct.endpoint,
                None
                if self.newest == _NO_MICROVERSIONS
                else self.newest.get_string(),
                f'{oldest.get_string()} ({release})',
                purpose,
            )

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
