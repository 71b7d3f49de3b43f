# SPDX-License-Identifier: Apache-2.0
"""The program, for the tests in a copy of the clone."""

from cloud_fixtures import *  # noqa: F403
