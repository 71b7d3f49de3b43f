# SPDX-License-Identifier: Apache-2.0
"""The image properties that request filters declare.

Nova passes few properties of an image to nova-scheduler; all others have to be
read from its database. This is done only for declared properties. Others are
removed, so that a filter sees the same properties inside and outside Nova.
"""

from collections.abc import Iterable, Mapping
import dataclasses

from isolate_aggregates import exception
from isolate_aggregates.request.extra_specs import REQUIRED, TRAIT_PREFIX

# At the end of a pattern, stands for any text.
WILDCARD = '*'


@dataclasses.dataclass(frozen=True)
class DeclaredProperties:
    """The image properties that filters declare.

    :param patterns: The names of properties, or prefixes followed by ``*``.
    :param keys: Those patterns that can only open locks. If such a property is
        not available, the request is evaluated without it, so that the lock
        stays closed. If any other property is not available, the request is
        refused.
    """

    patterns: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()

    @classmethod
    def union(
        cls, declarations: 'Iterable[DeclaredProperties]'
    ) -> 'DeclaredProperties':
        """Combine the declarations of several filters."""
        declarations = tuple(declarations)
        return cls(
            frozenset().union(*(one.patterns for one in declarations)),
            frozenset().union(*(one.keys for one in declarations))
            # A property that any filter needs is not just a key.
            - frozenset().union(
                *(one.patterns - one.keys for one in declarations)
            ),
        )

    @property
    def needed(self) -> frozenset[str]:
        """The patterns of properties without which a request is refused."""
        return self.patterns - self.keys

    def has(self, name: str) -> bool:
        """Return whether a property is declared.

        :param name: The name of the property in Glance.
        """
        return any(matches(pattern, name) for pattern in self.patterns)

    def among(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return the declared properties of an image.

        :param properties: All properties of the image.
        :returns: The declared properties and the required traits.
        """
        return {
            name: value
            for name, value in properties.items()
            if is_required_trait(name, value)
            or (not name.startswith(TRAIT_PREFIX) and self.has(name))
        }

    def recorded(
        self,
        properties: Mapping[str, str | None] | None,
        traits: Iterable[str] = (),
    ) -> dict[str, str]:
        """Return what counts of the image properties that Nova has recorded.

        :param properties: All of them, None for those whose value is lost;
            None if there is no record. Traits among them do not count.
        :param traits: The required traits of the image in the request.
        :raises RequestRefused: if a property is not available and can do more
            than open locks.
        """
        if properties is None:
            _refuse_without(self.needed)
            properties = {}
        _refuse_without(
            name
            for name, value in properties.items()
            if value is None
            and any(matches(pattern, name) for pattern in self.needed)
        )
        available = {
            name: value
            for name, value in properties.items()
            if value is not None and not name.startswith(TRAIT_PREFIX)
        }
        available |= {f'{TRAIT_PREFIX}{trait}': REQUIRED for trait in traits}
        return self.among(available)


def _refuse_without(names: Iterable[str]) -> None:
    """Raise if properties are missing without which a request is refused."""
    missing = sorted(names)
    if missing:
        raise exception.RequestRefused(
            [
                f'the image properties {", ".join(missing)} are not '
                'available: Nova has no record of the server, has a wrong one '
                'after a refused rebuild, or has truncated a long value; '
                'rebuild the server from another image that it may use'
            ]
        )


def matches(pattern: str, name: str) -> bool:
    """Return whether a pattern matches a property.

    :param pattern: A name, or a prefix followed by ``*``.
    """
    if pattern.endswith(WILDCARD):
        return name.startswith(pattern.removesuffix(WILDCARD))
    return name == pattern


def is_required_trait(name: str, value: str) -> bool:
    """Return whether a property requires a trait, as in Nova."""
    return name.startswith(TRAIT_PREFIX) and value == REQUIRED
