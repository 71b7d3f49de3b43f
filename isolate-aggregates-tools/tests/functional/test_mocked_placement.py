# SPDX-License-Identifier: Apache-2.0
"""The mocked Placement that helps to test filters answers as the real one."""

import itertools
import pathlib
import sys
import unittest
from urllib.parse import quote

from cases import cases
import fixtures
from mocked_answers import comparable
import pytest
import requests
import requests_mock
from small_clouds import NESTED, RACK, TWO, forbid_locked
import testtools

from isolate_aggregates import exception
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates_tools import placement_rows, testing
from isolate_aggregates_tools.cloud.file import cloud_file, load
from isolate_aggregates_tools.embedded import EmbeddedPlacement
from isolate_aggregates_tools.placement.client import PlacementClient

pytest_plugins = ['isolate_aggregates_tools.testing.plugin']

ROOT = pathlib.Path(__file__).parents[3]
UUIDS = {provider.name: provider.uuid for provider in NESTED.providers}


@pytest.fixture(scope='module')
def real():
    """A real Placement that has the nested cloud."""
    placement = EmbeddedPlacement()
    client = placement.open()
    load.into_placement(NESTED, PlacementClient(client))
    yield client
    placement.close()


@pytest.fixture
def mocked():
    """A mocked Placement with the same cloud, not started yet."""
    return testing.PlacementFixture(NESTED)


def ask(client, path, version, method='GET', **headers):
    """Return an answer without the parts that may differ."""
    headers = {name.replace('_', '-'): text for name, text in headers.items()}
    if version is not None:
        headers['OpenStack-API-Version'] = version
    answer = client.request(
        path, method, headers={'Accept': 'application/json'} | headers,
        raise_exc=False,
    )  # fmt: skip
    return comparable(
        answer.status_code,
        answer.headers,
        answer.json() if answer.content and is_json(answer) else None,
    )


def is_json(answer):
    """Return whether an answer is JSON."""
    return answer.headers['Content-Type'] == 'application/json'


