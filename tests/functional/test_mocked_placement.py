# SPDX-License-Identifier: Apache-2.0
"""The mocked Placement that helps to test filters answers as the real one."""

from collections.abc import Iterator, Mapping
import dataclasses
import json
import pathlib
import sys
from typing import Any
import unittest

import fixtures
from keystoneauth1 import adapter
import pytest
import requests
import requests_mock
from small_clouds import NESTED, RACK, TWO, forbid_locked
import testtools

from isolate_aggregates import exception, testing
from isolate_aggregates.cloud import file as cloud_file
from isolate_aggregates.cloud import load
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.placement.embedded import EmbeddedPlacement

pytest_plugins = ['isolate_aggregates.testing.plugin']

ROOT = pathlib.Path(__file__).parents[2]
UUIDS = {provider.name: provider.uuid for provider in NESTED.providers}


@pytest.fixture(scope='module')
def real() -> Iterator[adapter.Adapter]:
    """A real Placement that has the nested cloud."""
    placement = EmbeddedPlacement()
    client = placement.open()
    load.into_placement(NESTED, PlacementClient(client))
    yield client
    placement.close()


@pytest.fixture
def mocked() -> Iterator[testing.PlacementFixture]:
    """A mocked one that has it too."""
    with testing.PlacementFixture(NESTED) as placement:
        yield placement


@dataclasses.dataclass(frozen=True)
class Comparable:
    """What has to be the same of two answers."""

    status: int
    content_type: str
    microversion: str | None
    document: Any


def ask(
    client: adapter.Adapter,
    path: str,
    version: str | None,
    method: str = 'GET',
) -> Comparable:
    """Return an answer without what may differ."""
    headers = {'Accept': 'application/json'}
    if version is not None:
        headers['OpenStack-API-Version'] = version
    answer = client.request(path, method, headers=headers, raise_exc=False)
    return Comparable(
        answer.status_code,
        answer.headers['Content-Type'],
        answer.headers.get('OpenStack-API-Version'),
        comparable(answer.json()),
    )


def comparable(value: Any) -> Any:
    """Return JSON in one order, without what may differ.

    Generations count changes, errors have words, codes and numbers of their
    own.
    """
    if isinstance(value, Mapping):
        free = (
            'generation', 'resource_provider_generation', 'detail', 'code',
            'request_id',
        )  # fmt: skip
        return {
            key: 'something' if key in free else comparable(item)
            for key, item in sorted(value.items())
        }
    if isinstance(value, list):
        return sorted(map(comparable, value), key=json.dumps)
    return value


RACK_ = f'in:{RACK.uuid}'
NUMA0 = '/resource_providers/{numa0}'


@pytest.mark.parametrize('minor', [29, 33, 34, 39])
@pytest.mark.parametrize(
    'path',
    [
        '/',
        '',
        '/resource_providers',
        '/resource_providers/',
        '/resource_providers?name=numa1',
        '/resource_providers?in_tree={numa1}',
        '/resource_providers?resources=VCPU:4',
        '/resource_providers?required=CUSTOM_A,!CUSTOM_B',
        '/resource_providers?required=in:CUSTOM_A,COMPUTE_STATUS_DISABLED',
        f'/resource_providers?member_of={RACK_}',
        f'/resource_providers?member_of=!{RACK_}',
        '/resource_providers?nonesuch=1',
        '/resource_providers?required=CUSTOM_NONE',
        '/resource_providers/{numa0}',
        '/resource_providers/{cn4}/inventories',
        '/resource_providers/{numa0}/usages',
        '/resource_providers/{numa0}/aggregates',
        '/resource_providers/{cn3}/aggregates',
        '/resource_providers/{numa1}/traits',
        '/resource_providers/{cn3}/inventories',
        '/resource_providers/{cn3}/nonesuch',
        '/resource_providers/nonesuch',
        '/resource_providers/nonesuch/traits',
        '/nonesuch',
        '/allocation_candidates',
        '/allocation_candidates/',
        '/allocation_candidates?resources=VCPU:2',
        '/allocation_candidates?resources=VCPU:2,DISK_GB:10',
        '/allocation_candidates?resources=VCPU:99',
        '/allocation_candidates?resources=VCPU',
        '/allocation_candidates?resources=CUSTOM_NONE:1',
        '/allocation_candidates?resources=VCPU:1&limit=0',
        '/allocation_candidates?resources=VCPU:1&required=CUSTOM_A',
        '/allocation_candidates?resources=VCPU:1&required=!CUSTOM_A',
        '/allocation_candidates?resources=VCPU:1&required=CUSTOM_NONE',
        f'/allocation_candidates?resources=VCPU:1&member_of={RACK_}',
        f'/allocation_candidates?resources=VCPU:1&member_of=!{RACK_}',
        '/allocation_candidates?resources=VCPU:1&in_tree={numa1}',
        '/allocation_candidates?resources=VCPU:1&nonesuch=1',
        '/allocation_candidates?resources1=VCPU:1&resources2=CUSTOM_VF:1'
        '&group_policy=isolate',
        '/allocation_candidates?resources1=VCPU:1&resources2=CUSTOM_VF:1',
        '/allocation_candidates?resources=VCPU:1&resources_A=CUSTOM_VF:1',
        '/allocation_candidates?resources=VCPU:1'
        '&root_required=!COMPUTE_STATUS_DISABLED',
        '/allocation_candidates?resources_A=VCPU:1&resources_B=CUSTOM_VF:1'
        '&group_policy=none&same_subtree=_A,_B',
        '/allocation_candidates?resources_A=VCPU:1&required_B=CUSTOM_A'
        '&group_policy=none&same_subtree=_A,_B',
        '/allocation_candidates?resources=VCPU:1&required=in:CUSTOM_A,CUSTOM_B',
    ],
)  # fmt: skip
def test_the_mocked_placement_answers_as_the_real_one_does(
    real, mocked, path, minor
):
    path = path.format(**UUIDS)
    version = f'placement 1.{minor}'
    mocked.stop()
    expected = ask(real, path, version)
    with mocked:
        assert ask(mocked.adapter, path, version) == expected


