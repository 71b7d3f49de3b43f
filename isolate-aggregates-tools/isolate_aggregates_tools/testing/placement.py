# SPDX-License-Identifier: Apache-2.0
"""A mock of Placement's HTTP API.

requests-mock (extra ``testing``) replaces the network, and
:mod:`~isolate_aggregates_tools.testing.service` replaces Placement.
"""

from collections.abc import Iterable
import functools
import re
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib import parse
import weakref

from keystoneauth1 import adapter, session, token_endpoint

from isolate_aggregates.lazy import lazy_property
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.testing import builders, service

if TYPE_CHECKING:
    import requests_mock

# Never resolved: the top level domain is reserved for tests.
URL = 'http://placement.test/placement'

# The mocked endpoints by mocker. A mocker hides the endpoints of mockers that
# were started before, so all fixtures without an own mocker share one.
_endpoints: 'weakref.WeakKeyDictionary[requests_mock.Mocker, set[str]]'
_endpoints = weakref.WeakKeyDictionary()


class PlacementFixture:
    """A mocked Placement with the providers of a snapshot.

    It is a context manager, and can be used with ``useFixture()`` of testtools
    and fixtures. It answers all ``GET`` requests of Placement's API, with the
    same errors as Placement, at the microversions that Nova 31 to 34, Blazar,
    osc-placement and this package send. It answers others with 406, and
    requests that change something with 501. All tokens have administrator
    rights.

    :param snapshot: The cloud.
    :param max_microversion: The newest supported microversion, from 1.29 to
        1.39.
    :param url: Its endpoint. Fixtures that are active at the same time need
        different endpoints.
    :param http: An existing mocker, to mock other services too. None to create
        one; requests to other addresses then raise
        ``requests_mock.NoMockAddress``.
    :param traits: Further custom traits that exist in each loaded cloud, for
        those that no provider has.
    :param resource_classes: Further custom resource classes that exist in each
        loaded cloud, for those without an inventory.
    :raises ValueError: if the microversion is not one of these, or if the name
        of a trait or resource class is invalid.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        max_microversion: str = service.NEWEST,
        url: str = URL,
        http: 'requests_mock.Mocker | None' = None,
        traits: Iterable[str] = (),
        resource_classes: Iterable[str] = (),
    ) -> None:
        self.url = url.rstrip('/')
        self._prefix = parse.urlsplit(self.url).path
        self._max_microversion = max_microversion
        self._shared_mocker = http
        self._mocker: requests_mock.Mocker | None = None
        self._declared = tuple(traits), tuple(resource_classes)
        self.load(snapshot)

    def load(self, snapshot: Snapshot) -> None:
        """Replace the cloud."""
        self._service = service.MockedService(
            builders.declare(snapshot, *self._declared),
            self._max_microversion,
            self._prefix,
        )

    @lazy_property
    def adapter(self) -> adapter.Adapter:
        """A keystoneauth adapter for the mocked Placement."""
        auth = token_endpoint.Token(self.url, 'admin')
        return adapter.Adapter(session.Session(auth), service_type='placement')

    def start(self) -> Self:
        """Start the mock.

        :raises RuntimeError: if it has already been started, or another
            fixture has the same endpoint.
        :raises ImportError: if requests-mock is not installed.
        """
        try:
            import requests_mock
        except ImportError as exc:
            raise ImportError(
                f'Placement cannot be mocked ({exc}); install '
                'isolate-aggregates-tools[testing].'
            ) from exc
        mocker = self._shared_mocker or _own_mocker()
        endpoints = _endpoints.setdefault(mocker, set())
        if self.url in endpoints:
            raise RuntimeError(
                f'{self.url} is mocked already; give each fixture its own url'
            )
        mocker.register_uri(
            requests_mock.ANY,
            re.compile(rf'^{re.escape(self.url)}(?=[/?]|$)'),
            additional_matcher=lambda request: self._mocker is mocker,
            json=self._answer,
        )
        if not endpoints and not self._shared_mocker:
            mocker.start()
        endpoints.add(self.url)
        self._mocker = mocker
        return self

    def stop(self) -> None:
        """Stop the mock; may be called repeatedly."""
        mocker, self._mocker = self._mocker, None
        if mocker is None:
            return
        endpoints = _endpoints[mocker]
        endpoints.remove(self.url)
        if not endpoints and not self._shared_mocker:
            mocker.stop()
            _own_mocker.cache_clear()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    # The methods that useFixture() of testtools and fixtures calls.

    def setUp(self) -> None:
        """Start the mock, for ``useFixture()``."""
        self.start()

    def cleanUp(self) -> None:  # noqa: N802
        """Stop the mock, for ``useFixture()``."""
        self.stop()

    def getDetails(self) -> dict[str, Any]:  # noqa: N802
        """Return no details for the report of a failed test."""
        return {}

    def _answer(self, request: Any, context: Any) -> Any:
        parts = parse.urlsplit(request.url)
        answer = self._service.answer(
            request.method,
            parts.path.removeprefix(self._prefix),
            parts.query,
            request.headers,
        )
        context.status_code = answer.status
        context.headers.update(answer.headers)
        return answer.document


@functools.cache
def _own_mocker() -> 'requests_mock.Mocker':
    import requests_mock

    return requests_mock.Mocker(case_sensitive=True)