RACK_ = f'in:{RACK.uuid}'
OTHER = '5dde4b13-764a-5a81-93fd-8ecdac212f2f'
CONSUMER = placement_rows.consumer(NESTED.providers[1])
# All that a path of the mocked Placement is answered at.
MICROVERSIONS = [
    f'placement 1.{minor}'
    for minor in (0, 6, 9, 14, 18, 19, 28, 29, 31, 32, 33, 35, 36, 39)
]


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
        f'/resource_providers?resources=VCPU:{2**63}',
        f'/resource_providers?resources=VCPU:{2**63 - 1}',
        f'/resource_providers?resources=VCPU:9999,DISK_GB:{2**63}',
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
        '/resource_providers/{numa1}/inventories/VCPU',
        '/resource_providers/{numa1}/inventories/DISK_GB',
        '/resource_providers/{numa1}/inventories/nonesuch',
        '/resource_providers/{numa0}/allocations',
        '/resource_providers/{cn3}/allocations',
        '/resource_providers/{cn3}/allocations/nonesuch',
        '/resource_classes',
        '/resource_classes/VCPU',
        '/resource_classes/CUSTOM_VF',
        '/resource_classes/CUSTOM_NONE',
        '/traits',
        '/traits?associated=true',
        '/traits?associated=FALSE',
        '/traits?associated=perhaps',
        '/traits?name=in:CUSTOM_A,HW_CPU_X86_AVX,nonesuch',
        '/traits?name=startswith:CUSTOM_&associated=true',
        '/traits?name=nonesuch:CUSTOM_A',
        '/traits?name=CUSTOM_A',
        '/traits?nonesuch=1',
        '/traits/CUSTOM_A',
        '/traits/CUSTOM%5FA',
        '/traits/HW_CPU_X86_AVX',
        '/traits/CUSTOM_NONE',
        f'/allocations/{CONSUMER}',
        '/allocations/nonesuch',
        '/usages',
        '/usages?project_id=nonesuch',
        '/usages?project_id=',
        f'/usages?project_id={placement_rows.OWNER}',
        f'/usages?project_id={placement_rows.OWNER}&user_id={placement_rows.OWNER}',
        f'/usages?project_id={placement_rows.OWNER}&user_id=nonesuch',
        f'/usages?project_id={placement_rows.OWNER}&consumer_type=all',
        f'/usages?project_id={placement_rows.OWNER}&consumer_type=unknown',
        f'/usages?project_id={placement_rows.OWNER}&consumer_type=INSTANCE',
        f'/usages?project_id={placement_rows.OWNER}&consumer_type=in-stance',
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
        # An old Placement uses only the last of several parameters.
        '/allocation_candidates?resources=VCPU:1&required=CUSTOM_A'
        '&required=HW_CPU_X86_AVX',
        '/allocation_candidates?resources=VCPU:1&required=,&required=CUSTOM_A',
        '/resource_providers?required=CUSTOM_A&required=HW_CPU_X86_AVX',
        '/allocation_candidates?resources1=VCPU:1&required1=CUSTOM_A'
        '&required1=!CUSTOM_B',
        f'/allocation_candidates?resources=VCPU:1&member_of={RACK_}'
        f'&member_of={RACK_}',
        # Parameters given twice: Placement takes the first, the last or all.
        '/allocation_candidates?resources=VCPU:1&limit=9&limit=1',
        '/allocation_candidates?resources=VCPU:1&limit=9&limit=x',
        *(
            f'/allocation_candidates?resources1=VCPU:1&resources2=VCPU:1'
            f'&{first}&{second}'
            for first, second in itertools.combinations(
                (
                    'group_policy=none',
                    'group_policy=isolate',
                    'group_policy=none',
                    'group_policy=x',
                ),
                2,
            )
        ),
        *(
            f'/allocation_candidates?{first}&{second}'
            for first, second in itertools.permutations(
                (
                    'resources=VCPU:1',
                    'resources=VCPU:2',
                    'resources=DISK_GB:1',
                ),
                2,
            )
        ),
        '/allocation_candidates?resources=VCPU:4,VCPU:1',
        '/allocation_candidates?resources=VCPU:1,VCPU:4',
        '/resource_providers?resources=VCPU:1&resources=VCPU:99',
        '/resource_providers?resources=VCPU:99,VCPU:1',
        *(
            f'/{path}in_tree={{{first}}}&in_tree={{{second}}}'
            for path in (
                'resource_providers?',
                'allocation_candidates?resources=VCPU:1&',
            )
            for first, second in itertools.permutations(('numa1', 'cn3'), 2)
        ),
        '/resource_providers?name=numa1&name=cn3',
        '/resource_providers?uuid={numa1}&uuid={cn3}',
        *(
            f'/{path}member_of={first}&member_of={second}'
            for path in (
                'resource_providers?',
                'allocation_candidates?resources=VCPU:1&',
            )
            for first, second in itertools.permutations(
                (RACK_, f'!{RACK_}', f'in:{OTHER}'), 2
            )
        ),
        *(
            f'/allocation_candidates?resources=VCPU:1&{first}&{second}'
            for first, second in itertools.permutations(
                (
                    'root_required=CUSTOM_A',
                    'root_required=!COMPUTE_STATUS_DISABLED',
                ),
                2,
            )
        ),
        '/allocation_candidates?resources_A=VCPU:1&resources_B=CUSTOM_VF:1'
        '&group_policy=none&same_subtree=_A&same_subtree=_B',
        # A group with traits only counts for group_policy.
        '/allocation_candidates?resources_A=VCPU:1&required_B=CUSTOM_A'
        '&same_subtree=_A,_B',
        '/allocation_candidates?resources_A=VCPU:1&required_B=CUSTOM_A'
        '&group_policy=isolate&same_subtree=_A,_B',
        '/allocation_candidates?resources=VCPU:1&required_B=CUSTOM_A'
        '&same_subtree=_B',
        '/allocation_candidates?resources=DISK_GB:1&resources_A=VCPU:1'
        '&required_B=HW_CPU_X86_AVX&group_policy=isolate&same_subtree=_A,_B',
        # Separators.
        '/allocation_candidates?resources=VCPU:1;limit=9',
        '/allocation_candidates?resources=VCPU:1%3Blimit=9',
        '/resource_providers?name=cn3;uuid={cn3}',
        '/resource_providers?name=%FF',
        # Large numbers.
        f'/allocation_candidates?resources=VCPU:1&limit={2**63}',
        f'/allocation_candidates?resources=VCPU:1&limit={10**30}',
        f'/allocation_candidates?resources=VCPU:{2**63 - 1}',
        f'/allocation_candidates?resources=VCPU:{2**63}',
        f'/allocation_candidates?resources=VCPU:1,DISK_GB:{2**63}',
        f'/allocation_candidates?resources=DISK_GB:{2**40},VCPU:{2**63}',
        f'/allocation_candidates?resources=VCPU:99&resources1=VCPU:{2**63}',
        f'/allocation_candidates?resources1=VCPU:{2**63}&resources=VCPU:99',
        f'/allocation_candidates?resources=VCPU:{2**63}&in_tree={{cn3}}',
        f'/allocation_candidates?resources=VCPU:{2**63}&required=CUSTOM_NONE',
        # Ways to write a uuid.
        *(
            f'/{path}={quote(uuid)}'
            for uuid in (
                UUIDS['numa1'].upper(),
                UUIDS['numa1'].replace('-', ''),
                f'{{{UUIDS["numa1"]}}}',
                f'urn:uuid:{UUIDS["numa1"]}',
                f' {UUIDS["numa1"]} ',
                UUIDS['numa1'][:-1],
                '',
            )
            for path in (
                'resource_providers?uuid',
                'resource_providers?in_tree',
                'resource_providers?member_of',
                'allocation_candidates?resources=VCPU:1&in_tree',
                'allocation_candidates?resources=VCPU:1&member_of',
            )
        ),
        *(
            f'/{path}={start}{quote(uuid)}'
            for uuid in (RACK.uuid.upper(), RACK.uuid.replace('-', ''))
            for start in ('', 'in:', '!', '!in:')
            for path in (
                'resource_providers?member_of',
                'allocation_candidates?resources=VCPU:1&member_of',
            )
        ),
        # Codes of errors.
        '/allocation_candidates?resources=VCPU:1'
        '&root_required=CUSTOM_A&root_required=CUSTOM_B',
        '/allocation_candidates?resources=VCPU:1'
        '&root_required=CUSTOM_A,!CUSTOM_A',
        '/allocation_candidates?resources=VCPU:1&root_required=,',
        '/allocation_candidates?resources=VCPU:1&same_subtree=',
        '/allocation_candidates?resources=VCPU:1&same_subtree=_A',
        '/allocation_candidates?resources=VCPU:1&required_A=CUSTOM_A',
        '/allocation_candidates?required=CUSTOM_A',
        '/allocation_candidates?required=CUSTOM_A&root_required=CUSTOM_A,,',
        '/allocation_candidates?resources=VCPU:1&required=CUSTOM_A,!CUSTOM_A',
    ],
)  # fmt: skip
def test_the_mocked_placement_answers_as_the_real_one_does(real, mocked, path):
    path = path.format(**UUIDS)
    with mocked:
        answers = {v: ask(mocked.adapter, path, v) for v in MICROVERSIONS}
    answers = {v: a for v, a in answers.items() if a.status != 406}
    assert answers == {v: ask(real, path, v) for v in answers}
    assert 'placement 1.39' in answers


