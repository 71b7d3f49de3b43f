# SPDX-License-Identifier: Apache-2.0
"""What helps others to test their filters, and the example of it."""

from collections.abc import Iterator, Mapping
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from typing import Any
import unittest

import fixtures
from keystoneauth1 import adapter
import pytest
import requests
import requests_mock
import testtools

from isolate_aggregates import exception, testing
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.cloud import file as cloud_file
from isolate_aggregates.cloud import load
from isolate_aggregates.filters.constraints import Forbid, Refuse, Require
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.placement.embedded import EmbeddedPlacement
from isolate_aggregates.placement.provider import Inventory, Provider
from isolate_aggregates.request import Request

pytest_plugins = ['isolate_aggregates.testing.plugin']

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLE = ROOT / 'examples' / 'filter-package'
PROGRAM = (
    'import sys; from isolate_aggregates.cli import app; sys.exit(app.main())'
)
PAGE = ROOT / 'doc' / 'source' / 'contributor' / 'testing-filters.rst'

LOCKED = testing.make_aggregate(
    'locked', {'trait:CUSTOM_KEY': 'required'}, ['cn1']
)
OPEN = testing.make_aggregate('open', hosts=['cn1', 'cn2'])
TWO = testing.make_snapshot(
    [LOCKED, OPEN],
    [testing.make_compute_node('cn1'), testing.make_compute_node('cn2')],
)

# A tree with an aggregate on a lower level, and one that shares its disks.
RACK = testing.make_aggregate('rack', hosts=['cn3', 'cn4'])
NESTED = testing.make_snapshot(
    [RACK],
    [
        testing.make_tree(
            testing.make_compute_node('cn3', inventories={}),
            testing.make_tree(
                testing.make_provider(
                    'numa0',
                    inventories={'VCPU': 4, 'MEMORY_MB': 4096},
                    usages={'VCPU': 1},
                    traits=['HW_CPU_X86_AVX'],
                    aggregates=['11111111-1111-4111-8111-111111111111'],
                ),
                testing.make_provider('nic', inventories={'CUSTOM_VF': 2}),
            ),
            testing.make_provider(
                'numa1',
                inventories={'VCPU': Inventory(4, reserved=1), 'MEMORY_MB': 9},
                traits=['HW_CPU_X86_AVX', 'CUSTOM_B', 'CUSTOM_A'],
            ),
        ),
        testing.make_compute_node(
            'cn4',
            inventories={
                'VCPU': Inventory(
                    8, 2, min_unit=1, max_unit=4, allocation_ratio=1.5
                ),
                'MEMORY_MB': 4096,
            },
            traits=['COMPUTE_STATUS_DISABLED'],
        ),
        testing.make_provider(
            'disks',
            inventories={'DISK_GB': 1000},
            traits=['MISC_SHARES_VIA_AGGREGATE'],
            aggregates=[RACK],
        ),
    ],
)
UUIDS = {provider.name: provider.uuid for provider in NESTED.providers}


def forbid_locked(request, aggregates):
    yield Forbid(aggregates.with_key('trait:CUSTOM_KEY'), 'is locked')


def require_open(request, aggregates):
    yield Require((OPEN,), 'is open')


def refuse(request, aggregates):
    yield Refuse('no')


# Builders.


def test_a_request_needs_nothing_to_be_one_for_a_small_server():
    request = testing.make_request()
    flavor = request.flavor
    assert (flavor.name, flavor.vcpus, flavor.ram, flavor.disk) == (
        'm1.small', 1, 2048, 20,
    )  # fmt: skip
    assert request == Request(flavor, project_id='demo')