def test_the_questions_that_are_compared_are_telling(mocked):
    """A few of the answers, lest all of them are empty."""
    candidates = '/allocation_candidates?resources=VCPU:2,DISK_GB:10'
    found = ask(mocked.adapter, candidates, 'placement 1.39').document
    assert len(found['allocation_requests']) == 3
    assert len(found['provider_summaries']) == 6
    usages = NUMA0.format(**UUIDS) + '/usages'
    assert ask(mocked.adapter, usages, 'placement 1.39').document == {
        'resource_provider_generation': 'something',
        'usages': {'VCPU': 1, 'MEMORY_MB': 0},
    }


@pytest.mark.parametrize(
    ('version', 'status'),
    [
        pytest.param('placement 1.40', 406, id='too new'),
        pytest.param('placement 2.0', 406, id='another major version'),
        pytest.param('placement nonesuch', 400, id='no version'),
        pytest.param('placement latest', 200, id='the newest there is'),
        pytest.param('compute 9.9,placement 1.39', 200, id='two services'),
    ],
)
def test_a_microversion_means_what_it_means_to_the_real_one(
    real, mocked, version, status
):
    mocked.stop()
    expected = ask(real, '/resource_providers', version)
    with mocked:
        assert ask(mocked.adapter, '/resource_providers', version) == expected
    assert expected.status == status


@pytest.mark.parametrize(
    ('path', 'status'), [('/allocation_candidates', 405), ('/nonesuch', 404)]
)
def test_a_change_is_refused_as_by_the_real_one(real, mocked, path, status):
    mocked.stop()
    expected = ask(real, path, 'placement 1.39', 'PUT')
    with mocked:
        assert ask(mocked.adapter, path, 'placement 1.39', 'PUT') == expected
    assert expected.status == status


def test_nothing_can_be_changed(mocked):
    with pytest.raises(exception.ServiceError, match='can only be read'):
        mocked.client.send('POST', '/resource_providers', {'name': 'cn5'})


def test_without_a_microversion_only_the_root_is_answered(mocked):
    assert ask(mocked.adapter, '/', None).microversion == 'placement 1.0'
    for version in (None, 'placement', 'compute 2.1'):
        answer = ask(mocked.adapter, '/resource_providers', version)
        assert answer.status == 501
        assert answer.microversion == 'placement 1.0'
        [error] = answer.document['errors']
        assert sorted(error) == ['detail', 'request_id', 'status', 'title']


def test_keystoneauth_finds_out_which_microversions_there_are():
    with testing.PlacementFixture(TWO, max_microversion='1.32') as placement:
        found = placement.adapter.get_endpoint_data()
        assert found.min_microversion == (1, 0)
        assert found.max_microversion == (1, 32)


def test_an_older_placement_is_too_old_for_what_it_does_not_know():
    flavor = testing.make_flavor()
    request = testing.make_request(flavor)
    filters = {'one': forbid_locked}
    with testing.PlacementFixture(TWO, max_microversion='1.31') as placement:
        client = placement.client
        assert testing.hosts_for(request, TWO, {}, client) == ['cn1', 'cn2']
        with pytest.raises(exception.ServiceTooOld) as caught:
            testing.hosts_for(request, TWO, filters, client)
    assert caught.value.maximum == '1.31'
    assert caught.value.needed == '1.32 (Train)'


@pytest.mark.parametrize('version', ['1.40', '1', '2.0', 'latest', '1.-1'])
def test_a_microversion_whose_rules_are_not_known_is_refused(version):
    with pytest.raises(ValueError, match=r'is no microversion from 1\.0 to 1'):
        testing.PlacementFixture(TWO, max_microversion=version)


def test_a_bad_query_is_told_once(mocked):
    flavor = testing.make_flavor(extra_specs={'trait:CUSTOM_X': 'required'})
    with pytest.raises(exception.BadQuery) as caught:
        testing.hosts_for(
            testing.make_request(flavor), NESTED, {}, mocked.client
        )
    assert str(caught.value) == (
        'Placement at http://placement.test/placement calls the request '
        'invalid (400): there is no trait CUSTOM_X.'
    )


