# SPDX-License-Identifier: Apache-2.0
"""The benchmark of reservations runs to completion."""

import pathlib
import subprocess
import sys

import pytest

BENCHMARK = pathlib.Path(__file__).parents[2] / 'benchmarks/reservations.py'


@pytest.mark.slow
def test_a_full_cloud_is_measured_as_well():
    """Four hundred reservations want more than three hosts have."""
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', BENCHMARK, '3:1', '3:400'],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, '')
    [_, *rows] = done.stdout.splitlines()
    assert [row.split()[:2] for row in rows] == [['3', '1'], ['3', '400']]
