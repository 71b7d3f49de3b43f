# SPDX-License-Identifier: Apache-2.0
"""The measured limit is the real limit.

It is compared with what is found by trying each length.
"""

import contextlib
from urllib import parse
import uuid

from keystoneauth1 import adapter, session, token_endpoint
import pytest
import requests
from web_servers import (
    APACHE,
    APACHE_FOR_UWSGI,
    BIG_UWSGI,
    GUNICORN,
    HAPROXY,
    KOLLA_UWSGI,
    SOCKET_UWSGI,
    TOKEN,
    UNLIMITED,
    UWSGI,
    behind,
    running,
)

from isolate_aggregates import exception
from isolate_aggregates.upgrade_check.limit_probe import MOST, measure
from isolate_aggregates_tools.placement.client import PlacementClient
from isolate_aggregates_tools.placement.group import ResourceRequest

# By name: the server, the proxies before it, what the documentation says
# about the limit, and what happens to a query that is longer.
WAYS = {
    'gunicorn': (GUNICORN, (), 4058, 'answered 414'),
    'uWSGI': (UWSGI, (), 1660, 'closed the connection'),
    'uWSGI as deployed': (BIG_UWSGI, (), 32_380, 'closed the connection'),
    'uWSGI of kolla': (KOLLA_UWSGI, (), 30_700, 'closed the connection'),
    'Apache': (UNLIMITED, (APACHE,), 8155, 'answered 414'),
    'Apache before uWSGI': (
        SOCKET_UWSGI,
        (APACHE_FOR_UWSGI,),
        1480,
        'answered 500',
    ),
    'HAProxy': (UNLIMITED, (HAPROXY,), 14_720, 'answered 400'),
    'HAProxy before uWSGI': (UWSGI, (HAPROXY,), 1660, 'answered 502'),
}


@pytest.fixture(
    scope='module',
    params=[
        pytest.param(
            name, marks=pytest.mark.smoke if name == 'HAProxy' else ()
        )
        for name in WAYS
    ],
)
def way(request, tmp_path_factory):
    """A path to Placement, with its documented limit."""
    server, proxies, *documented = WAYS[request.param]
    for proxy in proxies:
        if proxy.program is None:
            pytest.skip(
                f'{proxy.name} is not installed; "apt-get install '
                f'{proxy.package}"'
            )
    with contextlib.ExitStack() as stack:
        folder = tmp_path_factory.mktemp('server')
        found = stack.enter_context(running(server, folder))
        for proxy in proxies:
            folder = tmp_path_factory.mktemp('proxy')
            found = stack.enter_context(behind(proxy, found, folder))
        yield found, *documented


def arrives(placement, length):
    """Return whether a query of so many bytes is answered by Placement."""
    params = {'resources': 'VCPU:1', 'limit': '1'}
    uuids = [str(uuid.UUID(int=number)) for number in range(length // 39 - 2)]
    params['member_of'] = f'!in:{",".join(uuids)}'
    query = parse.urlencode(params)
    query = query.replace('limit=1', f'limit=1{"0" * (length - len(query))}')
    assert len(query) == length
    with contextlib.suppress(requests.ConnectionError):
        return placement.get(f'/allocation_candidates?{query}').ok
    return False


def true_limit(placement):
    """Return the bytes of the longest query that arrives."""
    low, high = 500, MOST
    while high - low > 1:
        middle = (low + high) // 2
        if arrives(placement, middle):
            low = middle
        else:
            high = middle
    return low


@pytest.fixture(scope='module')
def found(way):
    """What is found on that way."""
    placement = way[0]
    auth = token_endpoint.Token(placement.url, TOKEN)
    return measure(
        adapter.Adapter(session.Session(auth), service_type='placement')
    )


def test_the_measured_limit_is_right(way, found):
    placement, documented, happened = way
    true = true_limit(placement)
    assert abs(found.longest - true) <= 64
    assert abs(found.refused - true) <= 64
    assert found.happened == happened
    # The headers of nova-scheduler count for some.
    assert abs(true - documented) <= 50
    assert arrives(placement, found.advised)


def test_the_error_says_that_the_query_is_too_long(way, found):
    placement, _, happened = way
    auth = token_endpoint.Token(placement.url, TOKEN)
    client = PlacementClient(
        adapter.Adapter(session.Session(auth), service_type='placement'),
        retries=0,
    )
    request = ResourceRequest()
    group = request.group()
    group.resources['VCPU'] = 1

    def said(length):
        """Return what happened to a query of so many bytes."""
        group.forbidden_aggregates = {
            str(uuid.UUID(int=number)) for number in range(length // 39)
        }
        with pytest.raises(exception.ServiceError) as caught:
            client.allocation_candidates(request)
        if isinstance(caught.value, exception.ServiceFailed):
            # Apache also answers so for other failures.
            return 'answered 500'
        assert isinstance(caught.value, exception.QueryTooLong)
        assert len(request.to_querystring()) == caught.value.length
        return caught.value.happened

    assert said(found.refused + 39) == happened
    if placement.server is UWSGI:
        # It accepts the request, but has no space for the query.
        assert said(2600) == 'did not receive the query'


def test_a_listing_is_complete_or_an_error(way):
    """uWSGI drops queries between two lengths; all providers are listed then.

    Whoever takes these for the members of the aggregates that were asked for
    lets a server onto each of their hosts.
    """
    placement = way[0]
    auth = token_endpoint.Token(placement.url, TOKEN)
    client = PlacementClient(
        adapter.Adapter(session.Session(auth), service_type='placement'),
        retries=0,
    )
    made = requests.post(
        f'{placement.url}/resource_providers',
        json={'name': str(uuid.uuid4())},
        headers={
            'OpenStack-API-Version': 'placement 1.36',
            'X-Auth-Token': TOKEN,
        },
        timeout=60,
    )
    assert made.ok
    lengths = {}
    for number in (1, 20, 45, *range(48, 100, 4)):
        uuids = [str(uuid.UUID(int=one)) for one in range(number)]
        try:
            lengths[number] = client.resource_providers(member_of=uuids)
        except exception.ServiceError as exc:
            lengths[number] = exc
    answers = [one for one in lengths.values() if isinstance(one, list)]
    # No provider is in any of these aggregates.
    assert answers
    assert all(one == [] for one in answers)
    if placement.server is UWSGI:
        dropped = [
            one
            for one in lengths.values()
            if isinstance(one, exception.QueryTooLong)
            and one.happened == 'answered as if nothing was asked for'
        ]
        assert dropped


def test_a_query_that_placement_calls_invalid_is_not_too_long(way, found):
    placement = way[0]
    auth = token_endpoint.Token(placement.url, TOKEN)
    client = PlacementClient(
        adapter.Adapter(session.Session(auth), service_type='placement')
    )
    # If it fits, so long that a 400 of HAProxy would mean it.
    name = 'X' * min(1580, found.longest - 50)
    path = f'/allocation_candidates?resources=CUSTOM_{name}:1'
    with pytest.raises(exception.BadQuery):
        client.get(path)