def test_a_request_has_what_it_is_given():
    request = testing.make_request(
        testing.make_flavor('f', {'a:b': 'c'}, vcpus=2, ram=3, disk=4),
        testing.make_image('i', {'os_type': 'x'}, owner='o', visibility='v'),
        project_id=None,
        hints={'reservation': 'one', 'different_host': ['a', 'b']},
        requested_host=TWO.requested_host('cn2'),
    )
    flavor, image = request.flavor, request.image
    assert (flavor.name, flavor.vcpus, flavor.ram, flavor.disk) == (
        'f', 2, 3, 4,
    )  # fmt: skip
    assert flavor.extra_specs == {'a:b': 'c'}
    assert (image.name, image.owner, image.visibility) == ('i', 'o', 'v')
    assert image.properties == {'os_type': 'x'}
    assert request.project_id is None
    assert request.scheduler_hints == {
        'reservation': ('one',),
        'different_host': ('a', 'b'),
    }
    assert request.requested_host.providers == (TWO.providers[1].uuid,)


def test_an_aggregate_has_what_it_is_given():
    assert testing.make_aggregate(
        'a', {'k': 'v'}, ['cn1'], uuid='u', id=7, availability_zone='az'
    ) == Aggregate('u', 'a', {'k': 'v'}, frozenset({'cn1'}), 7, 'az')


def test_a_compute_node_has_room_for_some_servers():
    node = testing.make_compute_node('cn1')
    assert (node.name, node.host, node.parent) == ('cn1', 'cn1', None)
    assert node.inventories == {
        'VCPU': Inventory(16),
        'MEMORY_MB': Inventory(32768),
        'DISK_GB': Inventory(500),
    }


def test_a_compute_node_has_what_it_is_given():
    assert testing.make_compute_node(
        'node-1',
        host='ironic',
        inventories={'VCPU': 1, 'PCPU': Inventory(2, 1)},
        usages={'VCPU': 1},
        traits=['CUSTOM_A'],
        aggregates=[OPEN, 'another'],
        uuid='u',
    ) == Provider(
        'u',
        'node-1',
        host='ironic',
        inventories={'VCPU': Inventory(1), 'PCPU': Inventory(2, 1)},
        usages={'VCPU': 1},
        traits=frozenset({'CUSTOM_A'}),
        aggregates=frozenset({OPEN.uuid, 'another'}),
    )


def test_another_provider_is_no_compute_node_and_has_nothing():
    provider = testing.make_provider('disks')
    assert provider == Provider(provider.uuid, 'disks')


def test_uuids_are_those_that_a_cloud_file_gives(write_cloud):
    path = write_cloud("""
        aggregates: [{name: a, hosts: [cn1]}]
        providers:
        - name: cn1
          inventories: {VCPU: 16, MEMORY_MB: 32768, DISK_GB: 500}
          children: [{name: numa0}]
        flavors: [{name: f, vcpus: 1, ram: 2048, disk: 20}]
        images: [{name: i, visibility: public}]
        """)
    made = testing.make_snapshot(
        [testing.make_aggregate('a', hosts=['cn1'])],
        [
            testing.make_tree(
                testing.make_compute_node('cn1'),
                testing.make_provider('numa0'),
            )
        ],
        flavors=[testing.make_flavor('f')],
        images=[testing.make_image('i')],
        origin=str(path),
    )
    assert made == cloud_file.load(path)


def test_in_a_tree_each_provider_is_below_the_right_one():
    names = {provider.uuid: provider.name for provider in NESTED.providers}
    assert [(p.name, names.get(p.parent)) for p in NESTED.providers] == [
        ('cn3', None),
        ('numa0', 'cn3'),
        ('nic', 'numa0'),
        ('numa1', 'cn3'),
        ('cn4', None),
        ('disks', None),
    ]


def test_compute_nodes_are_in_the_host_aggregates_of_their_hosts():
    assert [provider.aggregates for provider in TWO.providers] == [
        {LOCKED.uuid, OPEN.uuid},
        {OPEN.uuid},
    ]
    without = testing.make_snapshot([LOCKED], TWO.providers[1:], mirror=False)
    assert [p.aggregates for p in without.providers] == [{OPEN.uuid}]


def test_a_misspelt_host_is_refused():
    with pytest.raises(ValueError, match='aggregate locked') as caught:
        testing.make_snapshot([LOCKED], [testing.make_compute_node('cn-1')])
    assert str(caught.value) == (
        'aggregate locked has cn1, but no compute node is of such a host'
    )


