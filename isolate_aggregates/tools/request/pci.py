# SPDX-License-Identifier: Apache-2.0
"""What a flavor requests of PCI devices, if Placement tracks them.

It follows ``nova.pci.request`` and ``RequestSpec`` of Nova 31 to 34: each
device is a request group of its own.
"""

from collections.abc import Iterable, Iterator, Mapping
import json
from typing import Any

import os_resource_classes as orc
import os_traits

from isolate_aggregates.tools.request.request import ResourceGroup


def groups(wanted: str, aliases: Iterable[str]) -> Iterator[ResourceGroup]:
    """Yield the request groups of a flavor.

    :param wanted: The value of ``pci_passthrough:alias``.
    :param aliases: The values of ``[pci] alias``, each of them JSON.
    :raises ValueError: if an alias is missing or cannot be read.
    """
    known = _known(aliases)
    for place, part in enumerate(wanted.split(',')):
        name, _, count = part.partition(':')
        alias = known.get(name.strip())
        if alias is None:
            raise ValueError(
                f'[pci] alias has no {name.strip()}, so nova-api refuses it'
            )
        for number in range(int(count)):
            yield ResourceGroup(
                f'pci_{place}_{number}',
                {_resource_class(alias): 1},
                frozenset(_traits(alias.get('traits', ''))),
            )


def _known(aliases: Iterable[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return the aliases by name."""
    known: dict[str, Mapping[str, Any]] = {}
    for text in aliases:
        try:
            alias = json.loads(text)
            known[alias['name'].strip()] = alias
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            raise ValueError(f'[pci] alias has {text!r}, which is not JSON '
                             'with a name') from exc  # fmt: skip
    return known


def _resource_class(alias: Mapping[str, Any]) -> str:
    name = alias.get('resource_class')
    if not name:
        ids = alias.get('vendor_id'), alias.get('product_id')
        return 'CUSTOM_PCI_{}_{}'.format(*ids).upper()
    name = str(name).upper()
    if name in orc.STANDARDS or orc.is_custom(name):
        return name
    return str(orc.normalize_name(name))


def _traits(text: str) -> Iterator[str]:
    standard, others = os_traits.check_traits(filter(None, text.split(',')))
    yield from standard
    for name in others:
        name = name.upper()
        yield (
            name
            if os_traits.is_custom(name)
            else os_traits.normalize_name(name)
        )