def test_the_first_of_two_limits_counts(real, mocked):
    def offered(client, limits):
        answer = client.get(
            f'/allocation_candidates?resources=VCPU:1{limits}',
            headers={'OpenStack-API-Version': 'placement 1.39'},
        )
        return len(answer.json()['allocation_requests'])

    both = ['', '&limit=1&limit=9']
    with mocked:
        ours = [offered(mocked.adapter, limits) for limits in both]
    theirs = [offered(real, limits) for limits in both]
    assert ours == theirs == [3, 1]


@pytest.mark.parametrize(
    ('path', 'minors'),
    [
        ('/resource_classes', [29, 39]),
        ('/resource_providers', [0, 14, 18, 29, 32, 39]),
        ('/resource_providers/{cn3}', [14, 29, 39]),
        ('/resource_providers/{cn3}/inventories', [0, 29, 39]),
        ('/resource_providers/{cn3}/aggregates', [19, 29, 39]),
        ('/resource_providers/{cn3}/traits', [6, 29, 39]),
        ('/resource_providers/{cn3}/usages', [29, 39]),
        ('/resource_providers/{cn3}/allocations', [0, 29, 39]),
        (f'/allocations/{placement_rows.OWNER}', [28, 29, 39]),
        (
            '/allocation_candidates?resources=VCPU:1',
            [29, 31, 32, 33, 35, 36, 39],
        ),
        ('/traits', [6, 29, 39]),
        (f'/usages?project_id={placement_rows.OWNER}', [9, 29, 39]),
    ],
)
def test_a_path_has_the_microversions_that_clients_send(mocked, path, minors):
    path = path.format(**UUIDS)
    with mocked:
        statuses = {
            minor: ask(mocked.adapter, path, f'placement 1.{minor}').status
            for minor in range(40)
        }
    assert statuses == {
        minor: 200 if minor in minors else 406 for minor in range(40)
    }


