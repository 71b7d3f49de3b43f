# SPDX-License-Identifier: Apache-2.0
"""Tables of what a test is run with, each row by its name."""

import pytest


def cases(arguments, table):
    """Run a test once with each row, named by its key.

    :param arguments: What a row has: a name, or a tuple of names.
    """
    return pytest.mark.parametrize(arguments, table.values(), ids=table)
