#!/usr/bin/env bash
# Expected: a query for one class of one child provider is answered with a
#   summary of that provider, or of those that may serve it.
# Seen: the summaries have every provider of the tree, with the capacity and
#   usage of all their classes and their traits, from microversion 1.29 on.
# Package: openstack-placement 16.0.0
# Why: a marker class that every host has, and nothing takes, lets one query
#   read thousands of hosts, where a query for each of them is needed otherwise.
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
    client.put('/resource_classes/CUSTOM_MARKER')
    root = provider(client, 'host', inventories={'VCPU': {'total': 8}})
    provider(client, 'gpu', parent=root, inventories={'VGPU': {'total': 2}})
    provider(
        client,
        'slots',
        parent=root,
        inventories={'CUSTOM_MARKER': {'total': 1}},
    )
    query = '/allocation_candidates?resources=CUSTOM_MARKER:1'
    found = client.get(query).json()

[asked] = found['allocation_requests']
classes = sorted(
    resource_class
    for summary in found['provider_summaries'].values()
    for resource_class in summary['resources']
)
print('openstack-placement', metadata.version('openstack-placement'))
print('providers in the candidate:', len(asked['allocations']))
print('classes in the summaries:', *classes)
if classes != ['CUSTOM_MARKER', 'VCPU', 'VGPU']:
    sys.exit('changed')
PROGRAM
# seen: openstack-placement 16.0.0
# seen: providers in the candidate: 1
# seen: classes in the summaries: CUSTOM_MARKER VCPU VGPU
