# SPDX-License-Identifier: Apache-2.0
"""What keeps unit tests of the plugin pure, and what they use."""

from plugin_fixtures import *  # noqa: F403
import pure
import pytest


@pytest.fixture(scope='module', autouse=True)
def _pure():
    with pure.pure():
        yield
