# SPDX-License-Identifier: Apache-2.0
"""Refusals for switches and devices of flavor and image."""

from isolate_aggregates.text import listed, quoted
from isolate_aggregates_tools.mirrored.nova_api.combination import (
    Combination,
    of_either,
    of_flavor,
    property_of,
)
from isolate_aggregates_tools.request import resources

_QUEUES = 'hw:vif_multiqueue_enabled'
_SWITCHES = (
    'hw:ephemeral_encryption',
    'hw:locked_memory',
    'hw:mem_encryption',
    'hw:pmu',
    'hw:virtio_packed_ring',
    _QUEUES,
)
_PORTS = 'hw:serial_port_count'


def switches(combination: Combination) -> None:
    """Refuse a switch that is on in the flavor and off in the image."""
    for name in _SWITCHES:
        if name == _QUEUES and combination.flavor.vcpus < 2:
            continue
        flavor, image = combination.flags(name)
        if None not in (flavor, image) and flavor != image:
            value = combination.properties[property_of(name)]
            raise of_either(
                f'the flavor has {name}={combination.specs[name]} but the '
                f'image has {property_of(name)}={quoted(str(value))}; set '
                'both to the same value'
            )


def serial_ports(combination: Combination) -> None:
    """Refuse more serial ports in the image than in the flavor."""
    text = combination.specs.get(_PORTS)
    if not text:
        return
    try:
        ports = int(text)
    except ValueError:
        raise of_flavor(
            f'{_PORTS} is {text!r}, but must be a whole number'
        ) from None
    image = combination.image_number(property_of(_PORTS))
    if ports and image and image > ports:
        raise of_either(
            f'the image has {property_of(_PORTS)}={image}, but the flavor '
            f'allows {ports} with {_PORTS}'
        )


def pci_aliases(combination: Combination) -> None:
    """Refuse an alias of PCI devices that nova-api does not have."""
    wanted = combination.specs.get(resources.PCI_ALIAS)
    known = combination.pci_aliases
    if not wanted or known is None:
        return
    if unknown := resources.alias_names(wanted) - known:
        raise of_flavor(
            f'{resources.PCI_ALIAS} names {listed(unknown)}, and '
            + (
                f'[pci] alias of nova-api has only {listed(known)}'
                if known
                else '[pci] alias of nova-api has none'
            )
        )


RULES = (switches, serial_ports, pci_aliases)
