# SPDX-License-Identifier: Apache-2.0
"""Finds resources in a flavor that the planner cannot count.

Placement does not know how much a host has of them, or not where on the host
they are.
"""

from collections.abc import Iterator, Mapping

from isolate_aggregates.request import extra_specs as xs

# Without a value that asks for something there is nothing to count.
_KEYS = (
    'accel:device_profile',
    'hw:mem_page_size',
    'hw:numa_nodes',
    'pci_passthrough:alias',
)
_PREFIXES = ('hw:numa_cpus.', 'hw:numa_mem.')

# All CPUs of such a server come from the same NUMA node.
_CPU_POLICY = 'hw:cpu_policy'
_PINNED = ('dedicated', 'mixed')


def uncounted(extra_specs: Mapping[str, str]) -> list[str]:
    """Return the extra specs that ask for what cannot be counted, in order.

    :param extra_specs: All extra specs of a flavor.
    """
    return sorted(f'{key}={extra_specs[key]}' for key in _keys(extra_specs))


def _keys(extra_specs: Mapping[str, str]) -> Iterator[str]:
    for key, value in extra_specs.items():
        if (
            (key in _KEYS and value)
            or key.startswith(_PREFIXES)
            or (key == _CPU_POLICY and value in _PINNED)
            or _is_granular(key, value)
        ):
            yield key


def _is_granular(key: str, value: str) -> bool:
    """Tell whether it says that something comes from one provider."""
    return any(spec.suffix for spec in xs.parse({key: value}))
