# SPDX-License-Identifier: Apache-2.0
"""A release says which releases of Nova it was run with in these weeks."""

import sys

from releasing import ROOT, run


def test_the_support_matrix_is_whole_passed_and_not_stale():
    run(sys.executable, ROOT / 'tools' / 'support_matrix.py', '--check')
