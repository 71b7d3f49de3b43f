# SPDX-License-Identifier: Apache-2.0
"""Refusals for the number of NUMA nodes, and for what is in each."""

from isolate_aggregates_tools import errors
from isolate_aggregates_tools.mirrored.nova_api import cpus as pinning
from isolate_aggregates_tools.mirrored.nova_api import memory
from isolate_aggregates_tools.mirrored.nova_api.combination import (
    Combination,
    of_either,
    of_flavor,
    of_image,
    property_of,
)
from isolate_aggregates_tools.request import implied

_NODES = 'hw:numa_nodes'
_CPUS = 'hw:numa_cpus'
_MEMORY = 'hw:numa_mem'
_THREADS = 'hw:cpu_thread_policy'


def number(combination: Combination) -> None:
    """Refuse a number of nodes that is no positive number."""
    flavor = combination.specs.get(_NODES)
    image = combination.properties.get(property_of(_NODES))
    own = combination.image_number(property_of(_NODES))
    if flavor and own:
        raise of_either(
            f'{_NODES} of the flavor and {property_of(_NODES)} of the image '
            'exclude each other; remove one of them'
        )
    if flavor and not _is_positive(flavor):
        raise of_flavor(f'{_NODES} is {flavor!r}, but must be at least 1')
    if not flavor and image is not None and own < 1:
        refusal = of_either if own == 0 else of_image
        raise refusal(
            f'{property_of(_NODES)} is {image!r}, but must be at least 1'
        )


def _is_positive(text: str) -> bool:
    """Return whether Nova reads a text as a positive number."""
    try:
        return int(text) > 0 and str(int(text)) == text
    except ValueError:
        return False


def nodes(combination: Combination) -> None:
    """Refuse CPUs and memory that the nodes do not divide exactly."""
    if not _has_nodes(combination):
        return
    flavor = combination.flavor
    number = _number(combination)
    is_empty = combination.specs.get(_THREADS) == ''
    if is_empty and not pinning.trait(combination):
        raise of_either(f'{_THREADS} is empty; remove it from the flavor')
    cpus = _lists(combination, _CPUS)
    memory_sizes = _lists(combination, _MEMORY)
    if not cpus and not memory_sizes:
        if flavor.vcpus % number or flavor.ram % number:
            raise of_either(
                f'{flavor.vcpus} CPUs and {flavor.ram} MiB of memory cannot '
                f'be divided equally among {number} NUMA nodes; change '
                f'{_NODES}, or divide them with {_CPUS}.N and {_MEMORY}.N'
            )
        return
    if len(cpus) != number or len(memory_sizes) != number:
        raise of_either(
            f'{_CPUS}.N and {_MEMORY}.N must be set for each of the {number} '
            'NUMA nodes'
        )
    numbers = sorted(cpu for text in cpus for cpu in _cpus(text))
    if numbers != list(range(flavor.vcpus)):
        raise of_either(
            f'{_CPUS}.N must name each of the {flavor.vcpus} CPUs of the '
            'flavor once'
        )
    total = sum(map(_size, memory_sizes))
    if total != flavor.ram:
        raise of_either(
            f'the {_MEMORY}.N add up to {total} MiB, but the flavor has '
            f'{flavor.ram}'
        )


def _has_nodes(combination: Combination) -> bool:
    """Return whether Nova makes NUMA nodes for the server."""
    labels = combination.specs.get('hw:pmem', '').split(',')
    return bool(
        combination.both(_NODES)[0]
        or combination.image_number(property_of(_NODES))
        or memory.page_size(combination)
        or any(map(str.strip, labels))
        or combination.cpu_policy in ('dedicated', 'mixed')
    )


def _number(combination: Combination) -> int:
    """Return the number of nodes; 1 if another rule refuses it."""
    flavor, _ = combination.both(_NODES)
    if flavor:
        return int(flavor) if _is_positive(flavor) else 1
    return max(combination.image_number(property_of(_NODES)), 1)


def _lists(combination: Combination, name: str) -> list[str]:
    """Return a setting of each node, from the flavor or from the image."""
    flavor = combination.per_node(name)
    image = combination.image_per_node(name)
    if flavor and image:
        raise of_either(
            f'{name}.N of the flavor and {property_of(name)}.N of the image '
            'exclude each other; remove one of them'
        )
    return flavor or image


def _cpus(text: str) -> set[int]:
    try:
        return implied.cpu_set(text)
    except errors.InvalidRequest as exc:
        raise of_either(f'{_CPUS}.N: {str(exc).rstrip(".")}') from None


def _size(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise of_either(
            f'{_MEMORY}.N is {text!r}, but must be a number of MiB'
        ) from None


RULES = (number, nodes)
