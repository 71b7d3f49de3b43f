#!/usr/bin/env bash
# Expected: a client that is installed beside the openstack client adds
#   commands, and the others stay as they are.
# Seen: python-blazarclient 4.6.0 declares "reservation host unset" without its
#   class. That command does not exist, and each other one, of whatever
#   service, writes a line about it to stderr.
# Package: python-blazarclient 4.6.0 (python-openstackclient 10.5.0)
# Why: who takes what is on stderr for an error, as scripts and monitoring do,
#   sees one in each command of each service. An environment of its own for
#   this client helps.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    python-blazarclient==4.6.0 python-openstackclient==10.5.0
"$folder/venv/bin/python" - <<'PROGRAM'
import importlib
from importlib import metadata
import pathlib
import subprocess
import sys

OPENSTACK = pathlib.Path(sys.executable).with_name('openstack')
MISSING = (
    "Could not load 'reservation_host_unset': module "
    "'blazarclient.v1.shell_commands.hosts' has no attribute "
    "'UnsetAttributeHost'"
)


def run(*words):
    return subprocess.run(
        [OPENSTACK, *words],
        env={'OS_AUTH_TYPE': 'none', 'OS_ENDPOINT': 'http://127.0.0.1:1/'},
        capture_output=True,
        text=True,
    )


[declared] = metadata.entry_points(name='reservation_host_unset')
module = importlib.import_module(declared.module)
is_there = hasattr(module, declared.attr)
print('python-blazarclient', metadata.version('python-blazarclient'))
print('declared:', declared.value, '- there:', is_there)
changed = is_there
# Of the client itself and of Nova: neither is a command of Blazar.
for words in (('module', 'list'), ('help', 'aggregate', 'create')):
    result = run(*words)
    print(f'openstack {" ".join(words)} ends', result.returncode, 'and warns:')
    print(result.stderr.strip())
    changed |= (result.returncode, result.stderr.strip()) != (0, MISSING)
if changed:
    sys.exit('changed')
PROGRAM
# seen: python-blazarclient 4.6.0
# seen: declared: blazarclient.v1.shell_commands.hosts:UnsetAttributeHost - there: False
# seen: openstack module list ends 0 and warns:
# seen: Could not load 'reservation_host_unset': module 'blazarclient.v1.shell_commands.hosts' has no attribute 'UnsetAttributeHost'
# seen: openstack help aggregate create ends 0 and warns:
# seen: Could not load 'reservation_host_unset': module 'blazarclient.v1.shell_commands.hosts' has no attribute 'UnsetAttributeHost'
