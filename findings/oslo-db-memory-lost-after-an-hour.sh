#!/usr/bin/env bash
# Expected: a database in memory (sqlite://), which oslo.db keeps on a single
#   connection, lives as long as the process, as does a Placement on it.
# Seen: connection_recycle_time, 3,600 s if nothing is configured, counts for
#   this connection, too. The first query after it opens a new one, whose
#   database is empty. PlacementDirect makes its tables anew, and answers 200:
#   there is no provider any more.
# Package: oslo.db 18.0.0, openstack-placement 16.0.0
# Why: tests, simulations and rehearsals that keep a Placement in a process for
#   more than an hour find an empty cloud, or, without sync_on_startup, get 500
#   from then on; -1 keeps the connection.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    openstack-placement==16.0.0 oslo.db==18.0.0 SQLAlchemy==2.0.41 wsgi-intercept==1.13.1
cd "$folder"
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import multiprocessing
import sys
import time

from oslo_config import cfg
from placement import conf, direct


def configured(**options):
    """Return the configuration of a Placement in memory."""
    config = cfg.ConfigOpts()
    conf.register_opts(config)
    options |= {'connection': 'sqlite://', 'sync_on_startup': True}
    for name, value in options.items():
        config.set_override(name, value, 'placement_database')
    config([], default_config_files=[])
    return config


def answers(seconds):
    """Return what Placement answers at first, and 3 s later."""
    config = configured(connection_recycle_time=seconds)
    found = []
    with direct.PlacementDirect(config, latest_microversion=True) as client:
        client.post('/resource_providers', json={'name': 'host'})
        for pause in (0, 3):
            time.sleep(pause)
            answer = client.get('/resource_providers', raise_exc=False)
            count = len(answer.json().get('resource_providers', ()))
            found.append(f'{answer.status_code} with {count}')
    return found


for name in ('oslo.db', 'SQLAlchemy', 'openstack-placement'):
    print(name, metadata.version(name))
default = configured().placement_database.connection_recycle_time
print('connection_recycle_time without configuration:', default)
seen = []
for seconds in (-1, 2):
    # Placement has one database in a process.
    with multiprocessing.get_context('fork').Pool(1) as pool:
        seen.append(pool.apply(answers, (seconds,)))
    print(f'{seconds} s: providers at first and 3 s later:', *seen[-1])
if (default, seen) != (
    3600,
    [['200 with 1', '200 with 1'], ['200 with 1', '200 with 0']],
):
    sys.exit('changed')
PROGRAM
# seen: oslo.db 18.0.0
# seen: SQLAlchemy 2.0.41
# seen: openstack-placement 16.0.0
# seen: connection_recycle_time without configuration: 3600
# seen: -1 s: providers at first and 3 s later: 200 with 1 200 with 1
# seen: 2 s: providers at first and 3 s later: 200 with 1 200 with 0
