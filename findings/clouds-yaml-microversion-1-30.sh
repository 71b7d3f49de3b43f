#!/usr/bin/env bash
# Expected: placement_default_microversion: 1.30 in clouds.yaml asks Placement
#   as of microversion 1.30, or the number is refused.
# Seen: 1.3 is asked for. YAML reads a number, which has no last zero, and
#   openstacksdk makes a text of it. In quotes, '1.30' stays.
# Package: openstacksdk 4.22.0 (PyYAML)
# Why: 1.3 is 27 versions older: it has no nested providers and no allocation
#   candidates, so scripts get other answers, or a 404 that names no version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    openstacksdk==4.22.0
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import os
import sys
import tempfile

from openstack import config

CLOUD = """
clouds:
  site:
    auth_type: none
    auth: {{endpoint: http://127.0.0.1/placement}}
    placement_default_microversion: {version}
"""


def read(version):
    with tempfile.NamedTemporaryFile('w', suffix='.yaml') as file:
        file.write(CLOUD.format(version=version))
        file.flush()
        found = config.OpenStackConfig(config_files=[file.name])
        return found.get_one('site').get_default_microversion('placement')


for name in list(os.environ):
    if name.startswith('OS_'):
        del os.environ[name]
seen = {version: read(version) for version in ('1.30', "'1.30'", '1.39')}
print('openstacksdk', metadata.version('openstacksdk'))
for version, asked in seen.items():
    print('in the file:', version, 'asked for:', asked)
if list(seen.values()) != ['1.3', '1.30', '1.39']:
    sys.exit('changed')
PROGRAM
# seen: openstacksdk 4.22.0
# seen: in the file: 1.30 asked for: 1.3
# seen: in the file: '1.30' asked for: 1.30
# seen: in the file: 1.39 asked for: 1.39
