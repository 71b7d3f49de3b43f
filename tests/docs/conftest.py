# SPDX-License-Identifier: Apache-2.0
"""Clouds and the program, for the tests of the pages."""

from cloud_fixtures import *  # noqa: F403
