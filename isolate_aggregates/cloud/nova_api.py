# SPDX-License-Identifier: Apache-2.0
"""Speaks with Nova's API through python-novaclient.

With the newest microversion that both the server and the modules here know.
"""

from collections.abc import Iterator
import contextlib
import functools
from typing import Any

from novaclient import api_versions
from novaclient import client as nova_client
from novaclient import exceptions as nova_exceptions

from isolate_aggregates import exception
from isolate_aggregates.rest import client
from isolate_aggregates.rest.connection import Connection

# Aggregates tell their uuid since 2.41 (Ocata), flavors their extra specs
# since 2.61. Nothing newer, or between, changes what is read or written.
_OLDEST = api_versions.APIVersion('2.41')
INLINE_EXTRA_SPECS = api_versions.APIVersion('2.61')
_NEWEST = INLINE_EXTRA_SPECS


class NovaApi:
    """Nova's API.

    :param connection: How to reach it.
    :param retry_delay: Seconds to wait before each retry; None for half a
        second before the first one and twice as long before each further.
    """

    def __init__(
        self, connection: Connection, retry_delay: float | None = None
    ) -> None:
        self._client = nova_client.Client(
            '2.1',
            session=connection.session,
            region_name=connection.region_name,
            endpoint_type=list(connection.interface),
            endpoint_override=connection.endpoints.get('compute'),
            connect_retries=client.RETRIES,
            connect_retry_delay=retry_delay,
            status_code_retries=client.RETRIES,
            status_code_retry_delay=retry_delay,
            retriable_status_codes=list(client.RETRIABLE),
        )
        self._service = client.Service(
            'Nova', self._client.client, retry_delay
        )
        self._offered = _OLDEST
        # For what novaclient does not know.
        self.direct = client.Service(
            'Nova', connection.adapter('compute'), retry_delay
        )

    @property
    def endpoint(self) -> str:
        """The endpoint, for messages."""
        return self._service.endpoint

    @property
    def newest(self) -> api_versions.APIVersion:
        """The newest microversion that Nova offers, asked for once."""
        return self.client and self._offered

    @functools.cached_property
    def client(self) -> Any:
        """The client, once it is known which microversion to speak.

        :raises ServiceTooOld: if Nova does not tell the uuids of aggregates.
        :raises ServiceError: if Nova gives no usable answer.
        """
        with self.translated('its versions'):
            current = self._client.versions.get_current()
            if current is None:
                # novaclient makes this of a 401.
                raise nova_exceptions.Unauthorized(
                    401, method='GET', url='its versions'
                )
            # Empty where there are no microversions.
            newest = current.version
            offered = api_versions.APIVersion(newest or '2.0')
        if offered < _OLDEST:
            raise exception.ServiceTooOld(
                'Nova',
                self.endpoint,
                newest,
                f'{_OLDEST.get_string()} (Ocata)',
                'reading the uuids of aggregates',
            )
        self._offered = offered
        self._client.api_version = min(offered, _NEWEST)
        return self._client

    @contextlib.contextmanager
    def translated(self, what: str) -> Iterator[None]:
        """Turn novaclient's errors into ours.

        :param what: What is asked for.
        :raises ServiceError: or the one of its kinds that says what happened.
        """
        try:
            with self._service.translated(what):
                yield
        except nova_exceptions.ClientException as exc:
            raise self._service.refusal(
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
                self.endpoint,
                f'gave something else than {what}: {exc!r}; is this the '
                'right endpoint?',
            ) from exc
