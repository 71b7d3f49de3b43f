# SPDX-License-Identifier: Apache-2.0
"""Reproduce a bug of Placement over HTTP, and clean up afterwards.

python3 reproduce.py <endpoint> <token> <mistake>
"""

from concurrent import futures
import json
import sys
from urllib import error, request
import uuid

ENDPOINT, TOKEN, MISTAKE = sys.argv[1:]
AGGREGATE = str(uuid.uuid4())
MADE = []
NAMES = ('AVX', 'AVX2', 'MMX', 'SSE', 'SSE2', 'SSE3')
TRAITS = [f'HW_CPU_X86_{name}' for name in NAMES]


def call(method, path, body=None):
    asked = request.Request(
        ENDPOINT + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            'X-Auth-Token': TOKEN,
            'OpenStack-API-Version': 'placement 1.39',
            'Content-Type': 'application/json',
            'Accept': 'application/json',
        },
    )
    try:
        with request.urlopen(asked) as answer:
            return answer.status, json.loads(answer.read() or 'null')
    except error.HTTPError as exc:
        return exc.code, json.loads(exc.read() or 'null')


def provider(name, inventories, parent=None, shares=False, joins=True):
    path = '/resource_providers'
    body = {'name': f'{name}-{AGGREGATE}', 'parent_provider_uuid': parent}
    made = call('POST', path, body)[1]['uuid']
    MADE.append(made)
    changes = {
        'inventories': {rc: {'total': n} for rc, n in inventories.items()},
        'traits': ['MISC_SHARES_VIA_AGGREGATE'] if shares else [],
        'aggregates': [AGGREGATE] if joins else [],
    }
    for what, value in changes.items():
        now = call('GET', f'{path}/{made}')[1]['generation']
        body = {what: value, 'resource_provider_generation': now}
        status, answer = call('PUT', f'{path}/{made}/{what}', body)
        assert status == 200, answer
    return made


def ask(query):
    print(f'GET /allocation_candidates?{query}')
    status, answer = call('GET', f'/allocation_candidates?{query}')
    print(f'status: {status}')
    if status != 200:
        return []
    return [
        sorted(
            (rc, amount)
            for allocation in candidate['allocations'].values()
            for rc, amount in allocation['resources'].items()
        )
        for candidate in answer['allocation_requests']
    ]


def lost_anchors():
    provider('storage', {'DISK_GB': 100}, shares=True)
    for number in (1, 2, 3):
        provider(f'host-{number}', {'VCPU': 4})
    found = ask('resources=DISK_GB:5&resources1=VCPU:1')
    print('candidates (expected: 3):')
    print(len(found))
    return len(found) != 3


def added_amounts():
    host = provider('host', {}, joins=False)
    for number in (1, 2):
        provider(f'numa-{number}', {'VCPU': 40}, host, joins=False)
    found = ask('resources=VCPU:1&resources1=VCPU:2')
    sums = [sum(amount for _, amount in amounts) for amounts in found]
    print('VCPU of each candidate (expected: 3):')
    print(*sorted(sums))
    return set(sums) != {3}


def sharing_child():
    rack = provider('rack', {}, joins=False)
    provider('storage', {'DISK_GB': 100}, rack, shares=True)
    provider('host', {'VCPU': 4})
    found = ask('resources=DISK_GB:5,VCPU:1')
    print('candidates (expected: 1):')
    print(len(found))
    return len(found) != 1


def missing_409():
    path = f'/resource_providers/{provider("host", {}, joins=False)}/traits'

    def put(trait, generation):
        body = {'traits': [trait], 'resource_provider_generation': generation}
        status, answer = call('PUT', path, body)
        return status, answer['errors'][0]['detail'] if status >= 400 else ''

    print(f'PUT {path}, {len(TRAITS)} requests in parallel')
    with futures.ThreadPoolExecutor(len(TRAITS)) as threads:
        for _ in range(100):
            now = call('GET', path)[1]['resource_provider_generation']
            for status, said in threads.map(put, TRAITS, [now] * len(TRAITS)):
                # A locked SQLite database is a different problem.
                if status == 500 and 'concurrently updated' in said:
                    print(f'status (expected: 409): {status}')
                    print(said.split('\n\n')[1].strip())
                    return True
    return False


def oversold_resources():
    print('PUT /allocations, 8 consumers in parallel for 1 VCPU')

    def claim(host):
        body = {
            'allocations': {host: {'resources': {'VCPU': 1}}},
            'project_id': AGGREGATE,
            'user_id': AGGREGATE,
            'consumer_generation': None,
            'consumer_type': 'TEST',
        }
        consumer = str(uuid.uuid4())
        status = call('PUT', f'/allocations/{consumer}', body)[0]
        return consumer, status == 204

    with futures.ThreadPoolExecutor(8) as threads:
        for _ in range(20):
            host = provider(f'host-{len(MADE)}', {'VCPU': 1}, joins=False)
            claims = dict(threads.map(claim, [host] * 8))
            used = call('GET', f'/resource_providers/{host}/usages')[1]
            for consumer in claims:
                call('DELETE', f'/allocations/{consumer}')
            if used['usages']['VCPU'] > 1:
                print('used VCPU (expected: 1):')
                print(used['usages']['VCPU'])
                return True
    return False


try:
    is_wrong = globals()[MISTAKE.replace('-', '_')]()
    print('reproduced' if is_wrong else 'not reproduced')
finally:
    for made in reversed(MADE):
        call('DELETE', f'/resource_providers/{made}')
sys.exit(not is_wrong)
