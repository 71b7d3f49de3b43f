#!/usr/bin/env bash
# Expected: 100 units with an allocation_ratio of 1.15 are 115, and a claim of
#   115 fits into an unused provider.
# Seen: the capacity is 114. The product is 114.99999999999999 in floating
#   point, and Placement cuts it off; 0.57, 0.58 and 4.35 are such ratios too.
# Package: openstack-placement 16.0.0 (SQLite)
# Why: whoever computes capacity with exact or rounded numbers promises a unit
#   that Placement never gives away.
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
    client.put('/resource_classes/CUSTOM_SLOT')
    inventory = {'total': 100, 'allocation_ratio': 1.15}
    host = provider(client, 'host', inventories={'CUSTOM_SLOT': inventory})
    offered = {}
    for amount in (114, 115):
        query = f'/allocation_candidates?resources=CUSTOM_SLOT:{amount}'
        found = client.get(query).json()
        offered[amount] = len(found['allocation_requests'])
        if found['provider_summaries']:
            summary = found['provider_summaries'][host]['resources']

capacity = summary['CUSTOM_SLOT']['capacity']
print('openstack-placement', metadata.version('openstack-placement'))
print('capacity of 100 x 1.15:', capacity)
print('offered for an amount:', offered)
if (capacity, offered) != (114, {114: 1, 115: 0}):
    sys.exit('changed')
PROGRAM
# seen: openstack-placement 16.0.0
# seen: capacity of 100 x 1.15: 114
# seen: offered for an amount: {114: 1, 115: 0}
