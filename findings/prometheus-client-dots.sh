#!/usr/bin/env bash
# Expected: a metric called "placement.candidates" is refused with ValueError,
#   as names have only letters, digits, underscores and colons.
# Seen: it is accepted, and the page of metrics has placement_candidates for
#   clients that do not ask for other names. Two metrics whose names differ in
#   a dot and an underscore are both accepted, and the page has the name twice.
# Package: prometheus_client 0.26.0
# Why: an exporter that names metrics after services or traits can write one
#   series twice, and at most one of the two values can be kept.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    prometheus_client==0.26.0
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import sys

import prometheus_client

registry = prometheus_client.CollectorRegistry()
for name in ('placement.candidates', 'placement_candidates'):
    prometheus_client.Gauge(name, 'Help.', registry=registry).set(1)
page = prometheus_client.generate_latest(registry).decode()
lines = [line for line in page.splitlines() if not line.startswith('#')]

print('prometheus_client', metadata.version('prometheus_client'))
print('on the page:', lines)
if lines != ['placement_candidates 1.0'] * 2:
    sys.exit('changed')
PROGRAM
# seen: prometheus_client 0.26.0
# seen: on the page: ['placement_candidates 1.0', 'placement_candidates 1.0']
