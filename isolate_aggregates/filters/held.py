# SPDX-License-Identifier: Apache-2.0
"""The image that a server must have had to be accepted on its host."""

from collections.abc import Iterator, Mapping
import dataclasses

from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.constraints import Cause, Require
from isolate_aggregates.request.extra_specs import TRAIT_PREFIX


@dataclasses.dataclass(frozen=True)
class HeldImage:
    """The image properties that the locks of a host require.

    :param missing: The declared properties that cannot be derived from the
        host, although a request is refused without them.
    """

    by_filter: Mapping[str, Mapping[str, str]]
    missing: frozenset[str] = frozenset()

    @property
    def properties(self) -> dict[str, str]:
        """The properties, including required traits."""
        return {
            name: value
            for properties in self.by_filter.values()
            for name, value in properties.items()
        }

    @property
    def traits(self) -> list[str]:
        """The required traits."""
        return sorted(
            name.removeprefix(TRAIT_PREFIX)
            for name in self.properties
            if name.startswith(TRAIT_PREFIX)
        )

    def requirements(
        self, aggregates: AggregateIndex
    ) -> Iterator[tuple[str, Require]]:
        """Yield constraints that hold the server in, by name of the filter.

        Keys may be alternatives to a filter. Here each of them counts, as it
        is not known which of them the server was accepted with.
        """
        for name, properties in self.by_filter.items():
            for key in sorted(properties):
                members = aggregates.with_key(key)
                if members and not key.startswith(TRAIT_PREFIX):
                    cause = Cause(
                        'held-by-host',
                        f'the host of the server has {key}, and what else '
                        'its image named is not known',
                    )
                    yield name, Require(members, cause)
