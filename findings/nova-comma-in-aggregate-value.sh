#!/usr/bin/env bash
# Expected: a flavor with ssd=a,b gets the hosts of an aggregate with ssd=a,b:
#   the same text on both sides.
# Seen: AggregateInstanceExtraSpecsFilter excludes the host. It splits what the
#   aggregate has at commas, and compares "a,b" with "a" and with "b". A flavor
#   with ssd=a gets it.
# Package: nova 34.0.0
# Why: a comma is a list on the aggregate and plain text in the flavor; values
#   that are lists for people, such as project ids, match nothing.
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
from nova.scheduler.filters import aggregate_instance_extra_specs


def passes(value, *aggregates):
    state = host_manager.HostState('host', 'host', None)
    state.aggregates = [
        objects.Aggregate(name='aggregate', metadata={'ssd': one})
        for one in aggregates
    ]
    flavor = objects.Flavor(name='f', extra_specs={'ssd': value})
    request = objects.RequestSpec(flavor=flavor)
    return extra_specs.host_passes(state, request)


objects.register_all()
extra_specs = aggregate_instance_extra_specs.AggregateInstanceExtraSpecsFilter()
same, part = passes('a,b', 'a,b'), passes('a', 'a,b')
print('nova', metadata.version('nova'))
print('flavor a,b and aggregate a,b:', same)
print('flavor a and aggregate a,b:', part)
if (same, part) != (False, True):
    sys.exit('changed')
PROGRAM
# seen: nova 34.0.0
# seen: flavor a,b and aggregate a,b: False
# seen: flavor a and aggregate a,b: True
