#!/usr/bin/env bash
# Expected: an inventory whose min_unit is above its max_unit is refused with
#   400, because no amount could ever be taken.
# Seen: 200. The provider is in no answer any more, and new claims are 409. So
#   is a claim that merely hands the allocation of a server to another consumer,
#   as Nova does at the start of a migration: reserved would not hinder that.
# Package: openstack-placement 16.0.0
# Why: it closes an inventory and keeps its total, but only an unused one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    openstack-placement==16.0.0 SQLAlchemy==2.0.41 wsgi-intercept==1.13.1
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import sys
import uuid

from oslo_config import cfg
from placement import conf, direct

config = cfg.ConfigOpts()
conf.register_opts(config)
config.set_override('connection', 'sqlite://', 'placement_database')
config.set_override('sync_on_startup', True, 'placement_database')
config([], default_config_files=[])


def provider(client, name, parent=None, **parts):
    body = {'name': name, 'parent_provider_uuid': parent}
    made = client.post('/resource_providers', json=body).json()['uuid']
    path = f'/resource_providers/{made}'
    for part, value in parts.items():
        now = client.get(path).json()['generation']
        body = {part: value, 'resource_provider_generation': now}
        client.put(f'{path}/{part}', json=body)
    return made


def consumer(resources, generation):
    return {
        'allocations': {host: {'resources': resources}} if resources else {},
        'project_id': 'project',
        'user_id': 'user',
        'consumer_generation': generation,
        'consumer_type': 'INSTANCE',
    }


def move(client, generation):
    """Give the allocation of the server to a new consumer."""
    body = {
        server: consumer({}, generation),
        str(uuid.uuid4()): consumer({'VCPU': 1}, None),
    }
    return client.post('/allocations', json=body, raise_exc=False).status_code


def change(client, **inventory):
    path = f'/resource_providers/{host}'
    body = {
        'inventories': {'VCPU': {'total': 4, **inventory}},
        'resource_provider_generation': client.get(path).json()['generation'],
    }
    answer = client.put(f'{path}/inventories', json=body, raise_exc=False)
    return answer.status_code


server = str(uuid.uuid4())
with direct.PlacementDirect(config, latest_microversion=True) as client:
    host = provider(client, 'host', inventories={'VCPU': {'total': 4}})
    path = f'/allocations/{server}'
    client.put(path, json=consumer({'VCPU': 1}, None))
    answers = {'min_unit 2, max_unit 1': change(client, min_unit=2, max_unit=1)}
    found = client.get('/allocation_candidates?resources=VCPU:1').json()
    answers['candidates'] = len(found['allocation_requests'])
    answers['the server moves away'] = move(client, 1)
    answers['reserved 4 of 4'] = change(client, reserved=4)
    answers['then it moves away'] = move(client, 1)

print('openstack-placement', metadata.version('openstack-placement'))
for what, answer in answers.items():
    print(f'{what}: {answer}')
if list(answers.values()) != [200, 0, 409, 200, 204]:
    sys.exit('changed')
PROGRAM
# seen: openstack-placement 16.0.0
# seen: min_unit 2, max_unit 1: 200
# seen: candidates: 0
# seen: the server moves away: 409
# seen: reserved 4 of 4: 200
# seen: then it moves away: 204
