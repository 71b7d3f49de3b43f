# SPDX-License-Identifier: Apache-2.0
"""Starts the part of nova-scheduler that reads a nova.conf."""

import json
import pathlib
import subprocess
import sys
from typing import Any


def starts(path: pathlib.Path) -> dict[str, Any]:
    """Return what ``scheduler_start.py`` prints of a nova.conf."""
    program = pathlib.Path(__file__).with_name('scheduler_start.py')
    result = subprocess.run(
        [sys.executable, str(program), str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found
