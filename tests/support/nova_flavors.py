# SPDX-License-Identifier: Apache-2.0
"""Flavors as Nova's request specs have them."""

from nova import objects


def small(extra_specs=None):
    """Return a flavor of the smallest size, with any extra specs."""
    return objects.Flavor(
        name='f', flavorid='f', vcpus=1, memory_mb=64, root_gb=1,
        ephemeral_gb=0, swap=0, extra_specs=extra_specs or {},
    )  # fmt: skip
