# SPDX-License-Identifier: Apache-2.0
"""Keeps unit tests pure."""

import pure
import pytest

from isolate_aggregates_tools.embedded import EmbeddedPlacement


@pytest.fixture(scope='module', autouse=True)
def _pure():
    with pure.pure((EmbeddedPlacement, 'open')):
        yield