def test_a_microversion_that_no_client_sends_is_refused_like_an_unknown_one(
    real, mocked
):
    expected = ask(real, '/resource_providers', 'placement 1.40')
    with mocked:
        answer = ask(mocked.adapter, '/resource_providers', 'placement 1.17')
        text = mocked.adapter.get(
            '/resource_providers', microversion='1.17', raise_exc=False
        ).text
    assert answer.status == expected.status == 406
    assert answer.document['errors'][0] | {'code': ''} == (
        expected.document['errors'][0] | {'code': ''}
    )
    assert (
        'Unacceptable version header: 1.17; the mocked Placement answers '
        '/resource_providers at the microversions that clients send: 1.0, '
        '1.14, 1.18, 1.29, 1.32, 1.39'
    ) in text


@pytest.mark.parametrize('path', ['/', '/traits', '/nonesuch'])
def test_without_a_token_only_the_root_is_answered(real, mocked, path):
    def without_token(client):
        answer = client.session.get(
            f'{client.get_endpoint()}{path}',
            authenticated=False, raise_exc=False,
        )  # fmt: skip
        return comparable(answer.status_code, answer.headers, answer.json())

    expected = without_token(real)
    with mocked:
        assert without_token(mocked.adapter) == expected


@pytest.mark.parametrize(
    'accept',
    ['text/plain', 'text/html,application/json', '*/*', 'application/*'],
)
def test_an_answer_is_json(real, mocked, accept):
    path = '/resource_providers'
    expected = ask(real, path, 'placement 1.39', accept=accept)
    with mocked:
        answer = ask(mocked.adapter, path, 'placement 1.39', accept=accept)
    assert answer.status == expected.status


def test_compared_answers_are_not_empty(mocked):
    """A sample of the answers, to prove that they are not all empty."""
    candidates = '/allocation_candidates?resources=VCPU:2,DISK_GB:10'
    usages = f'/resource_providers/{UUIDS["numa0"]}/usages'
    with mocked:
        answer = ask(mocked.adapter, candidates, 'placement 1.39').document
        usage = ask(mocked.adapter, usages, 'placement 1.39').document
    assert len(answer['allocation_requests']) == 3
    assert len(answer['provider_summaries']) == 6
    assert usage == {
        'resource_provider_generation': 'something',
        'usages': {'VCPU': 1, 'MEMORY_MB': 0},
    }


@cases(
    ('version', 'status'),
    {
        'too new': ('placement 1.40', 406),
        'another major version': ('placement 2.0', 406),
        'no version': ('placement nonesuch', 400),
        'the newest there is': ('placement latest', 200),
        'two services': ('compute 9.9,placement 1.39', 200),
        'the last': ('placement 9.9,Placement 1.39', 200),
        'blanks': ('placement  1.29 ', 200),
        'more digits': ('placement 1.029', 200),
        'half a version': ('placement 1', 400),
        'before the first': ('placement 1.-1', 406),
        'more than a version': ('placement 1.2.3', 400),
        'the version is missing': ('placement', 200),
        'another service': ('compute 2.1', 200),
        'no header': (None, 200),
    },
)
def test_microversion_headers_are_parsed_as_by_the_real_one(
    real, mocked, version, status
):
    path = f'/resource_providers/{UUIDS["numa0"]}/inventories'
    expected = ask(real, path, version)
    with mocked:
        assert ask(mocked.adapter, path, version) == expected
    assert expected.status == status


@pytest.mark.parametrize(
    ('method', 'path'),
    [
        ('POST', '/resource_providers'),
        ('PUT', '/resource_providers/nonesuch'),
        ('DELETE', '/resource_providers/nonesuch/inventories/VCPU'),
        ('PUT', '/traits/CUSTOM_X'),
        ('PUT', '/allocations/nonesuch'),
        ('POST', '/allocations'),
        ('PATCH', '/nonesuch'),
    ],
)
def test_writes_are_refused(mocked, method, path):
    with mocked, pytest.raises(exception.ServiceError) as caught:
        PlacementClient(mocked.adapter).send(method, path, {'name': 'cn5'})
    assert '501' in str(caught.value)
    assert (
        'the mocked Placement can only be read; a test that writes needs the '
        'embedded one, isolate_aggregates_tools.testing.EmbeddedPlacement'
    ) in str(caught.value)


