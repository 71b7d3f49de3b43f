# SPDX-License-Identifier: Apache-2.0
"""The Placement client: requests, and parsing of responses."""

import copy
import time

from cases import cases
from http_fakes import PLACEMENT, client
from keystoneauth1 import adapter, token_endpoint
from keystoneauth1 import session as ks_session
import pytest
import requests
import requests_mock

from isolate_aggregates import exception
from isolate_aggregates.rest.client import Service
from isolate_aggregates_tools.placement.client import (
    AllocationCandidates,
    PlacementClient,
    ProviderSummary,
)
from isolate_aggregates_tools.placement.group import (
    RequestGroup,
    ResourceRequest,
)

HOST, SHARE = 'uuid-host', 'uuid-share'
ANSWER = {
    'allocation_requests': [
        {
            'allocations': {
                HOST: {'resources': {'VCPU': 2}},
                SHARE: {'resources': {'DISK_GB': 20}},
            },
            'mappings': {'': [HOST, SHARE]},
        }
    ],
    'provider_summaries': {
        HOST: {
            'resources': {'VCPU': {'capacity': 16, 'used': 5}},
            'traits': ['HW_NIC_SRIOV'],
            'parent_provider_uuid': None,
            'root_provider_uuid': HOST,
        },
        SHARE: {
            'resources': {'DISK_GB': {'capacity': 1000, 'used': 0}},
            'traits': ['MISC_SHARES_VIA_AGGREGATE'],
            'parent_provider_uuid': None,
            'root_provider_uuid': SHARE,
        },
    },
}
PROVIDER = {
    'uuid': HOST,
    'name': 'host',
    'generation': 3,
    'parent_provider_uuid': None,
    'root_provider_uuid': HOST,
}

PLAIN = ResourceRequest({'': RequestGroup(resources={'VCPU': 2})})
FORBIDDING = ResourceRequest(
    {
        '': RequestGroup(
            resources={'VCPU': 2}, forbidden_aggregates={'uuid-locked'}
        )
    }
)


@pytest.fixture
def placement():
    return PlacementClient(client(PLACEMENT))


def not_acceptable(newest):
    """Return the response of a Placement without a microversion."""
    return {
        'status_code': 406,
        'json': {
            'errors': [
                {
                    'status': 406,
                    'title': 'Not Acceptable',
                    'detail': 'Invalid microversion: Unacceptable version '
                    'header: 1.32',
                    'max_version': newest,
                    'min_version': '1.0',
                }
            ]
        },
    }


def refused(placement, request=PLAIN):
    with pytest.raises(exception.ServiceError) as caught:
        placement.allocation_candidates(request)
    return caught.value


@cases(
    ('request_', 'microversion'),
    {
        'at least what tells trees apart': (PLAIN, '1.29'),
        'what forbidding needs': (FORBIDDING, '1.32'),
        'what the newest of its parts needs': (
            ResourceRequest(root_forbidden={'COMPUTE_STATUS_DISABLED'}),
            '1.35',
        ),
    },
)
def test_a_query_uses_the_oldest_sufficient_microversion(
    http, placement, request_, microversion
):
    http.get(f'{PLACEMENT}/allocation_candidates', json=ANSWER)
    placement.allocation_candidates(request_)
    [requests] = http.request_history
    assert (
        requests.headers['OpenStack-API-Version']
        == f'placement {microversion}'
    )
    assert requests.headers['Accept'] == 'application/json'


def test_the_query_is_sent_as_it_was_built(http, placement):
    http.get(f'{PLACEMENT}/allocation_candidates', json=ANSWER)
    placement.allocation_candidates(FORBIDDING)
    [requests] = http.request_history
    assert requests.url == (
        'http://placement.test/allocation_candidates'
        '?member_of=%21in%3Auuid-locked&resources=VCPU%3A2'
    )


def test_an_answer_becomes_candidates_and_providers(http, placement):
    http.get(f'{PLACEMENT}/allocation_candidates', json=ANSWER)
    assert placement.allocation_candidates(PLAIN) == AllocationCandidates(
        allocation_requests=({HOST: {'VCPU': 2}, SHARE: {'DISK_GB': 20}},),
        mappings=({'': (HOST, SHARE)},),
        summaries={
            HOST: ProviderSummary(
                uuid=HOST,
                root=HOST,
                parent=None,
                capacity={'VCPU': 16},
                used={'VCPU': 5},
                traits=frozenset({'HW_NIC_SRIOV'}),
            ),
            SHARE: ProviderSummary(
                uuid=SHARE,
                root=SHARE,
                parent=None,
                capacity={'DISK_GB': 1000},
                used={'DISK_GB': 0},
                traits=frozenset({'MISC_SHARES_VIA_AGGREGATE'}),
            ),
        },
    )


