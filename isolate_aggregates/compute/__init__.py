# SPDX-License-Identifier: Apache-2.0
"""Nova's API: aggregates, flavors, compute nodes and servers."""
