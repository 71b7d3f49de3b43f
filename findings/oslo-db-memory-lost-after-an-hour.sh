#!/usr/bin/env bash
# Expected: a database in memory (sqlite://), which oslo.db keeps on a single
#   connection, lives as long as the process, as does a Placement on it.
# Seen: connection_recycle_time, 3,600 s if nothing is configured, counts for
#   this connection, too. The first query after it opens a new one, whose
#   database is empty. PlacementDirect makes its tables anew, and answers 200:
#   there is no provider any more.
# Package: oslo.db 18.0.0, SQLAlchemy 2.0.41, openstack-placement 16.0.0
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
cat > program.py <<'PROGRAM'
from importlib import metadata
import sys
import time

from placement import conf, direct
from oslo_config import cfg

SECONDS = int(sys.argv[1])
config = cfg.ConfigOpts()
conf.register_opts(config)
config.set_override('connection', 'sqlite://', 'placement_database')
config.set_override('sync_on_startup', True, 'placement_database')
config.set_override('connection_recycle_time', SECONDS, 'placement_database')
config([], default_config_files=[])
if SECONDS < 0:
    for name in ('oslo.db', 'SQLAlchemy', 'openstack-placement'):
        print(name, metadata.version(name))
    print('without configuration:', next(
        option['opt'].default
        for name, option in config._groups['placement_database']._opts.items()
        if name == 'connection_recycle_time'
    ))
answers = []
with direct.PlacementDirect(config, latest_microversion=True) as client:
    client.post('/resource_providers', json={'name': 'host'})
    for pause in (0, 3):
        time.sleep(pause)
        answer = client.get('/resource_providers', raise_exc=False)
        found = len(answer.json().get('resource_providers', ()))
        answers.append(f'{answer.status_code}, {found} providers')
print(f'recycled after {SECONDS} s: {answers[0]}; 3 s later {answers[1]}')
left = 0 if SECONDS > 0 else 1
if answers != ['200, 1 providers', f'200, {left} providers']:
    sys.exit('changed')
PROGRAM
for seconds in -1 2; do
    "$folder/venv/bin/python" program.py "$seconds" 2> log || { cat log; exit 1; }
done
# seen: oslo.db 18.0.0
# seen: SQLAlchemy 2.0.41
# seen: openstack-placement 16.0.0
# seen: without configuration: 3600
# seen: recycled after -1 s: 200, 1 providers; 3 s later 200, 1 providers
# seen: recycled after 2 s: 200, 1 providers; 3 s later 200, 0 providers
