#!/usr/bin/env bash
# Expected: rate_limit_burst of oslo.log holds back a logger that says too much,
#   each by itself, and as its option says "log level" leaves errors through.
# Seen: all loggers of a process share one count, and errors are dropped, too;
#   only levels from rate_limit_except_level (CRITICAL) on pass. One line that
#   something is dropped is all that tells. With log_config_append no limit is
#   installed at all, and nothing says so.
# Package: oslo.log 8.3.2
# Why: what a service logs once a request, as an audit trail or a bill, is lost
#   when another of its loggers talks, and its failures with it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    oslo.log==8.3.2 oslo.config==10.7.0
cd "$folder"
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import pathlib
import subprocess
import sys

pathlib.Path('service.py').write_text('''
import sys
from oslo_config import cfg
from oslo_log import log

conf = cfg.ConfigOpts()
log.register_options(conf)
conf(sys.argv[1:], default_config_files=[])
log.setup(conf, 'service')
for number in range(6):
    log.getLogger('busy').info('chatter %d', number)
trail = log.getLogger('trail')
trail.info('entry')
trail.error('failure')
trail.critical('end')
''')
pathlib.Path('logging.conf').write_text('''
[loggers]
keys = root
[handlers]
keys = stderr
[formatters]
keys =
[logger_root]
level = INFO
handlers = stderr
[handler_stderr]
class = StreamHandler
args = (sys.stderr,)
''')
LIMIT = ('rate_limit_burst = 3', 'rate_limit_interval = 60')


def told(*lines):
    """Return what the service logs with lines in its configuration."""
    pathlib.Path('service.conf').write_text(
        '\n'.join(('[DEFAULT]', 'use_stderr = true', *lines))
    )
    output = subprocess.run(
        [
            *(sys.executable, '-W', 'ignore', 'service.py'),
            *('--config-file', 'service.conf'),
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    words = ('chatter', 'drop after', 'entry', 'failure', 'end')
    return {
        word: sum(word in line for line in output.splitlines())
        for word in words
    }


seen = {
    'no limit': told(),
    'limit': told(*LIMIT),
    'limit and log_config_append': told(
        *LIMIT, 'log_config_append = logging.conf'
    ),
}
print('oslo.log', metadata.version('oslo.log'))
for how, counts in seen.items():
    print(f'{how}:', ', '.join(f'{n} {word}' for word, n in counts.items()))
if [[*counts.values()] for counts in seen.values()] != [
    [6, 0, 1, 1, 1],
    [3, 1, 0, 0, 1],
    [6, 0, 1, 1, 1],
]:
    sys.exit('changed')
PROGRAM
# seen: oslo.log 8.3.2
# seen: no limit: 6 chatter, 0 drop after, 1 entry, 1 failure, 1 end
# seen: limit: 3 chatter, 1 drop after, 0 entry, 0 failure, 1 end
# seen: limit and log_config_append: 6 chatter, 0 drop after, 1 entry, 1 failure, 1 end