def test_a_sharing_provider_is_not_a_host(http, placement):
    http.get(f'{PLACEMENT}/allocation_candidates', json=ANSWER)
    found = placement.allocation_candidates(PLAIN)
    assert list(found.by_root(PLAIN)) == [HOST]
    assert found.summaries[HOST].free('VCPU') == 11
    assert found.summaries[HOST].free('DISK_GB') == 0


def test_answers_before_mappings_have_none(http, placement):
    answer = copy.deepcopy(ANSWER)
    del answer['allocation_requests'][0]['mappings']
    http.get(f'{PLACEMENT}/allocation_candidates', json=answer)
    assert placement.allocation_candidates(PLAIN).mappings == ({},)


def test_no_candidates_are_a_valid_answer(http, placement):
    http.get(
        f'{PLACEMENT}/allocation_candidates',
        json={'allocation_requests': [], 'provider_summaries': {}},
    )
    assert placement.allocation_candidates(PLAIN).by_root(PLAIN) == {}


# Retries


BUSY = {'status_code': 503}
SLOW_DOWN = {'status_code': 429}
DOWN = {'exc': requests.ConnectionError}
HANGING = {'exc': requests.ReadTimeout}
FINE = {'json': ANSWER}


@cases(
    ('answers', 'calls'),
    {
        'no need to': ([FINE], 1),
        'once busy': ([BUSY, FINE], 2),
        'busy in two ways': ([SLOW_DOWN, BUSY, FINE], 3),
        'down three times': ([DOWN, DOWN, DOWN, FINE], 4),
        'a time-out': ([HANGING, FINE], 2),
        'down, then busy': ([DOWN, BUSY, FINE], 3),
    },
)
def test_temporary_failures_are_retried(http, placement, answers, calls):
    http.get(f'{PLACEMENT}/allocation_candidates', answers)
    assert placement.allocation_candidates(PLAIN).by_root(PLAIN)
    assert http.call_count == calls


@cases(
    ('answer', 'calls', 'said'),
    {
        'always busy': (
            BUSY,
            4,
            'answered GET /allocation_candidates?resources=VCPU%3A2 with 503: '
            'no reason was given.',
        ),
        'always too many requests': (
            SLOW_DOWN,
            4,
            'answered GET /allocation_candidates?resources=VCPU%3A2 with 429: '
            'no reason was given.',
        ),
        'always a time-out': (
            HANGING,
            4,
            'does not answer in time; check whether it is overloaded, or '
            'allow more seconds with --timeout or [isolate_aggregates] '
            'timeout.',
        ),
        'a fault does not pass': (
            {'status_code': 500, 'text': '<html>', 'reason': 'Oops'},
            1,
            'answered GET /allocation_candidates?resources=VCPU%3A2 with '
            '500: Oops.',
        ),
        'a bad query stays bad': (
            {'status_code': 400, 'text': 'No such trait.'},
            1,
            'rejected the request as invalid (400): No such trait.',
        ),
    },
)
def test_lasting_failures_are_reported_after_three_retries(
    http, placement, answer, calls, said
):
    http.get(f'{PLACEMENT}/allocation_candidates', **answer)
    error = refused(placement)
    assert str(error) == f'Placement at http://placement.test {said}'
    assert http.call_count == calls


@pytest.mark.parametrize(
    ('asked', 'waited'),
    [('0', 0), ('3', 3), ('10', 10), ('3600', 10), ('-1', 10)],
)
def test_a_service_cannot_make_its_callers_wait_for_long(
    http, monkeypatch, caplog, asked, waited
):
    waits = []
    monkeypatch.setattr(time, 'sleep', waits.append)
    session = ks_session.Session(
        token_endpoint.Token(PLACEMENT, 'token'), timeout=1
    )
    maintenance = {**BUSY, 'headers': {'Retry-After': asked}}
    http.get(f'{PLACEMENT}/traits', [maintenance, FINE])
    # Each client limits it anew, once.
    for _ in range(2):
        found = Service(
            'Placement', adapter.Adapter(session, service_type='placement')
        )
    found.get('/traits')
    assert waits == [waited]
    told = [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith('isolate_aggregates')
    ]
    assert told == (
        []
        if asked == str(waited)
        else [
            f'placement.test answered 503 and asks to wait {asked} s, longer '
            'than the 10 s after which it is asked again.'
        ]
    )


# A Placement that is too old


@cases(
    ('request_', 'newest', 'said'),
    {
        'it cannot forbid': (
            FORBIDDING,
            '1.30',
            'Placement at http://placement.test offers microversions up to '
            '1.30; forbidding aggregates needs 1.32 (Train).',
        ),
        'it does not support the oldest one used': (
            PLAIN,
            '1.17',
            'Placement at http://placement.test offers microversions up to '
            '1.17; reading nested resource providers needs 1.29 (Rocky).',
        ),
    },
)
def test_an_old_placement_is_named_with_the_missing_feature(
    http, placement, request_, newest, said
):
    http.get(requests_mock.ANY, **not_acceptable(newest))
    error = refused(placement, request_)
    assert isinstance(error, exception.ServiceTooOld)
    assert error.maximum == newest
    assert str(error) == said


