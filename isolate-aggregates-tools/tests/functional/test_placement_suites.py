# SPDX-License-Identifier: Apache-2.0
"""The mocked Placement passes Placement's own functional tests.

Placement's functional tests are files of HTTP requests, which gabbi sends one
after the other. They run unchanged against the real Placement, with its
fixtures. Each GET request is also sent to a mocked Placement with the current
data of the real one, at each microversion that the mocked one answers.

``placement_suites.yaml`` lists the tests in which the answers differ, and why.
"""

import logging
import os
import pathlib
import threading
import types
import unittest
from unittest import mock

from gabbi import handlers, suitemaker, utils
from keystoneauth1 import adapter, session, token_endpoint
from mocked_answers import comparable
from placement import deploy
from placement.tests import functional
from placement.tests.functional.fixtures import gabbits
import pytest
import requests
import webob
import yaml

from isolate_aggregates_tools.cloud.live import snapshots
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.placement import edits
from isolate_aggregates_tools.placement.client import PlacementClient
from isolate_aggregates_tools.testing import service

SUITES = pathlib.Path(functional.__file__).parent / 'gabbits'
DIFFERENT = yaml.safe_load(
    pathlib.Path(__file__).with_name('placement_suites.yaml').read_text()
)
# One file of each kind, which is run more often.
QUICK = (
    'allocation-candidates-mappings-sharing',
    'basic-http',
    'resource-provider-links',
    'usage',
    'with-allocations',
)
NAMES = sorted(path.stem for path in SUITES.glob('*.yaml'))
# One before and one after each change of a path that is answered at both.
MICROVERSIONS = ['1.0', '1.9', '1.14', '1.18', '1.29', '1.35', '1.36', '1.39']
NO_NOVA = types.SimpleNamespace(compute_nodes=lambda: None)


class InProcess(adapter.Adapter):
    """Runs a WSGI application, one request at a time."""

    def __init__(self, application):
        url = 'http://placement.test'
        super().__init__(session.Session(token_endpoint.Token(url, 'admin')))
        self._application = application
        self._turn = threading.Lock()

    def request(self, url, method, microversion=None, **kwargs):
        """Answer a request."""
        asked = webob.Request.blank(
            url,
            method=method,
            headers={
                'X-Auth-Token': 'admin',
                'OpenStack-API-Version': f'placement {microversion}',
            },
        )
        with self._turn:
            found = asked.get_response(self._application)
        answer = requests.Response()
        answer.status_code = found.status_int
        answer.headers.update(found.headers)
        answer._content = found.body
        return answer


class Compared:
    """Placement, which records how a mocked one answers GET requests.

    ``different`` has the requests with different answers by test name.
    """

    def __init__(self):
        self.different = {}
        self.test = ''
        self.asked = 0
        self._real = None
        self._mocked = None

    def __call__(self, environ, start_response):
        """Answer as the real one does."""
        if self._real is None:
            self._real = deploy.loadapp(gabbits.CONF)
        asked = webob.Request(environ)
        if asked.method == 'GET':
            for each in (asked.copy(), *self._at_microversions(asked)):
                self._compare(each)
        else:
            self._mocked = None
        return self._real(environ, start_response)

    def _at_microversions(self, request):
        for microversion in MICROVERSIONS:
            again = request.copy()
            again.headers['OpenStack-API-Version'] = (
                f'placement {microversion}'
            )
            yield again

    def _compare(self, request):
        expected = _of_real(request.get_response(self._real))
        # The mocked one treats each token as that of an administrator.
        if expected.status == 403:
            return
        self.asked += 1
        self._mocked = self._mocked or _mocked(self._real)
        answer = self._mocked.answer(
            request.method,
            # As it is: gabbi does not encode it as WSGI requires.
            request.environ['PATH_INFO'],
            request.query_string,
            request.headers,
        )
        # Answered at other microversions only.
        if answer.status == 406 != expected.status:
            return
        found = comparable(answer.status, answer.headers, answer.document)
        if 'limit' in request.GET and found.status == expected.status == 200:
            # With a limit, the choice of candidates is not specified.
            found, expected = _number(found), _number(expected)
        if found != expected:
            self.different.setdefault(self.test, []).append(
                (request.environ['PATH_INFO'], found, expected)
            )


def _number(answer):
    return len(answer.document['allocation_requests'])


def _of_real(answer):
    is_json = answer.content_type == 'application/json' and answer.body
    return comparable(
        answer.status_int, answer.headers, answer.json if is_json else None
    )


def _mocked(application):
    """Return a mocked Placement with the data of the real one."""
    placement = PlacementClient(InProcess(application))
    classes = placement.get('/resource_classes')['resource_classes']
    snapshot = Snapshot(
        'Placement',
        providers=snapshots.take_providers(NO_NOVA, placement),
        traits=edits.known_traits(placement),
        resource_classes=frozenset(found['name'] for found in classes),
    )
    return service.MockedService(snapshot, service.NEWEST, '')


class Result(unittest.TestResult):
    """Tells which test is running."""

    def __init__(self, compared):
        super().__init__()
        self._compared = compared

    def startTest(self, test):  # noqa: N802
        """Record the name that a test has in its file."""
        self._compared.test = test.test_data['name']
        super().startTest(test)


@pytest.fixture
def compared(monkeypatch):
    """A Placement that logs little."""
    monkeypatch.setattr(logging.root.manager, 'disable', logging.CRITICAL)
    # Its fixtures set environment variables.
    with mock.patch.dict(os.environ):
        yield Compared()


@pytest.mark.parametrize(
    'suite',
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name in NAMES
    ],
)
def test_suites_of_placement_pass_against_the_simulator(suite, compared):
    tests = suitemaker.test_suite_from_dict(
        unittest.TestLoader(),
        suite,
        utils.load_yaml(yaml_file=SUITES / f'{suite}.yaml'),
        str(SUITES),
        'placement.test',
        None,
        gabbits,
        lambda: compared,
        handlers=[handler() for handler in handlers.RESPONSE_HANDLERS],
    )
    result = Result(compared)
    tests.run(result)
    assert not result.failures + result.errors
    listed = {
        test for entry in DIFFERENT for test in entry['tests'].get(suite, ())
    }
    new = {
        test: differences[0]
        for test, differences in compared.different.items()
        if test not in listed
    }
    assert new == {}
    assert listed == compared.different.keys()


def test_listed_suites_exist():
    assert NAMES
    for entry in DIFFERENT:
        assert entry['tests'].keys() <= set(NAMES), entry['reason']
