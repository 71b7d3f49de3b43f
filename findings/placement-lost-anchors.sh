#!/usr/bin/env bash
# Expected: three hosts share one disk provider, and each has free VCPUs. A
#   query for the disk without a suffix and VCPUs in a group offers all three.
# Seen: it offers one host at most. The same query with both in one group
#   offers three. Placement keeps one of several equal allocations of the disk.
# Package: openstack-placement 16.0.0
# Why: with shared storage, a flavor with resources1:VCPU loses most hosts.
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


def hosts(client, query):
    found = client.get(f'/allocation_candidates?{query}').json()
    return len(found['allocation_requests'])


shared = ['5dde4b13-764a-5a81-93fd-8ecdac212f2f']
with direct.PlacementDirect(config, latest_microversion=True) as client:
    provider(
        client,
        'storage',
        inventories={'DISK_GB': {'total': 100}},
        traits=['MISC_SHARES_VIA_AGGREGATE'],
        aggregates=shared,
    )
    for number in range(3):
        provider(
            client,
            f'host-{number}',
            inventories={'VCPU': {'total': 8}},
            aggregates=shared,
        )
    together = hosts(client, 'resources=DISK_GB:5,VCPU:1')
    apart = hosts(client, 'resources=DISK_GB:5&resources1=VCPU:1')

print('openstack-placement', metadata.version('openstack-placement'))
print('hosts offered, in one group:', together)
print('fewer with two groups:', apart < together)
if together != 3 or apart > 1:
    sys.exit(f'changed: {together} and {apart} hosts')
PROGRAM
# seen: openstack-placement 16.0.0
# seen: hosts offered, in one group: 3
# seen: fewer with two groups: True
