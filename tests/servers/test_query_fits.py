# SPDX-License-Identifier: Apache-2.0
"""What web servers refuse of the plain definition is answered when shortened.

Placement runs under gunicorn and uWSGI with the limits they have by default.
"""

import contextlib
import json
from urllib import parse
import uuid

from big_cloud import AGGREGATES, LICENSED_HOSTS, LICENSES, PLAIN_HOSTS
from cases import cases
import pytest
import requests
from web_servers import GUNICORN, UWSGI

from isolate_aggregates import query_limit

# What the servers say to a query that is too long: the status, or None if
# the connection is closed without an answer.
TOO_LONG = {GUNICORN: 414, UWSGI: None}
SAID = {GUNICORN: 'answered 414', UWSGI: 'closed the connection'}

# All that Nova may put into a query beside aggregates, for a server whose
# flavor, image and port require a lot.
LONG_REST = [
    ('group_policy', 'none'),
    ('in_tree', str(uuid.UUID(int=1))),
    ('limit', '1000'),
    (
        'required',
        'COMPUTE_ADDRESS_SPACE_EMULATED,COMPUTE_IMAGE_TYPE_QCOW2,'
        'COMPUTE_NET_VIF_MODEL_VIRTIO,COMPUTE_SECURITY_UEFI_SECURE_BOOT',
    ),
    ('required_port', 'CUSTOM_PHYSNET_PUBLIC,CUSTOM_VNIC_TYPE_NORMAL'),
    ('resources', 'DISK_GB:20,MEMORY_MB:2048,VCPU:1'),
    (
        'resources_port',
        'NET_BW_EGR_KILOBIT_PER_SEC:1000,NET_BW_IGR_KILOBIT_PER_SEC:1000',
    ),
    ('root_required', '!COMPUTE_STATUS_DISABLED'),
]
SHORT_REST = [
    ('limit', '1000'),
    ('resources', 'DISK_GB:20,MEMORY_MB:2048,VCPU:1'),
    ('root_required', '!COMPUTE_STATUS_DISABLED'),
]


# How many aggregates need license 7 and no other.
OPEN = len(range(7, AGGREGATES, LICENSES))


def forbidding(number, rest):
    """Return a path that forbids aggregates."""
    uuids = ','.join(str(uuid.UUID(int=i)) for i in range(number))
    params = sorted([*rest, ('member_of', f'!in:{uuids}')])
    return f'/allocation_candidates?{parse.urlencode(params)}'


def status(placement, path):
    """Return the status of the response; None if there is none."""
    with contextlib.suppress(requests.ConnectionError):
        return placement.get(path).status_code
    return None


def candidates(command, flavor, limit):
    """Return the result of the command."""
    result = command(
        'candidate',
        'list',
        f'--flavor={flavor}',
        '--format=json',
        max_query_length=limit,
    )
    assert result.code == 0, result.err
    return json.loads(result.out)


def names(document):
    return tuple(host['name'] for host in document['hosts'])


def test_the_plain_definition_is_refused_by_the_web_server(placement, command):
    path = forbidding(AGGREGATES, SHORT_REST)
    assert status(placement, path) == TOO_LONG[placement.server]

    result = command('candidate', 'list', '--flavor=plain')
    assert result.code == 1
    assert SAID[placement.server] in result.err
    assert 'Raise that limit' in result.err


@pytest.mark.smoke
def test_with_rollups_it_is_answered_exactly(placement, command):
    synced = command('sync', '--yes')
    assert synced.code == 0, synced.err
    limit = placement.server.max_query_length
    found = candidates(command, 'plain', limit)
    assert names(found) == PLAIN_HOSTS
    [rollup] = found['shortened']['rollups']
    assert rollup['aggregates'] == AGGREGATES

    found = candidates(command, 'license-7', limit)
    # The host that needs another license too is not among them.
    assert names(found) == (LICENSED_HOSTS[7],)
    replaced = sum(r['aggregates'] for r in found['shortened']['rollups'])
    assert 0 < replaced <= AGGREGATES - OPEN
    assert len(found['query']) <= limit


def test_without_rollups_it_is_answered_exactly_too(placement, command):
    mirrored = command('sync', '--yes', '--no-rollups', '--no-traits')
    assert mirrored.code == 0, mirrored.err
    limit = placement.server.max_query_length
    found = candidates(command, 'plain', limit)
    assert names(found) == PLAIN_HOSTS
    assert len(found['query']) <= limit


@cases(
    ('rest', 'documented'),
    {
        'short rest': (SHORT_REST, {GUNICORN: 100, UWSGI: 39}),
        'long rest': (LONG_REST, {GUNICORN: 92, UWSGI: 30}),
    },
)
def test_the_documented_limits_are_right(placement, rest, documented):
    most = documented[placement.server]
    # For uWSGI the name of the machine counts as well.
    about = 2 if placement.server == UWSGI else 0
    assert status(placement, forbidding(most - about, rest)) == 200
    refused = status(placement, forbidding(most + about + 1, rest))
    assert refused == TOO_LONG[placement.server]
    # The recommended value works, with any other parts of the query.
    room = placement.server.max_query_length - len(parse.urlencode(rest))
    recommended = query_limit.most_aggregates(room)
    assert recommended <= most - about
    assert status(placement, forbidding(recommended, rest)) == 200