def test_keystoneauth_discovers_the_microversions():
    with testing.PlacementFixture(TWO, max_microversion='1.32') as placement:
        endpoint = placement.adapter.get_endpoint_data()
        assert endpoint.min_microversion == (1, 0)
        assert endpoint.max_microversion == (1, 32)


def test_an_older_placement_rejects_newer_features():
    flavor = testing.make_flavor()
    request = testing.make_request(flavor)
    filters = {'one': forbid_locked}
    with testing.PlacementFixture(TWO, max_microversion='1.31') as placement:
        client = placement.adapter
        assert testing.hosts_for(request, TWO, {}, client) == ['cn1', 'cn2']
        with pytest.raises(exception.ServiceTooOld) as caught:
            testing.hosts_for(request, TWO, filters, client)
    assert caught.value.maximum == '1.31'
    assert caught.value.needed == '1.32 (Train)'


@pytest.mark.parametrize('version', ['1.40', '1', '2.0', 'latest', '1.28'])
def test_a_microversion_without_rules_is_refused(version):
    with pytest.raises(
        ValueError, match=r'is not a microversion from 1\.29 to 1\.39'
    ):
        testing.PlacementFixture(TWO, max_microversion=version)


def test_a_bad_query_is_reported_once(mocked):
    flavor = testing.make_flavor(extra_specs={'trait:CUSTOM_X': 'required'})
    with mocked, pytest.raises(exception.BadQuery) as caught:
        testing.hosts_for(
            testing.make_request(flavor), NESTED, {}, mocked.adapter
        )
    assert str(caught.value) == (
        'Placement at http://placement.test/placement rejected the request as '
        'invalid (400): there is no trait CUSTOM_X.'
    )


@pytest.mark.parametrize(
    'path', sorted((ROOT / 'examples').glob('*.yaml')), ids=lambda p: p.stem
)
def test_hosts_are_the_same_in_memory_and_over_http(path):
    cloud = cloud_file.load(path)
    filters = {'isolate_aggregates': IsolateAggregates()}
    hosts_of_all_flavors = set()

    def hosts_for(flavor, *client):
        request = testing.make_request(flavor)
        try:
            return testing.hosts_for(request, cloud, filters, *client)
        except exception.BadQuery:
            # No provider has the trait, as in the example for an audit.
            return ['none: the query is invalid']

    with testing.PlacementFixture(cloud) as placement:
        for flavor in cloud.flavors:
            hosts = hosts_for(flavor)
            hosts_of_all_flavors.update(hosts)
            assert hosts == hosts_for(flavor, placement.adapter)
    assert hosts_of_all_flavors


# The fixture.


def test_the_fixture_answers_while_its_context_is_open():
    placement = testing.PlacementFixture(TWO)
    with placement as entered:
        assert entered is placement
        assert len(providers_of(placement)) == 2
    with requests_mock.Mocker(), pytest.raises(requests_mock.NoMockAddress):
        providers_of(placement)


def test_several_fixtures_can_be_active():
    two = testing.PlacementFixture(TWO)
    empty = testing.PlacementFixture(
        testing.make_snapshot(), url='http://other.test'
    )
    with two:
        empty.start()
        assert len(providers_of(two)) == 2
        assert providers_of(empty) == []
    # The fixture that was started first was stopped first.
    assert providers_of(empty) == []
    with pytest.raises(requests_mock.NoMockAddress):
        providers_of(two)
    with two:
        assert len(providers_of(two)) == 2
        empty.stop()
        assert len(providers_of(two)) == 2


def test_two_fixtures_cannot_share_one_endpoint(mocked_placement):
    with testing.PlacementFixture(TWO), pytest.raises(RuntimeError) as caught:
        testing.PlacementFixture(NESTED).start()
    assert str(caught.value) == (
        'http://placement.test/placement is mocked already; give each fixture '
        'its own url'
    )
    mocked_placement(TWO)
    with pytest.raises(RuntimeError, match='is mocked already'):
        mocked_placement(NESTED)


def test_a_fixture_can_be_restarted_but_not_started_twice():
    placement = testing.PlacementFixture(TWO)
    for _ in range(2):
        placement.start()
        with pytest.raises(RuntimeError, match='is mocked already'):
            placement.start()
        assert len(providers_of(placement)) == 2
        placement.stop()
        placement.stop()


