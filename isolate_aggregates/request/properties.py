# SPDX-License-Identifier: Apache-2.0
"""Which image properties request filters declare that they look at.

Nova passes few of an image's properties to nova-scheduler, which must look
the others up. That is done for what some filter declares, and for nothing
else, so that a filter sees the same wherever it runs.
"""

from collections.abc import Iterable, Mapping
import dataclasses

from isolate_aggregates.request.extra_specs import REQUIRED, TRAIT_PREFIX

# What declares all properties that start with the text before it.
WILDCARD = '*'


@dataclasses.dataclass(frozen=True)
class Declared:
    """The image properties that some filters declare.

    :param patterns: Names of properties, or how they start followed by ``*``.
    :param keys: Those of them that can only open: where such a property
        cannot be had, a request is judged as if the image did not have it,
        which keeps the server out. Any other refuses the request then.
    """

    patterns: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()

    @classmethod
    def union(cls, declared: 'Iterable[Declared]') -> 'Declared':
        """Return what all of some filters declare together.

        :param declared: What each of them declares.
        """
        found = tuple(declared)
        return cls(
            frozenset().union(*(one.patterns for one in found)),
            frozenset().union(*(one.keys for one in found))
            # What one filter cannot do without is no key for all of them.
            - frozenset().union(*(one.patterns - one.keys for one in found)),
        )

    @property
    def needed(self) -> frozenset[str]:
        """The patterns of properties that a request is refused without."""
        return self.patterns - self.keys

    def has(self, name: str) -> bool:
        """Return whether a property is declared.

        :param name: Its name in Glance.
        """
        return any(matches(pattern, name) for pattern in self.patterns)

    def among(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return the declared ones of an image's properties.

        :param properties: All properties of the image.
        :returns: These, and the required traits.
        """
        return {
            name: value
            for name, value in properties.items()
            if is_required_trait(name, value)
            or (not name.startswith(TRAIT_PREFIX) and self.has(name))
        }


def matches(pattern: str, name: str) -> bool:
    """Return whether a pattern stands for a property.

    :param pattern: Its name, or how it starts followed by ``*``.
    :param name: The name of the property.
    """
    if pattern.endswith(WILDCARD):
        return name.startswith(pattern.removesuffix(WILDCARD))
    return name == pattern


def is_required_trait(name: str, value: str) -> bool:
    """Return whether a property requires a trait, as Nova reads it.

    :param name: The name of the property.
    :param value: Its value.
    """
    return name.startswith(TRAIT_PREFIX) and value == REQUIRED
