#!/usr/bin/env bash
# Expected: in_tree narrows a query to one host. A host that uses shared storage
#   is still offered, with the disk of the storage, as without in_tree.
# Seen: nothing is offered: the storage is in another tree, and in_tree also
#   holds for the disk. Only a suffixed group of its own may leave the tree.
# Package: openstack-placement 16.0.0
# Why: Nova sends in_tree for a requested host, so "openstack server create
#   --host" finds no host where a server without --host lands on that one.
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


shared = ['5dde4b13-764a-5a81-93fd-8ecdac212f2f']


def offered(client, query):
    found = client.get(f'/allocation_candidates?{query}').json()
    return len(found['allocation_requests'])


with direct.PlacementDirect(config, latest_microversion=True) as client:
    host = provider(
        client,
        'host',
        inventories={'VCPU': {'total': 8}},
        aggregates=shared,
    )
    provider(
        client,
        'storage',
        inventories={'DISK_GB': {'total': 100}},
        traits=['MISC_SHARES_VIA_AGGREGATE'],
        aggregates=shared,
    )
    free = offered(client, 'resources=VCPU:1,DISK_GB:5')
    tied = offered(client, f'resources=VCPU:1,DISK_GB:5&in_tree={host}')
    group = f'resources=VCPU:1&in_tree={host}&resources1=DISK_GB:5'
    apart = offered(client, group)

print('openstack-placement', metadata.version('openstack-placement'))
print('offered without in_tree:', free)
print('offered with in_tree:', tied)
print('offered with in_tree, and the disk in a group:', apart)
if (free, tied, apart) != (1, 0, 1):
    sys.exit('changed')
PROGRAM
# seen: openstack-placement 16.0.0
# seen: offered without in_tree: 1
# seen: offered with in_tree: 0
# seen: offered with in_tree, and the disk in a group: 1
