#!/usr/bin/env bash
# Expected: an option with a smallest value, such as cpu_allocation_ratio of
#   nova.conf (0.0), refuses nan; so would Placement, with 400, as for inf.
# Seen: oslo.config accepts nan for any such option, also for one with a largest
#   value, because nan is neither less nor greater. Placement answers 500 to an
#   inventory with it, and keeps the inventory that it has.
# Package: oslo.config 10.7.0, openstack-placement 16.0.0
# Why: a ratio that a template fills in wrongly passes the start of the service;
#   what the host has is no longer written to Placement, and nobody is told so
#   but its log. Weights and deadlines are options of this kind, too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    oslo.config==10.7.0 openstack-placement==16.0.0 SQLAlchemy==2.0.41 wsgi-intercept==1.13.1
cd "$folder"
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import json
import pathlib
import sys

from oslo_config import cfg
from placement import conf, direct

OPTIONS = [
    cfg.FloatOpt('cpu_allocation_ratio', min=0.0),
    cfg.FloatOpt('share', min=0.0, max=1.0),
]


def read(name, value):
    """Return an option as a service reads it at its start."""
    file = pathlib.Path('nova.conf')
    file.write_text(f'[DEFAULT]\n{name} = {value}\n')
    options = cfg.ConfigOpts()
    options.register_opts(OPTIONS)
    options(['--config-file', str(file)])
    try:
        return options[name]
    except ValueError:
        return 'refused'


config = cfg.ConfigOpts()
conf.register_opts(config)
config.set_override('connection', 'sqlite://', 'placement_database')
config.set_override('sync_on_startup', True, 'placement_database')
config([], default_config_files=[])

seen = {
    f'{option.name} = {value}': read(option.name, value)
    for option in OPTIONS
    for value in ('-1', 'nan', 'inf')
}
with direct.PlacementDirect(config, latest_microversion=True) as client:
    made = client.post('/resource_providers', json={'name': 'host'}).json()
    path = f'/resource_providers/{made["uuid"]}/inventories'
    for ratio in (4.0, float('inf'), float('nan')):
        body = {
            'resource_provider_generation': client.get(path).json()[
                'resource_provider_generation'
            ],
            'inventories': {'VCPU': {'total': 8, 'allocation_ratio': ratio}},
        }
        answer = client.put(
            path,
            data=json.dumps(body),
            headers={'Content-Type': 'application/json'},
            raise_exc=False,
        )
        seen[f'Placement, {ratio}'] = answer.status_code
    inventory = client.get(path).json()['inventories']['VCPU']
    seen['kept'] = inventory['allocation_ratio']

for name in ('oslo.config', 'openstack-placement'):
    print(name, metadata.version(name))
for what, answer in seen.items():
    print(f'{what}: {answer}')
if [*map(str, seen.values())] != [
    *('refused', 'nan', 'inf', 'refused', 'nan', 'refused'),
    *('200', '400', '500', '4.0'),
]:
    sys.exit('changed')
PROGRAM
# seen: oslo.config 10.7.0
# seen: openstack-placement 16.0.0
# seen: cpu_allocation_ratio = -1: refused
# seen: cpu_allocation_ratio = nan: nan
# seen: cpu_allocation_ratio = inf: inf
# seen: share = -1: refused
# seen: share = nan: nan
# seen: share = inf: refused
# seen: Placement, 4.0: 200
# seen: Placement, inf: 400
# seen: Placement, nan: 500
# seen: kept: 4.0
