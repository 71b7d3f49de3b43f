# SPDX-License-Identifier: Apache-2.0
"""Keep requests out of aggregates whose traits they do not require.

An operator isolates an aggregate by setting ``trait:<NAME>=required`` on it,
once per trait. A request may use its hosts only if flavor and image together
require all of these traits. This is the behaviour of Nova's in-tree filter of
the same name; see the specification `Support filtering of
allocation_candidates by forbidden aggregates
<https://specs.openstack.org/openstack/nova-specs/specs/train/implemented/placement-req-filter-forbidden-aggregates.html>`_
and `Filtering hosts by isolating aggregates
<https://docs.openstack.org/nova/latest/reference/isolate-aggregates.html>`_.
"""

from collections.abc import Iterator
import dataclasses
import functools
from typing import ClassVar

from isolate_aggregates.aggregates import Aggregate, AggregateIndex, Lock
from isolate_aggregates.aggregates.index import Closed, closed, lock_groups
from isolate_aggregates.filters.constraints import Cause, Forbid, LazyForbid
from isolate_aggregates.filters.contract import RequestFilter
from isolate_aggregates.request import RequestSpec
from isolate_aggregates.request.extra_specs import REQUIRED, TRAIT_PREFIX
from isolate_aggregates.text import lacking, named

# The size of the cache; each request lacks the keys to most locks.
_MOST = 2**12


@dataclasses.dataclass(frozen=True)
class IsolateAggregates(RequestFilter):
    """Forbid each aggregate that requires a trait the request does not.

    :param trait_sources: The sources of traits that open an aggregate:
        ``flavor``, or ``flavor`` and ``image``. Traits of ports and device
        profiles count as the flavor's.
    """

    ENABLED_BY: ClassVar = ('scheduler', 'enable_isolated_aggregate_filtering')
    SETTINGS: ClassVar = {
        'trait_sources': ('isolate_aggregates', 'trait_sources')
    }
    METADATA: ClassVar = (f'{TRAIT_PREFIX}*',)
    REPLACES: ClassVar = ('isolate_aggregates',)

    trait_sources: tuple[str, ...] = ('flavor', 'image')

    def __call__(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterator[LazyForbid]:
        """Yield at most one constraint."""
        image = request.image if 'image' in self.trait_sources else None
        traits = (
            request.required_traits
            if 'image' in self.trait_sources
            else request.operator_traits
        )
        keys = {TRAIT_PREFIX + trait for trait in traits}
        locks = closed(aggregates, TRAIT_PREFIX, REQUIRED, keys)
        if locks.groups:
            without = lacking(
                request.flavor.name, image.name if image else None, 'require'
            )
            # There may be hundreds of reasons, and most are never shown.
            yield LazyForbid(
                locks.uuids,
                lambda: self._forbid(locks, keys, without),
                locks.aggregates,
            )

    def _forbid(
        self, locks: Closed, keys: set[str], without: str
    ) -> Iterator[Forbid]:
        for group in locks.groups:
            closed_keys = group.keys - keys
            traits = _named(closed_keys)
            yield Forbid(
                group.aggregates,
                Cause(
                    'missing-traits',
                    f'locked by {traits}, which {without}',
                    tuple(sorted(closed_keys)),
                ),
            )

    def locks(self, aggregates: AggregateIndex) -> Iterator[Lock]:
        """Yield a lock for each trait that aggregates require."""
        members: dict[str, list[Aggregate]] = {}
        for group in lock_groups(aggregates, TRAIT_PREFIX, REQUIRED):
            for key in group.keys:
                members.setdefault(key, []).extend(group.aggregates)
        for key, same in sorted(members.items()):
            yield Lock(TRAIT_PREFIX, key, tuple(same))


@functools.lru_cache(_MOST)
def _named(keys: frozenset[str]) -> str:
    """Return the traits of metadata keys, all of them."""
    traits = (key.removeprefix(TRAIT_PREFIX) for key in keys)
    return named('trait', traits, most=None)
