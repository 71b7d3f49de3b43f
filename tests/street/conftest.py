# SPDX-License-Identifier: Apache-2.0
"""Clouds and the program, with the commands of all distributions."""

from cloud_fixtures import *  # noqa: F403
from placement_fixtures import *  # noqa: F403
