#!/usr/bin/env bash
# Expected: a host is in two aggregates. One has max_instances_per_host=2, the
#   other a value that is no number. The one that can be read limits the host.
# Seen: AggregateNumInstancesFilter ignores both values and uses nova.conf's
#   limit of 50. With two numbers, the smaller one counts.
# Package: nova 34.0.0
# Why: a slip in one aggregate lifts the limits of all other aggregates of its
#   hosts. Only nova-scheduler's log tells it, once for each host and request.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    nova==34.0.0 SQLAlchemy==2.0.41
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import sys
import warnings

warnings.simplefilter('ignore')  # of eventlet, when it is imported

from nova import config, objects
from nova.scheduler import host_manager
from nova.scheduler.filters import num_instances_filter


def passes(*limits):
    state = host_manager.HostState('host', 'host', None)
    state.num_instances = 4
    state.aggregates = [
        objects.Aggregate(name='a', metadata={'max_instances_per_host': one})
        for one in limits
    ]
    return limit.host_passes(state, objects.RequestSpec())


objects.register_all()
config.parse_args(['finding'], default_config_files=[])
limit = num_instances_filter.AggregateNumInstancesFilter()
answers = {limits: passes(*limits) for limits in [('2', '9'), ('2', '9x')]}
print('nova', metadata.version('nova'))
for limits, answer in answers.items():
    print('a host with 4 servers passes limits', limits, answer)
if list(answers.values()) != [False, True]:
    sys.exit('changed')
PROGRAM
# seen: nova 34.0.0
# seen: a host with 4 servers passes limits ('2', '9') False
# seen: a host with 4 servers passes limits ('2', '9x') True
