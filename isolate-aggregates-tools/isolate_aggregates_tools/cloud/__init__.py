# SPDX-License-Identifier: Apache-2.0
"""A cloud, live or from a cloud file, behind one interface."""
