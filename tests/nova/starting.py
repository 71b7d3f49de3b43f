# SPDX-License-Identifier: Apache-2.0
"""Starts programs in the folder of these tests that read a nova.conf."""

import json
import os
import pathlib
import subprocess
import sys


def starts(path, name='scheduler_start.py'):
    """Return what a program prints of a nova.conf."""
    program = pathlib.Path(__file__).with_name(name)
    environment = dict(os.environ)
    # With the threads that services of that release have.
    environment.pop('OS_NOVA_DISABLE_EVENTLET_PATCHING', None)
    result = subprocess.run(
        [sys.executable, str(program), str(path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    return found
