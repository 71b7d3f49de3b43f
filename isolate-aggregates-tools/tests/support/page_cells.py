# SPDX-License-Identifier: Apache-2.0
"""Reads the data of the report page as its script does."""


def in_runs(runs):
    """The numbers from the first to the last of each run."""
    pairs = zip(runs[::2], runs[1::2], strict=True)
    return [n for first, last in pairs for n in range(first, last + 1)]


def lines_of(cells):
    """The reasons for each group of hosts, by line."""
    lines = []
    for line in cells['lines']:
        lines.append([[] for _ in cells['groups']])
        for term in in_runs(line):
            reason, *places = cells['terms'][term]
            for place in in_runs(places):
                lines[-1][place].append(cells['reasons'][reason])
    return lines