@pytest.mark.parametrize(
    'path', sorted((ROOT / 'examples').glob('*.yaml')), ids=lambda p: p.stem
)
def test_in_memory_and_over_http_the_same_hosts_are_found(path):
    cloud = cloud_file.load(path)
    filters = {'isolate_aggregates': IsolateAggregates()}
    found = set()

    def hosts_for(flavor, *client):
        request = testing.make_request(flavor)
        try:
            return testing.hosts_for(request, cloud, filters, *client)
        except exception.BadQuery:
            # A trait that nothing has, as in a cloud to be audited.
            return ['none: the query is invalid']

    with testing.PlacementFixture(cloud) as placement:
        for flavor in cloud.flavors:
            hosts = hosts_for(flavor)
            found.update(hosts)
            assert hosts == hosts_for(flavor, placement.client)
    assert found


# The fixture.


def test_it_answers_while_the_context_is_open():
    placement = testing.PlacementFixture(TWO)
    with placement as entered:
        assert entered is placement
        assert len(placement.client.resource_providers()) == 2
    with requests_mock.Mocker(), pytest.raises(requests_mock.NoMockAddress):
        placement.client.resource_providers()


def test_it_can_be_started_again_but_not_twice():
    placement = testing.PlacementFixture(TWO)
    for _ in range(2):
        placement.start()
        with pytest.raises(RuntimeError, match='is mocked already'):
            placement.start()
        assert len(placement.client.resource_providers()) == 2
        placement.stop()
        placement.stop()


def test_it_can_change_its_cloud():
    with testing.PlacementFixture(TWO) as placement:
        placement.load(testing.make_snapshot())
        assert placement.client.resource_providers() == []


@pytest.mark.parametrize('prefix', ['', '/', '/some/where/'])
def test_it_can_be_anywhere(prefix):
    url = f'https://cloud.test:8778{prefix}'
    with testing.PlacementFixture(TWO, url=url) as placement:
        [listed] = placement.client.resource_providers(name='cn1')
        path = f'{prefix.rstrip("/")}/resource_providers/{listed["uuid"]}'
        assert listed['links'][0] == {'rel': 'self', 'href': path}
        answer = requests.get(f'{placement.url}/', timeout=1)
        assert answer.json()['versions'][0]['max_version'] == '1.39'


def test_it_answers_for_its_url_alone():
    with testing.PlacementFixture(TWO):
        for url in (
            'http://placement.test/placement2/resource_providers',
            'http://nova.test/',
        ):
            with pytest.raises(requests_mock.NoMockAddress):
                requests.get(url, timeout=1)


@pytest.mark.parametrize('case_sensitive', [True, False])
def test_it_shares_a_mocker(case_sensitive):
    flavor = testing.make_flavor()
    with requests_mock.Mocker(case_sensitive=case_sensitive) as http:
        http.get('http://nova.test/', text='Nova')
        placement = testing.PlacementFixture(TWO, http=http)
        with placement:
            assert requests.get('http://nova.test/', timeout=1).text == 'Nova'
            assert testing.hosts_for(
                testing.make_request(flavor), TWO, {}, placement.client
            ) == ['cn1', 'cn2']
        assert requests.get('http://nova.test/', timeout=1).text == 'Nova'
        with pytest.raises(requests_mock.NoMockAddress):
            requests.get(placement.url, timeout=1)


def test_testtools_can_use_it():
    class Case(testtools.TestCase):
        def runTest(self):  # noqa: N802
            self.placement = self.useFixture(testing.PlacementFixture(TWO))
            assert len(self.placement.client.resource_providers()) == 2

    case, result = Case(), unittest.TestResult()
    case.run(result)
    assert result.testsRun == 1
    assert result.wasSuccessful(), result.errors
    # It can be started only if it was stopped.
    case.placement.start().stop()


def test_fixtures_can_use_it():
    class Nesting(fixtures.Fixture):
        def _setUp(self):  # noqa: N802
            self.placement = self.useFixture(testing.PlacementFixture(TWO))

    with Nesting() as nesting:
        placement = nesting.placement
        assert len(placement.client.resource_providers()) == 2
        assert nesting.getDetails() == {}
    placement.start().stop()


def test_a_missing_requests_mock_is_refused_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, 'requests_mock', None)
    with pytest.raises(ImportError, match=r'isolate-aggregates\[testing\]'):
        testing.PlacementFixture(TWO).start()


def test_the_pytest_fixture_answers_for_several_clouds(
    mocked_placement, requests_mock
):
    requests_mock.get('http://nova.test/', text='Nova')
    two = mocked_placement(TWO)
    nested = mocked_placement(
        NESTED, url='http://other.test', max_microversion='1.30'
    )
    assert len(two.client.resource_providers()) == 2
    assert len(nested.client.resource_providers()) == 6
    assert requests.get('http://nova.test/', timeout=1).text == 'Nova'
    [version] = nested.adapter.get('/').json()['versions']
    assert version['max_version'] == '1.30'
