# SPDX-License-Identifier: Apache-2.0
"""What ``explain`` writes, as a test compares it."""


def rows(result):
    """Return the verdict or the reasons for each host in a table.

    It is a table of ``--hosts``.
    """
    lines = [
        [cell.strip() for cell in line.strip('|').split('|')]
        for line in result.out.splitlines()
        if line.startswith('|')
    ]
    found = {}
    for host, verdict, reason in lines[1:]:
        if host:
            last = host
            found[last] = reason or verdict
        else:
            found[last] += f'; {reason}'
    return found
