# SPDX-License-Identifier: Apache-2.0
"""Runs lines of its input as ``openstack`` does, and prints what came of each.

A program of its own, for the environment of the clients: one process for all
lines, as the client takes a second to start.
"""

import contextlib
from importlib import metadata
import io
import json
import shlex
import sys

from openstackclient import shell


def run(line):
    """Return the exit status of a line, and what it prints."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = shell.OpenStackShell().run(shlex.split(line))
        except SystemExit as exc:
            # Wrong arguments.
            status = exc.code
    return {
        'line': line,
        'status': status,
        'out': out.getvalue(),
        'err': err.getvalue(),
    }


def commands():
    """Return the commands for aggregates, flavors and Placement."""
    compute = metadata.entry_points(group='openstack.compute.v2')
    found = {
        entry.name
        for entry in compute
        if entry.name.partition('_')[0] in ('aggregate', 'flavor')
    }
    found |= metadata.entry_points(group='openstack.placement.v1').names
    return sorted(name.replace('_', ' ') for name in found)


print(json.dumps(commands()))
for each in sys.stdin.read().splitlines():
    print(json.dumps(run(each)))
