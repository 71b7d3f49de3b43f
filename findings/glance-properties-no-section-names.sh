#!/usr/bin/env bash
# Expected: a file of property protections that names only ^trait:.* protects
#   these properties, and leaves all others as they were.
# Seen: no member may create, read, change or delete a property that no section
#   matches. With a last section for .* they may; and if that stands first, it
#   also applies to trait:*, as the first section that matches decides.
# Package: glance 32.0.0
# Why: whoever protects the traits of isolated hosts so hides os_distro and all
#   other properties from tenants, and images lose them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    glance==32.0.0
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import subprocess
import sys
import tempfile

CHECK = """
import sys

from glance import context
from glance.common import config, property_utils
from oslo_config import cfg

cfg.CONF([], default_config_files=[])
cfg.CONF.set_override('property_protection_file', sys.argv[1])
cfg.CONF.set_override('property_protection_rule_format', 'roles')
rules = property_utils.PropertyRules()
member = context.RequestContext(roles=['member'])
for name in ('trait:CUSTOM_A', 'os_distro'):
    for operation in ('create', 'read', 'update', 'delete'):
        allowed = rules.check_property_rules(name, operation, member)
        print('yes' if allowed else 'no')
"""
TRAITS = """
[^trait:.*]
create = admin
read = @
update = admin
delete = admin
"""
OTHERS = """
[.*]
create = @
read = @
update = @
delete = @
"""


def allowed(text):
    """Ask a process of its own: sections stay in the memory of one."""
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
        file.write(text)
        file.flush()
        lines = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', CHECK, file.name],
            capture_output=True,
            check=True,
            text=True,
        ).stdout.split()
    return ' '.join(lines[:4]), ' '.join(lines[4:])


protected, free, shut = 'no yes no no', 'yes yes yes yes', 'no no no no'
known = {
    'traits': (TRAITS, (protected, shut)),
    'traits, others': (TRAITS + OTHERS, (protected, free)),
    'others, traits': (OTHERS + TRAITS, (free, free)),
}
print('glance', metadata.version('glance'))
print('a member may create, read, update, delete trait:CUSTOM_A; os_distro')
changed = False
for sections, (text, expected) in known.items():
    seen = allowed(text)
    print(f'{sections}: {seen[0]}; {seen[1]}')
    changed |= seen != expected
if changed:
    sys.exit('changed')
PROGRAM
# seen: glance 32.0.0
# seen: a member may create, read, update, delete trait:CUSTOM_A; os_distro
# seen: traits: no yes no no; no no no no
# seen: traits, others: no yes no no; yes yes yes yes
# seen: others, traits: yes yes yes yes; yes yes yes yes
