# SPDX-License-Identifier: Apache-2.0
"""``filter list`` begins with the filters that are installed."""


def test_only_the_filters_of_packages_are_listed_unless_all_are_wanted(run):
    short = run('filter', 'list').out
    rows = [line for line in short.splitlines() if line.startswith('|')]
    # With the names of the columns.
    assert len(rows) == 1 + 5
    assert "Nova's" not in short
    assert 'use --long' in short
    whole = run('filter', 'list', '--long').out
    assert "reproduces Nova's ComputeFilter" in whole
    assert '--long' not in whole
