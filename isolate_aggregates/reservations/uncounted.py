# SPDX-License-Identifier: Apache-2.0
"""Finds extra specs that request resources the planner cannot count.

Placement does not know how much of them a host has, or how they are spread
over its NUMA nodes and child providers.
"""

from collections.abc import Iterator, Mapping

from isolate_aggregates.request import extra_specs as xs

# With an empty value these request nothing.
_KEYS = (
    'accel:device_profile',
    'hw:mem_page_size',
    'hw:numa_nodes',
    'pci_passthrough:alias',
)
_PREFIXES = ('hw:numa_cpus.', 'hw:numa_mem.')

# With these policies all CPUs of a server come from one NUMA node.
_CPU_POLICY = 'hw:cpu_policy'
_PINNED = ('dedicated', 'mixed')


def uncounted(extra_specs: Mapping[str, str]) -> list[str]:
    """Return the uncountable ones of a flavor's extra specs, as KEY=VALUE."""
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
    """Return whether it belongs to a suffixed request group."""
    return any(spec.suffix for spec in xs.parse({key: value}))
