# SPDX-License-Identifier: Apache-2.0
"""What a shell makes of a line that is pasted into it."""

import os
import subprocess

_PROGRAMS = ('openstack', 'isolate-aggregates')
_SHOW = ' '.join(
    f"{program}() {{ printf '%s\\0' {program} \"$@\" ''; }};"
    for program in _PROGRAMS
)


def read_by_bash(line):
    """Return the commands of our programs in a line, without running them.

    No argument may be empty: that is how they are told apart.
    """
    result = subprocess.run(
        ['bash', '-c', f'{_SHOW}\n{line}'],
        capture_output=True,
        check=True,
        # An ASCII locale.
        env={'PATH': os.environ['PATH'], 'LC_ALL': 'C'},
    )
    output = result.stdout.decode('utf-8', 'surrogatepass')
    return tuple(
        tuple(command.split('\0')) for command in output.split('\0\0')[:-1]
    )
