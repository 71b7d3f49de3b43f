#!/usr/bin/env bash
# Expected: quotes work in lists as in texts: "a,b",c has two items, and neither
#   has a quote in it, as a text in quotes has none.
# Seen: a text or a list that is quoted as a whole loses the quotes, but an item
#   of a list keeps them: "a,b",c has three items, '"a', 'b"' and 'c'.
# Package: oslo.config 10.7.0
# Why: options such as enabled_filters, or prefixes of metadata keys, then have
#   names with quotes, which match nothing or stop a service.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    oslo.config==10.7.0
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import sys
import tempfile

from oslo_config import cfg


def read(option, value):
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
        file.write(f'[DEFAULT]\nprefix = {value}\n')
        file.flush()
        config = cfg.ConfigOpts()
        config.register_opt(option)
        config([], default_config_files=[file.name])
        return config.prefix


known = [
    (cfg.StrOpt('prefix'), '"a,b"', 'a,b'),
    (cfg.ListOpt('prefix'), '"a,b"', ['a', 'b']),
    (cfg.ListOpt('prefix'), '"a,b",c', ['"a', 'b"', 'c']),
]
print('oslo.config', metadata.version('oslo.config'))
changed = False
for option, value, expected in known:
    seen = read(option, value)
    print(type(option).__name__, value, 'is', seen)
    changed |= seen != expected
if changed:
    sys.exit('changed')
PROGRAM
# seen: oslo.config 10.7.0
# seen: StrOpt "a,b" is a,b
# seen: ListOpt "a,b" is ['a', 'b']
# seen: ListOpt "a,b",c is ['"a', 'b"', 'c']
