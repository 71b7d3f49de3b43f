#!/usr/bin/env bash
# Expected: a query for 1 VCPU and, in a group, 2 VCPUs. A host has two child
#   providers with 40 VCPUs each. Every candidate has 3 VCPUs in all.
# Seen: at least one candidate has another sum, such as 5. With
#   group_policy=none, a parameter that one group does not need, all have 3.
# Package: openstack-placement 16.0.0
# Why: Nova claims what is offered, so servers take more than they asked for.
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


def sums(client, query):
    found = client.get(f'/allocation_candidates?{query}').json()
    return sorted(
        sum(part['resources']['VCPU'] for part in one['allocations'].values())
        for one in found['allocation_requests']
    )


with direct.PlacementDirect(config, latest_microversion=True) as client:
    root = provider(client, 'host')
    for number in range(2):
        provider(
            client,
            f'numa-{number}',
            parent=root,
            inventories={'VCPU': {'total': 40}},
        )
    query = 'resources=VCPU:1&resources1=VCPU:2'
    plain = sums(client, query)
    policy = sums(client, f'{query}&group_policy=none')

print('openstack-placement', metadata.version('openstack-placement'))
print('all sums are 3 without group_policy:', set(plain) == {3})
print('all sums are 3 with group_policy=none:', set(policy) == {3})
if set(plain) == {3} or set(policy) != {3}:
    sys.exit(f'changed: {plain} and {policy}')
PROGRAM
# seen: openstack-placement 16.0.0
# seen: all sums are 3 without group_policy: False
# seen: all sums are 3 with group_policy=none: True
