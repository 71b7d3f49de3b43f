# SPDX-License-Identifier: Apache-2.0
"""A flavor and an image, with their settings as nova-api reads them."""

from collections.abc import Mapping
import contextlib
import dataclasses
import enum
import re

from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools.mirrored import nova_image
from isolate_aggregates_tools.request import Request, implied


class Source(enum.IntEnum):
    """What has to be changed to avoid a refusal."""

    FLAVOR = 1
    IMAGE = 2
    # Another flavor or another image can avoid it.
    EITHER = 3


class Refusal(Exception):
    """Nova-api refuses a flavor, an image or their combination.

    :param text: What is wrong and how to correct it, without a full stop.
    """

    def __init__(self, source: Source, text: str) -> None:
        self.source = source
        self.text = text
        super().__init__(text)


def of_flavor(text: str) -> Refusal:
    """Return a refusal of a flavor, whatever the image."""
    return Refusal(Source.FLAVOR, text)


def of_image(text: str) -> Refusal:
    """Return a refusal of an image, whatever the flavor."""
    return Refusal(Source.IMAGE, text)


def of_either(text: str) -> Refusal:
    """Return a refusal of a combination."""
    return Refusal(Source.EITHER, text)


# The number of NUMA nodes for which Nova reads settings.
_MOST_NODES = 128

# Nova matches the beginning only.
_AMOUNT = re.compile(r'resources([1-9][0-9]*)?:([VP]CPU)')


@dataclasses.dataclass(frozen=True)
class Combination:
    """A flavor and an image.

    :param specs: The extra specs of the flavor.
    :param raw: The properties of the image, as in Glance.
    :param properties: The properties that Nova keeps, as it stores them.
    :param pci_aliases: The names in ``[pci] alias``; None if unknown.
    """

    flavor: Flavor
    image: Image | None
    boot_from_volume: bool
    specs: Mapping[str, str]
    raw: Mapping[str, str]
    properties: Mapping[str, str]
    release: int
    pci_aliases: frozenset[str] | None

    @classmethod
    def of(cls, request: Request) -> 'Combination':
        raw = {k: str(v) for k, v in request.image_properties.items()}
        stored = {
            name: nova_image.kept(raw, name, request.nova_release)
            for own_name in raw
            for name in nova_image.names_of(own_name)
        }
        return cls(
            request.flavor,
            request.image,
            request.boot_from_volume,
            {k: str(v) for k, v in request.flavor.extra_specs.items()},
            raw,
            {name: text for name, text in stored.items() if text is not None},
            request.nova_release,
            request.pci_aliases,
        )

    def both(self, name: str) -> tuple[str | None, str | None]:
        """Return an extra spec and the image property of the same name.

        An empty setting is returned as None.
        """
        flavor = self.specs.get(name)
        image = self.properties.get(property_of(name))
        return flavor or None, image or None

    def flags(self, name: str) -> tuple[bool | None, bool | None]:
        """Return a switch in flavor and image; None where it is not set."""
        flavor = self.specs.get(name)
        image = self.properties.get(property_of(name))
        return (
            None if flavor is None else implied.is_true(flavor),
            None if image is None else implied.is_true(image),
        )

    def image_number(self, name: str) -> int:
        """Return a number in the image; 0 if there is none."""
        with contextlib.suppress(ValueError):
            return int(self.properties.get(name, 0))
        # Another rule refuses the image.
        return 0

    @lazy_property
    def amounts(self) -> Mapping[str, int]:
        """The VCPU and PCPU that the extra specs request from Placement."""
        amounts = {'VCPU': 0, 'PCPU': 0}
        for key, text in self.specs.items():
            # Nova ignores here what is no number.
            if match := _AMOUNT.match(key):
                with contextlib.suppress(ValueError):
                    amounts[match[2]] += int(text)
        return amounts

    @lazy_property
    def cpu_policy(self) -> str | None:
        """The CPU policy that flavor, image and requested amounts imply."""
        if self.amounts['VCPU']:
            return 'shared'
        if self.amounts['PCPU']:
            return 'dedicated'
        flavor, image = self.both('hw:cpu_policy')
        return flavor or image

    @property
    def flavor_shares_cpus(self) -> bool:
        """Whether the flavor has the policy ``shared``, whatever the image."""
        return bool(
            self.amounts['VCPU'] or self.specs.get('hw:cpu_policy') == 'shared'
        )

    def per_node(self, name: str) -> list[str]:
        """Return the extra specs of the NUMA nodes, from node 0 on."""
        return _consecutive(self.specs, name)

    def image_per_node(self, name: str) -> list[str]:
        """Return the image properties of the NUMA nodes, from node 0 on."""
        return _consecutive(self.raw, property_of(name))


def property_of(name: str) -> str:
    """Return the name of the image property for an extra spec."""
    return name.replace(':', '_')


def _consecutive(settings: Mapping[str, str], name: str) -> list[str]:
    texts = []
    for number in range(_MOST_NODES):
        if (key := f'{name}.{number}') not in settings:
            break
        texts.append(settings[key])
    return texts
