#!/usr/bin/env bash
# Expected: resource_properties of a reservation are a JSON expression; "and"
#   and "or" nest, and numbers can be compared with numbers.
# Seen: ["and", ["and", A, B], C] is accepted and means A and C: B is lost. "or"
#   is refused, and so is a number that is not written as a text.
# Package: blazar 18.0.0
# Why: a lease gets hosts that lack what it asked for. ["and", A, B, C] keeps
#   all three.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    blazar==18.0.0
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import json
import sys
import warnings

warnings.simplefilter('ignore')  # of eventlet, when it is imported

from blazar.manager import exceptions
from blazar.utils import plugins

A = ['==', '$vcpus', '4']
B = ['==', '$hypervisor_type', 'QEMU']
C = ['>=', '$memory_mb', '1024']


def converted(expression):
    try:
        return plugins.convert_requirements(json.dumps(expression))
    except exceptions.MalformedRequirements as error:
        return type(error).__name__


known = [
    (['and', A, B, C], ['vcpus == 4', 'hypervisor_type == QEMU',
                        'memory_mb >= 1024']),
    (['and', ['and', A, B], C], ['vcpus == 4', 'memory_mb >= 1024']),
    (['or', A, B], 'MalformedRequirements'),
    (['==', '$vcpus', 4], 'MalformedRequirements'),
]
print('blazar', metadata.version('blazar'))
changed = False
for expression, expected in known:
    seen = converted(expression)
    print(json.dumps(expression), 'is', seen)
    changed |= seen != expected
if changed:
    sys.exit('changed')
PROGRAM
# seen: blazar 18.0.0
# seen: ["and", ["==", "$vcpus", "4"], ["==", "$hypervisor_type", "QEMU"], [">=", "$memory_mb", "1024"]] is ['vcpus == 4', 'hypervisor_type == QEMU', 'memory_mb >= 1024']
# seen: ["and", ["and", ["==", "$vcpus", "4"], ["==", "$hypervisor_type", "QEMU"]], [">=", "$memory_mb", "1024"]] is ['vcpus == 4', 'memory_mb >= 1024']
# seen: ["or", ["==", "$vcpus", "4"], ["==", "$hypervisor_type", "QEMU"]] is MalformedRequirements
# seen: ["==", "$vcpus", 4] is MalformedRequirements
