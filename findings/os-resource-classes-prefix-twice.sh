#!/usr/bin/env bash
# Expected: normalize_name() of os-resource-classes and os-traits turns "gold"
#   into CUSTOM_GOLD and leaves CUSTOM_GOLD as it is.
# Seen: CUSTOM_GOLD becomes CUSTOM_CUSTOM_GOLD. And names that differ in other
#   signs become one: gold+ and gold- are both CUSTOM_GOLD_.
# Package: os-resource-classes 1.1.0, os-traits 3.9.0
# Why: Nova's PCI code asks for the prefix before it calls them. A tool that
#   does not makes a class or trait that no flavor asks for.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    os-resource-classes==1.1.0 os-traits==3.9.0
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import sys

import os_resource_classes
import os_traits

known = {
    'gold': 'CUSTOM_GOLD',
    'CUSTOM_GOLD': 'CUSTOM_CUSTOM_GOLD',
    'gold+': 'CUSTOM_GOLD_',
    'gold-': 'CUSTOM_GOLD_',
}
changed = False
for library in (os_resource_classes, os_traits):
    name = library.__name__.replace('_', '-')
    seen = {given: library.normalize_name(given) for given in known}
    print(name, metadata.version(name), seen)
    changed |= seen != known
if changed:
    sys.exit('changed')
PROGRAM
# seen: os-resource-classes 1.1.0 {'gold': 'CUSTOM_GOLD', 'CUSTOM_GOLD': 'CUSTOM_CUSTOM_GOLD', 'gold+': 'CUSTOM_GOLD_', 'gold-': 'CUSTOM_GOLD_'}
# seen: os-traits 3.9.0 {'gold': 'CUSTOM_GOLD', 'CUSTOM_GOLD': 'CUSTOM_CUSTOM_GOLD', 'gold+': 'CUSTOM_GOLD_', 'gold-': 'CUSTOM_GOLD_'}