@pytest.mark.parametrize(
    ('aggregates', 'providers', 'kind'),
    [
        pytest.param([OPEN, OPEN], TWO.providers, 'aggregates', id='agg'),
        pytest.param([], [TWO.providers[0]] * 2, 'providers', id='provider'),
    ],
)
def test_two_of_one_uuid_are_refused(aggregates, providers, kind):
    with pytest.raises(ValueError, match=f'^the {kind} .* have the same uuid'):
        testing.make_snapshot(aggregates, providers)


# Hosts and reasons.


def test_without_filters_all_hosts_with_room_are_offered():
    request = testing.make_request()
    assert testing.hosts_for(request, TWO, {}) == ['cn1', 'cn2']
    big = testing.make_request(testing.make_flavor(vcpus=99))
    assert testing.hosts_for(big, TWO, {}) == []


def test_filters_narrow_the_hosts_and_give_reasons():
    filters = {'one': require_open, 'two': forbid_locked}
    request = testing.make_request()
    assert testing.hosts_for(request, TWO, filters) == ['cn2']
    assert testing.reasons_for(request, TWO, filters) == [
        'aggregate open: is open',
        'aggregate locked: is locked',
    ]


def test_a_pipeline_does_as_well():
    pipeline = Pipeline({'one': forbid_locked})
    request = testing.make_request()
    assert testing.hosts_for(request, TWO, pipeline) == ['cn2']
    assert len(testing.reasons_for(request, TWO, pipeline)) == 1


def test_a_refusal_is_raised_but_its_reason_can_be_had():
    request, filters = testing.make_request(), {'one': refuse}
    with pytest.raises(exception.RequestRefused, match=r'refused: no\.$'):
        testing.hosts_for(request, TWO, filters)
    assert testing.reasons_for(request, TWO, filters) == ['no']


def test_a_broken_filter_is_named():
    with pytest.raises(exception.FilterError, match=r'^Request filter mine '):
        testing.hosts_for(
            testing.make_request(), TWO, {'mine': lambda r, a: [1]}
        )


def test_a_trait_that_nobody_made_is_a_bad_query():
    flavor = testing.make_flavor(extra_specs={'trait:CUSTOM_X': 'required'})
    with pytest.raises(exception.BadQuery, match='CUSTOM_X'):
        testing.hosts_for(testing.make_request(flavor), TWO, {})


# The mocked Placement, compared with the real one.


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


# The example of a filter package, and the page that shows it.


@pytest.fixture
def example(tmp_path):
    """A copy of the filter package."""
    return pathlib.Path(shutil.copytree(EXAMPLE, tmp_path / 'example'))


