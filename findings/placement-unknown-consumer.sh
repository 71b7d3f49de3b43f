#!/usr/bin/env bash
# Expected: the allocations of a consumer that does not exist are 404, for
#   reading as for deleting.
# Seen: reading is 200 with no allocations, as for a consumer that has just
#   lost them; deleting is 404.
# Package: openstack-placement 16.0.0
# Why: a 200 does not say that a server or reservation is known to Placement. A
#   second DELETE after a lost answer fails although everything is as wanted.
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

CONSUMER = '5dde4b13-764a-5a81-93fd-8ecdac212f2f'

with direct.PlacementDirect(config, latest_microversion=True) as client:
    path = f'/allocations/{CONSUMER}'
    read = client.get(path)
    deleted = client.delete(path, raise_exc=False)

print('openstack-placement', metadata.version('openstack-placement'))
print('GET:', read.status_code, read.json())
print('DELETE:', deleted.status_code)
if (read.status_code, deleted.status_code) != (200, 404):
    sys.exit('changed')
if read.json() != {'allocations': {}}:
    sys.exit('changed')
PROGRAM
# seen: openstack-placement 16.0.0
# seen: GET: 200 {'allocations': {}}
# seen: DELETE: 404
