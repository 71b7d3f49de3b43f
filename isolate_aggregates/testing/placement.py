# SPDX-License-Identifier: Apache-2.0
"""A Placement that is not there, answering over HTTP all the same.

requests-mock (extra ``testing``) stands in for the network, and
:mod:`~isolate_aggregates.testing.service` for Placement.
"""

import functools
import re
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib import parse

from keystoneauth1 import adapter, session, token_endpoint

from isolate_aggregates.cloud.snapshot import Snapshot
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.testing import service

if TYPE_CHECKING:
    import requests_mock

# Never resolved: the top level domain is reserved for tests.
URL = 'http://placement.test/placement'


class PlacementFixture:
    """Answers for a Placement that has the providers of a snapshot.

    A context manager, and good for ``useFixture()`` of testtools and fixtures.
    It can be read: ``GET`` of ``/``, ``/allocation_candidates``,
    ``/resource_providers`` and, of one provider, itself and its
    ``inventories``, ``usages``, ``aggregates`` and ``traits``. A bad query is
    answered with 400, a microversion that is too new with 406, what there is
    not with 404, and a change with 405. Microversions before 1.29 are
    answered with 501.

    :param snapshot: The cloud.
    :param max_microversion: The newest microversion it speaks, to 1.39.
    :param url: Its endpoint.
    :param http: Where else HTTP is mocked, so that other services can answer
        beside it. None to mock HTTP here; whatever is not for Placement then
        raises ``requests_mock.NoMockAddress``.
    :raises ValueError: if the microversion is none, or newer than 1.39.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        max_microversion: str = service.NEWEST,
        url: str = URL,
        http: 'requests_mock.Mocker | None' = None,
    ) -> None:
        self.url = url.rstrip('/')
        self._prefix = parse.urlsplit(self.url).path
        self._max_microversion = max_microversion
        self._given = http
        self._own: requests_mock.Mocker | None = None
        self._is_running = False
        self.load(snapshot)

    def load(self, snapshot: Snapshot) -> None:
        """Answer for another cloud from now on.

        :param snapshot: The cloud.
        """
        self._service = service.MockedService(
            snapshot, self._max_microversion, self._prefix
        )

    @functools.cached_property
    def adapter(self) -> adapter.Adapter:
        """A keystoneauth adapter for it."""
        auth = token_endpoint.Token(self.url, 'admin')
        return adapter.Adapter(session.Session(auth), service_type='placement')

    @functools.cached_property
    def client(self) -> PlacementClient:
        """A client of this package for it."""
        return PlacementClient(self.adapter)

    def start(self) -> Self:
        """Begin to answer.

        :raises RuntimeError: if it does already.
        :raises ImportError: if requests-mock is not installed.
        """
        if self._is_running:
            raise RuntimeError(f'{self.url} is mocked already')
        try:
            import requests_mock
        except ImportError as exc:
            raise ImportError(
                f'Placement cannot be mocked ({exc}); install '
                'isolate-aggregates[testing].'
            ) from exc
        mocker = self._given
        if mocker is None:
            mocker = self._own = requests_mock.Mocker(case_sensitive=True)
            mocker.start()
        mocker.register_uri(
            requests_mock.ANY,
            re.compile(rf'^{re.escape(self.url)}(?=[/?]|$)'),
            additional_matcher=lambda request: self._is_running,
            json=self._answer,
        )
        self._is_running = True
        return self

    def stop(self) -> None:
        """Answer no more; may be called again."""
        self._is_running = False
        if self._own is not None:
            self._own.stop()
            self._own = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    # The names by which testtools and fixtures call.

    def setUp(self) -> None:
        """Begin to answer, for ``useFixture()``."""
        self.start()

    def cleanUp(self) -> None:  # noqa: N802
        """Answer no more, for ``useFixture()``."""
        self.stop()

    def getDetails(self) -> dict[str, Any]:  # noqa: N802
        """Return nothing to add to the report of a failed test."""
        return {}

    def _answer(self, request: Any, context: Any) -> Any:
        parts = parse.urlsplit(request.url)
        answer = self._service.answer(
            request.method,
            parts.path.removeprefix(self._prefix),
            parts.query,
            request.headers.get('OpenStack-API-Version'),
        )
        context.status_code = answer.status
        context.headers['Content-Type'] = 'application/json'
        if answer.minor is not None:
            context.headers['OpenStack-API-Version'] = (
                f'placement 1.{answer.minor}'
            )
        return answer.document
