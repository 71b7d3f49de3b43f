#!/usr/bin/env bash
# Expected: a class that stands twice in one resources parameter, such as
#   resources=VCPU:4,VCPU:1, is a 400, or its amounts are added.
# Seen: 200, and the last amount is the one that counts: 1.
# Package: openstack-placement 16.0.0
# Why: programs that join the resources of a flavor, its ports and its devices
#   to one text must add them first. Nothing warns of what is claimed too low.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    openstack-placement==16.0.0 SQLAlchemy==2.0.41 wsgi-intercept==1.13.1
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import sys

from oslo_config import cfg
from placement import conf, direct

config = cfg.ConfigOpts()
conf.register_opts(config)
config.set_override('connection', 'sqlite://', 'placement_database')
config.set_override('sync_on_startup', True, 'placement_database')
config([], default_config_files=[])


def provider(client, name, parent=None, **parts):
    body = {'name': name, 'parent_provider_uuid': parent}
    uuid = client.post('/resource_providers', json=body).json()['uuid']
    path = f'/resource_providers/{uuid}'
    for part, value in parts.items():
        now = client.get(path).json()['generation']
        body = {part: value, 'resource_provider_generation': now}
        client.put(f'{path}/{part}', json=body)
    return uuid


with direct.PlacementDirect(config, latest_microversion=True) as client:
    provider(client, 'host', inventories={'VCPU': {'total': 8}})
    query = '/allocation_candidates?resources=VCPU:4,VCPU:1'
    answer = client.get(query, raise_exc=False)

[found] = answer.json()['allocation_requests']
[allocation] = found['allocations'].values()
print('openstack-placement', metadata.version('openstack-placement'))
print('status:', answer.status_code)
print('offered for VCPU:4,VCPU:1:', allocation['resources'])
if allocation['resources'] != {'VCPU': 1}:
    sys.exit('changed')
PROGRAM
# seen: openstack-placement 16.0.0
# seen: status: 200
# seen: offered for VCPU:4,VCPU:1: {'VCPU': 1}