def test_declared_traits_and_classes_are_known():
    declared = {'traits': ['CUSTOM_KEY'], 'resource_classes': ['CUSTOM_GOLD']}
    fixture = testing.PlacementFixture(TWO, **declared)
    cloud = testing.make_snapshot(providers=TWO.providers, **declared)
    for placement in (fixture, testing.PlacementFixture(cloud)):
        with placement:
            assert knows_both(placement.adapter)
    fixture.load(testing.make_snapshot())
    with fixture:
        assert knows_both(fixture.adapter)
    with testing.PlacementFixture(TWO) as placement:
        assert not knows_both(placement.adapter)


def providers_of(placement, **conditions):
    """Return the resource providers of a mocked Placement."""
    client = PlacementClient(placement.adapter)
    return client.resource_providers(**conditions)


def knows_both(client):
    """Return whether CUSTOM_KEY and CUSTOM_GOLD exist in Placement."""
    return {
        client.get(path, microversion='1.39', raise_exc=False).ok
        for path in (
            '/allocation_candidates?resources=VCPU:1&required=CUSTOM_KEY',
            '/allocation_candidates?resources=CUSTOM_GOLD:1',
            '/traits/CUSTOM_KEY',
            '/resource_classes/CUSTOM_GOLD',
        )
    } == {True}


def test_the_cloud_of_a_fixture_can_be_replaced():
    with testing.PlacementFixture(TWO) as placement:
        placement.load(testing.make_snapshot())
        assert providers_of(placement) == []


@pytest.mark.parametrize('prefix', ['', '/', '/some/where/'])
def test_the_url_of_a_fixture_can_be_chosen(prefix):
    url = f'https://cloud.test:8778{prefix}'
    with testing.PlacementFixture(TWO, url=url) as placement:
        [listed] = providers_of(placement, name='cn1')
        path = f'{prefix.rstrip("/")}/resource_providers/{listed["uuid"]}'
        assert listed['links'][0] == {'rel': 'self', 'href': path}
        answer = requests.get(f'{placement.url}/', timeout=1)
        assert answer.json()['versions'][0]['max_version'] == '1.39'


def test_a_fixture_answers_only_for_its_url():
    with testing.PlacementFixture(TWO):
        for url in (
            'http://placement.test/placement2/resource_providers',
            'http://nova.test/',
        ):
            with pytest.raises(requests_mock.NoMockAddress):
                requests.get(url, timeout=1)


@pytest.mark.parametrize('case_sensitive', [True, False])
def test_a_fixture_can_use_a_given_mocker(case_sensitive):
    flavor = testing.make_flavor()
    with requests_mock.Mocker(case_sensitive=case_sensitive) as http:
        http.get('http://nova.test/', text='Nova')
        placement = testing.PlacementFixture(TWO, http=http)
        with placement:
            assert requests.get('http://nova.test/', timeout=1).text == 'Nova'
            assert testing.hosts_for(
                testing.make_request(flavor), TWO, {}, placement.adapter
            ) == ['cn1', 'cn2']
        assert requests.get('http://nova.test/', timeout=1).text == 'Nova'
        with pytest.raises(requests_mock.NoMockAddress):
            requests.get(placement.url, timeout=1)


def test_testtools_can_use_it():
    class Case(testtools.TestCase):
        def runTest(self):  # noqa: N802
            self.placement = self.useFixture(testing.PlacementFixture(TWO))
            assert (
                len(
                    PlacementClient(
                        self.placement.adapter
                    ).resource_providers()
                )
                == 2
            )

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
        assert len(providers_of(placement)) == 2
        assert nesting.getDetails() == {}
    placement.start().stop()


def test_a_missing_requests_mock_is_refused_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, 'requests_mock', None)
    with pytest.raises(
        ImportError, match=r'isolate-aggregates-tools\[testing\]'
    ):
        testing.PlacementFixture(TWO).start()


def test_the_pytest_fixture_answers_for_several_clouds(
    mocked_placement, requests_mock
):
    requests_mock.get('http://nova.test/', text='Nova')
    two = mocked_placement(TWO)
    nested = mocked_placement(
        NESTED, url='http://other.test', max_microversion='1.30'
    )
    assert len(providers_of(two)) == 2
    assert len(providers_of(nested)) == 6
    assert requests.get('http://nova.test/', timeout=1).text == 'Nova'
    [version] = nested.adapter.get('/').json()['versions']
    assert version['max_version'] == '1.30'