@cases(
    'body',
    {
        'HTML': {'text': '<html>406</html>'},
        'errors as words': {'json': {'errors': ['no']}},
        'no errors': {'json': {'errors': []}},
        'no object': {'json': []},
    },
)
def test_a_406_of_a_proxy_does_not_mean_an_old_placement(
    http, placement, body
):
    http.get(requests_mock.ANY, status_code=406, **body)
    error = refused(placement)
    assert type(error) is exception.ServiceError
    assert ' with 406: ' in str(error)


def test_an_old_placement_is_named_for_writes(http, placement):
    http.put(requests_mock.ANY, **not_acceptable('1.28'))
    with pytest.raises(exception.ServiceTooOld) as caught:
        placement.send('PUT', '/traits/CUSTOM_A')
    assert caught.value.maximum == '1.28'


# An answer that is not Placement's


def without(*path):
    """Return the answer without the part that a path leads to."""
    answer = copy.deepcopy(ANSWER)
    inner = answer
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return answer


@cases(
    ('answer', 'lacking'),
    {
        'nothing': ({}, "KeyError('allocation_requests')"),
        'no summaries': (
            without('provider_summaries'),
            "KeyError('provider_summaries')",
        ),
        'no summary of a provider': (
            without('provider_summaries', HOST),
            "KeyError('uuid-host')",
        ),
        'no root': (
            without('provider_summaries', HOST, 'root_provider_uuid'),
            "KeyError('root_provider_uuid')",
        ),
        'no traits': (
            without('provider_summaries', HOST, 'traits'),
            "KeyError('traits')",
        ),
        'no allocations': (
            without('allocation_requests', 0, 'allocations'),
            "KeyError('allocations')",
        ),
    },
)
def test_an_incomplete_answer_is_refused(http, placement, answer, lacking):
    http.get(requests_mock.ANY, json=answer)
    assert str(refused(placement)) == (
        'Placement at http://placement.test answered '
        '/allocation_candidates?resources=VCPU%3A2 with JSON that lacks '
        f'expected data: {lacking}; is this the right endpoint?'
    )


def test_an_answer_in_the_format_of_old_microversions_is_refused(
    http, placement
):
    answer = copy.deepcopy(ANSWER)
    answer['allocation_requests'][0]['allocations'] = [
        {'resource_provider': {'uuid': HOST}, 'resources': {'VCPU': 2}}
    ]
    http.get(requests_mock.ANY, json=answer)
    assert 'AttributeError' in str(refused(placement))


# Resource providers


@cases(
    ('arguments', 'query'),
    {
        'all': ({}, ''),
        'by name': ({'name': 'ä & b'}, '?name=%C3%A4+%26+b'),
        'by tree': ({'in_tree': HOST}, '?in_tree=uuid-host'),
        'members': ({'member_of': {'b', 'a'}}, '?member_of=in%3Aa%2Cb'),
        'by both': (
            {'name': 'x', 'in_tree': HOST},
            '?name=x&in_tree=uuid-host',
        ),
    },
)
def test_providers_can_be_filtered(http, placement, arguments, query):
    http.get(requests_mock.ANY, json={'resource_providers': [PROVIDER]})
    assert placement.resource_providers(**arguments) == [PROVIDER]
    [requests] = http.request_history
    assert requests.url == f'http://placement.test/resource_providers{query}'


@pytest.mark.parametrize(
    'key',
    [
        'uuid',
        'name',
        'generation',
        'parent_provider_uuid',
        'root_provider_uuid',
    ],
)
def test_an_incomplete_provider_is_refused(http, placement, key):
    provider = {k: v for k, v in PROVIDER.items() if k != key}
    http.get(requests_mock.ANY, json={'resource_providers': [provider]})
    with pytest.raises(exception.ServiceError, match=f"KeyError.'{key}'"):
        placement.resource_providers()


# Changing something


def test_an_empty_answer_gives_none(http, placement):
    http.put(f'{PLACEMENT}/traits/CUSTOM_A', status_code=201)
    assert placement.send('PUT', '/traits/CUSTOM_A') is None


def test_a_body_is_sent_as_json_and_the_answer_returned(http, placement):
    http.post(f'{PLACEMENT}/resource_providers', json={'generation': 0})
    answer = placement.send('POST', '/resource_providers', {'name': 'host'})
    assert answer == {'generation': 0}
    [requests] = http.request_history
    assert requests.json() == {'name': 'host'}


def test_a_status_the_caller_does_not_accept_is_an_error(http, placement):
    http.put(
        requests_mock.ANY,
        status_code=409,
        text='Another client changed it first.',
    )
    with pytest.raises(exception.ServiceError, match='409: Another client'):
        placement.send('PUT', '/traits/CUSTOM_A')
