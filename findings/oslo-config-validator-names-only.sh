#!/usr/bin/env bash
# Expected: oslo-config-validator tells everything in a file that a service would
#   refuse: unknown options, and values that an option cannot have.
# Seen: it tells unknown names only. Words for numbers and switches, and unknown
#   choices, end with 0 and without a word; the service does not start with them.
# Package: oslo.config 10.7.0, oslo.log 8.3.2
# Why: a pipeline that lets files through by its exit status installs those that
#   stop the services of a cloud at their next start.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    oslo.config==10.7.0 oslo.log==8.3.2
cd "$folder"
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import pathlib
import subprocess
import sys

from oslo_config import cfg
from oslo_log import log

LINES = (
    'publish_errors = true',
    'nosuch = true',
    'publish_errors = maybe',
    'max_logfile_count = many',
    'log_rotation_type = weekly',
)


def validated(file):
    """Return the exit status of the validator, and whether it complained."""
    program = pathlib.Path(sys.executable).with_name('oslo-config-validator')
    result = subprocess.run(
        [program, '--namespace', 'oslo.log', '--input-file', file],
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, bool(result.stdout + result.stderr)


def starts(file):
    """Return whether a service that reads all its options starts."""
    conf = cfg.ConfigOpts()
    log.register_options(conf)
    try:
        conf(['--config-file', file], default_config_files=[])
        for name in conf:
            conf[name]
    except ValueError:
        return False
    return True


seen = {}
for line in LINES:
    pathlib.Path('service.conf').write_text(f'[DEFAULT]\n{line}\n')
    seen[line] = (*validated('service.conf'), starts('service.conf'))

for name in ('oslo.config', 'oslo.log'):
    print(name, metadata.version(name))
for line, (status, complains, good) in seen.items():
    print(
        f'{line}: the validator ends with {status}',
        'and complains,' if complains else 'without a word,',
        'the service reads it' if good else 'the service refuses it',
    )
if [*seen.values()] != [
    (0, False, True),
    (1, True, True),
    *[(0, False, False)] * 3,
]:
    sys.exit('changed')
PROGRAM
# seen: oslo.config 10.7.0
# seen: oslo.log 8.3.2
# seen: publish_errors = true: the validator ends with 0 without a word, the service reads it
# seen: nosuch = true: the validator ends with 1 and complains, the service reads it
# seen: publish_errors = maybe: the validator ends with 0 without a word, the service refuses it
# seen: max_logfile_count = many: the validator ends with 0 without a word, the service refuses it
# seen: log_rotation_type = weekly: the validator ends with 0 without a word, the service refuses it
