# SPDX-License-Identifier: Apache-2.0
"""Clouds and the program, for all tests of the tools."""

from cloud_fixtures import *  # noqa: F403
