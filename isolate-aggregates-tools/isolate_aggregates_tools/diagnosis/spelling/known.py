# SPDX-License-Identifier: Apache-2.0
"""The names that a cloud knows: with these, others are compared."""

from collections import Counter
from collections.abc import Callable, Iterable
import dataclasses

from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.filters.required_metadata import (
    HOST_FILTER,
    REQUEST_FILTER,
    RequiredMetadata,
    required_metadata,
)
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.request import trait_requirements
from isolate_aggregates_tools import filter_keys, marks
from isolate_aggregates_tools.answers import scope
from isolate_aggregates_tools.cloud.snapshot import Snapshot


@dataclasses.dataclass(frozen=True)
class KnownNames:
    """The names that a cloud has, uses or defines.

    :param pipeline: The filters that decide, and those of Nova.
    :param filters: All configured filters.
    :param projects: Projects that exist, beside those that the cloud names.
    """

    snapshot: Snapshot
    pipeline: Pipeline
    filters: Pipeline
    projects: frozenset[str] = frozenset()

    @lazy_property
    def classes(self) -> frozenset[str]:
        """The resource classes that hosts have, without those of slots."""
        return frozenset(
            name
            for provider in self.snapshot.providers
            for name in provider.inventories
            if not name.startswith(xs.RESERVATION_CLASS)
        )

    @lazy_property
    def reads_specs(self) -> bool:
        """Whether a filter reads the metadata that flavors require."""
        return any(
            entry.name in (HOST_FILTER, REQUEST_FILTER)
            for entry in self.pipeline.filters
        )

    def is_metadata(self, key: str) -> bool:
        """Return whether flavors and aggregates agree on a key."""
        return (
            self.reads_specs
            and key in self.required_keys
            and any(key in a.metadata for a in self.snapshot.aggregates)
        )

    @lazy_property
    def requirements(self) -> tuple[RequiredMetadata, ...]:
        """The metadata that flavors require of aggregates."""
        return tuple(
            requirement
            for flavor in self.snapshot.flavors
            for requirement in required_metadata(flavor.extra_specs)
        )

    @lazy_property
    def required_keys(self) -> frozenset[str]:
        """The keys of this metadata."""
        return frozenset(each.key for each in self.requirements)

    @lazy_property
    def traits(self) -> frozenset[str]:
        """The traits that lock aggregates, and those that hosts have."""
        return frozenset(
            trait
            for trait in self.snapshot.provider_traits
            if not marks.is_mark(trait)
        ).union(self.snapshot.required_by)

    @lazy_property
    def trait_names(self) -> Counter[str]:
        """How often each trait is named."""
        named = Counter[str]()
        for flavor in self.snapshot.flavors:
            named.update(
                trait_requirements.required_traits(flavor.extra_specs)
            )
        for image in self.snapshot.images:
            named.update(
                trait_requirements.image_required_traits(image.properties)
            )
        for trait, aggregates in self.snapshot.required_by.items():
            named[trait] += len(aggregates)
        return named

    @lazy_property
    def project_ids(self) -> frozenset[str]:
        """The projects that are known to exist."""
        snapshot = self.snapshot
        servers = snapshot.servers.placed if snapshot.servers else ()
        known = {
            *self.projects,
            *(server.project_id for server in servers),
            *(image.owner for image in snapshot.images),
            *(p for flavor in snapshot.flavors for p in flavor.projects),
            *(p for some in snapshot.domains.values() for p in some or ()),
        }
        return frozenset(filter(None, known))

    @lazy_property
    def project_prefixes(self) -> tuple[str, ...]:
        """The prefixes of keys that name projects."""
        return scope.project_prefixes(self.filters, self.pipeline)

    def reservation_prefixes(
        self,
        part: Callable[[filter_keys.ReservationKeys], Iterable[str]],
    ) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(
                prefix
                for entry in self.filters.filters
                for prefix in part(
                    filter_keys.of_reservations(entry.request_filter)
                )
            )
        )
