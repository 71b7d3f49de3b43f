# SPDX-License-Identifier: Apache-2.0
"""A real Placement for each module of tests."""

from placement_fixtures import *  # noqa: F403