def run_pytest(folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Run the tests in a folder as their author would."""
    return subprocess.run(
        [sys.executable, '-m', 'pytest', '-p', 'no:cacheprovider', '-c',
         folder / 'pyproject.toml', '--rootdir', folder],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def blocks(language: str) -> dict[str, str]:
    """Return the blocks of a language on the page, by caption or number."""
    found = re.findall(
        rf'^\.\. code-block:: {language}\n(?:   :caption: (\S+)\n)?\n'
        r'((?:(?:   .*)?\n)+)',
        PAGE.read_text('utf-8'),
        re.MULTILINE,
    )
    return {
        caption or str(number): textwrap.dedent(text).strip() + '\n'
        for number, (caption, text) in enumerate(found)
    }


def shows(shown: str, real: str) -> bool:
    """Tell whether shown lines are real ones; dots stand for others.

    How wide things are depends on the terminal.
    """
    shown, real = (re.sub(' +', ' ', text) for text in (shown, real))
    parts = [re.escape(part) for part in re.split(r'\.\.\.\n', shown)]
    return bool(re.search('(.*\n)*'.join(parts), real))


def test_the_tests_of_the_example_pass_as_shown(example):
    finished = run_pytest(example)
    assert finished.returncode == 0, finished.stdout
    command, _, shown = blocks('console')['0'].partition('\n')
    assert command == '$ pytest'
    assert shows(shown, finished.stdout), finished.stdout


def test_the_tests_of_the_example_fail_as_shown_without_the_filter(example):
    (example / 'tier_filter.py').write_text(
        'class Tiers:\n'
        '    def __call__(self, request, aggregates):\n'
        '        return ()\n'
    )
    finished = run_pytest(example)
    assert finished.returncode == 1
    assert shows(blocks('text')['0'], finished.stdout), finished.stdout


def test_the_test_of_the_example_is_about_ten_lines():
    text = (EXAMPLE / 'test_tier_filter.py').read_text('utf-8')
    body = text.partition('\n\n\n')[2]
    assert len(body.splitlines()) <= 16


@pytest.fixture
def installed(example, tmp_path):
    """Run the program where the example is installed.

    What pip makes of the packaging is made by hand here, and the program has
    a process of its own because stevedore remembers what is installed.
    """
    project = tomllib.loads((example / 'pyproject.toml').read_text('utf-8'))
    project = project['project']
    info = example / 'example_tier_filter-1.0.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text(
        f'Metadata-Version: 2.1\nName: {project["name"]}\n'
        f'Version: {project["version"]}\n'
    )
    [(group, points)] = project['entry-points'].items()
    lines = [f'{name} = {value}' for name, value in points.items()]
    (info / 'entry_points.txt').write_text('\n'.join([f'[{group}]', *lines]))

    def run_program(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, '-c', PROGRAM, *arguments],
            env={'HOME': str(tmp_path), 'PYTHONPATH': str(example)},
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip

    return run_program


def test_installed_the_filter_of_the_example_is_found_as_shown(installed):
    command, _, shown = blocks('text')['1'].partition('\n')
    program = '$ isolate-aggregates '
    assert command.startswith(program)
    real = installed(*command.removeprefix(program).split())
    assert shows(shown, real), real


def test_named_the_filter_of_the_example_runs(installed, tmp_path):
    conf = tmp_path / 'some.conf'
    conf.write_text('[isolate_aggregates]\nrequest_filters = tiers\n')
    found = installed(
        '--config-file', str(conf), 'filter', 'list', '-f', 'csv'
    )
    assert found.splitlines()[1] == (
        '"tiers",True,"number 1 of 1",'
        '"example-tier-filter 1.0, tier_filter:Tiers"'
    )


def test_the_filter_of_the_example_names_its_locks(installed, tmp_path):
    cloud = tmp_path / 'tiers.yaml'
    cloud.write_text(
        'version: 1\n'
        'settings: {isolate_aggregates: {request_filters: [tiers]}}\n'
        'aggregates:\n'
        '- {name: a, metadata: {tier: gold}}\n'
        '- {name: b, metadata: {tier: iron}}\n'
        '- {name: c, metadata: {tier: gold}}\n'
        '- {name: d}\n'
    )
    printed = installed(
        *('list', '--snapshot', cloud, '-f', 'value'),
        *('-c', 'Lock', '-c', 'Aggregates'),
    )
    assert printed == 'tier=gold 2\ntier=iron 1\n'


def test_the_tests_on_the_page_pass(tmp_path):
    files = blocks('python')
    tests = [name for name in files if name.startswith('test_')]
    assert len(tests) == 4
    for name in tests:
        (tmp_path / name).write_text(files[name])
    (tmp_path / 'pyproject.toml').touch()
    finished = run_pytest(tmp_path)
    assert finished.returncode == 0, finished.stdout
    assert '4 passed' in finished.stdout


def test_the_program_on_the_page_prints_what_is_shown(tmp_path):
    (tmp_path / 'ask.py').write_text(blocks('python')['ask.py'])
    finished = subprocess.run(
        [sys.executable, tmp_path / 'ask.py'],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert finished.stderr == ''
    assert finished.stdout == blocks('text')['2']
