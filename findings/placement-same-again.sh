#!/usr/bin/env bash
# Expected: a PUT of what a provider already has leaves its generation, or all
#   writes of a provider raise it; then a generation says whether it changed.
# Seen: the same inventories or aggregates once more raise it, also those of a
#   provider that has none. The same traits, another name and another parent do
#   not.
# Package: openstack-placement 16.0.0
# Why: who writes memberships at each round, as sync tools do, lets others with
#   a generation run into 409 although nothing has changed; and who remembers
#   providers by generation misses new names and parents.
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

PARTS = {
    'inventories': {'VCPU': {'total': 4}},
    'aggregates': ['5dde4b13-764a-5a81-93fd-8ecdac212f2f'],
    'traits': ['HW_CPU_X86_AVX2'],
}
EMPTY = {'inventories': {}, 'aggregates': [], 'traits': []}

with direct.PlacementDirect(config, latest_microversion=True) as client:

    def add(name):
        made = client.post('/resource_providers', json={'name': name})
        return made.json()['uuid']

    def generation(provider):
        path = f'/resource_providers/{provider}'
        return client.get(path).json()['generation']

    def put(provider, part, value):
        """Write a part of a provider; return by how much it was raised."""
        before = generation(provider)
        body = {part: value, 'resource_provider_generation': before}
        client.put(f'/resource_providers/{provider}/{part}', json=body)
        return generation(provider) - before

    def change(provider, **body):
        before = generation(provider)
        client.put(f'/resource_providers/{provider}', json=body)
        return generation(provider) - before

    host, rack, empty = add('host'), add('rack'), add('empty')
    raised = {}
    for part, value in PARTS.items():
        raised[f'{part}, first'] = put(host, part, value)
        raised[f'{part}, the same again'] = put(host, part, value)
        raised[f'no {part}, where there are none'] = put(
            empty, part, EMPTY[part]
        )
    raised['another name'] = change(host, name='renamed')
    above = generation(rack)
    raised['another parent'] = change(
        host, name='renamed', parent_provider_uuid=rack
    )
    raised['of the parent'] = generation(rack) - above

print('openstack-placement', metadata.version('openstack-placement'))
for what, number in raised.items():
    print(f'{what}: {number}')
if list(raised.values()) != [1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]:
    sys.exit('changed')
PROGRAM
# seen: openstack-placement 16.0.0
# seen: inventories, first: 1
# seen: inventories, the same again: 1
# seen: no inventories, where there are none: 1
# seen: aggregates, first: 1
# seen: aggregates, the same again: 1
# seen: no aggregates, where there are none: 1
# seen: traits, first: 1
# seen: traits, the same again: 0
# seen: no traits, where there are none: 0
# seen: another name: 0
# seen: another parent: 0
# seen: of the parent: 0
