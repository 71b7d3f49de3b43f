# SPDX-License-Identifier: Apache-2.0
"""Why Placement rejected a query, when it is asked once more."""

from cases import cases
from http_fakes import HTML, PLACEMENT, client
import requests
import requests_mock

from isolate_aggregates.examination import Question, examine
from isolate_aggregates.placement import PlacementReader

REJECTED = Question('placement_rejected', ('resources=VCPU%3A1&limit=1000',))
NONE = {'allocation_requests': [], 'provider_summaries': {}}


def error(detail):
    return {'errors': [{'detail': detail}]}


def examined(**answer):
    """Examine a rejected query; Placement gives one answer."""
    with requests_mock.Mocker() as mocker:
        mocker.get(f'{PLACEMENT}/allocation_candidates', **answer)
        found = examine(
            PlacementReader(client(PLACEMENT), retries=0),
            REJECTED,
            lambda choice: 'aggregates',
            lambda own: [],
        )
    assert found.pop('examination')['queries'] == 1
    return found


@cases(
    ('answer', 'cause', 'reason'),
    {
        'a trait does not exist': (
            {'status_code': 400, 'json': error('No such trait CUSTOM_NONE.')},
            None,
            'as invalid (400): No such trait CUSTOM_NONE',
        ),
        'a web server dropped the query': (
            {
                'status_code': 400,
                'json': error('At least one request group must be given.'),
            },
            None,
            'did not receive the query: the query of 26 bytes is too long',
        ),
        'the query is too long': (
            {'status_code': 414, 'text': 'too long', 'headers': HTML},
            None,
            'or set [isolate_aggregates] max_query_length below it.',
        ),
        'the service user may not ask': (
            {'status_code': 403, 'json': error('Not permitted.')},
            None,
            'with the admin or service role',
        ),
        'Placement fails': (
            {'status_code': 503, 'json': error('Try later.')},
            'placement_down',
            'with 503: Try later',
        ),
        'it is something else': (
            {'status_code': 200, 'text': 'It works!'},
            'placement_down',
            'is not a JSON object',
        ),
    },
)
def test_what_placement_says_is_the_reason(answer, cause, reason):
    found = examined(**answer)
    assert found.get('cause') == cause
    assert reason in found['detail']['reason']


def test_a_query_that_is_accepted_now_was_not_rejected():
    assert examined(json=NONE) == {
        'cause': 'placement_down',
        'examined': 'yes: Placement accepts the query now',
    }


@cases(
    ('answer', 'reason'),
    {
        'it is gone': (
            {'exc': requests.exceptions.ConnectTimeout},
            'does not answer in time',
        ),
        'it is too old': (
            {
                'status_code': 406,
                'json': {'errors': [{'max_version': '1.30'}]},
            },
            'finding out why there was no candidate needs 1.36 (Train)',
        ),
    },
)
def test_it_is_said_that_placement_cannot_be_asked(answer, reason):
    found = examined(**answer)
    assert list(found) == ['examined']
    assert found['examined'].startswith('no: Placement at http')
    assert reason in found['examined']
