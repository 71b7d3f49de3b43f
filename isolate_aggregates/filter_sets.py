# SPDX-License-Identifier: Apache-2.0
"""The request filters of a configuration, and the tags that none reads."""

from collections.abc import Collection, Iterable, Iterator
import dataclasses

from oslo_config import cfg

from isolate_aggregates.aggregates import Aggregate, AggregateIndex, Lock
from isolate_aggregates.aggregates.aggregate import naming
from isolate_aggregates.filters import loading, pipeline
from isolate_aggregates.filters.pipeline import LoadedFilter, Pipeline
from isolate_aggregates.request.properties import matches


@dataclasses.dataclass(frozen=True)
class UnusedTags:
    """Metadata without effect, because their filter is disabled.

    :param switch: The ``(group, option)`` that enables the filter.
    """

    filter_name: str
    switch: tuple[str, str]
    aggregates: tuple[Aggregate, ...]

    @property
    def why(self) -> str:
        """The option that disables the filter, as text."""
        group, option = self.switch
        return f'[{group}] {option} is false'

    def __str__(self) -> str:
        return (
            f'{naming(self.aggregates)}: the tags for the request filter '
            f'{self.filter_name} have no effect, because {self.why}; set it '
            'to true, or remove the tags'
        )


def unused_tags(
    filters: Iterable[LoadedFilter],
    enabled: Collection[str],
    aggregates: AggregateIndex,
) -> Iterator[UnusedTags]:
    """Yield the metadata of disabled filters."""
    filters = tuple(filters)
    read = frozenset().union(
        *(f.metadata or () for f in filters if f.name in enabled)
    )
    for loaded_filter in filters:
        if loaded_filter.name in enabled or loaded_filter.switch is None:
            continue
        if loaded_filter.metadata is not None and (
            loaded_filter.metadata <= read
        ):
            continue
        tagged_aggregates = _tagged(loaded_filter, aggregates)
        if tagged_aggregates:
            yield UnusedTags(
                loaded_filter.name, loaded_filter.switch, tagged_aggregates
            )


def _tagged(
    loaded_filter: LoadedFilter, aggregates: AggregateIndex
) -> tuple[Aggregate, ...]:
    """Return the aggregates with metadata for a filter.

    If the filter declares its locks, these are the locked aggregates.
    """
    locks = loaded_filter.locks(aggregates)
    if locks is None:
        return tuple(
            aggregate
            for aggregate in aggregates
            if any(reads(loaded_filter, key) for key in aggregate.metadata)
        )
    return tuple(
        {a.uuid: a for lock in locks for a in lock.aggregates}.values()
    )


def reads(loaded_filter: LoadedFilter, key: str) -> bool:
    """Return whether a filter declares that it reads a metadata key."""
    return any(
        matches(pattern, key) for pattern in loaded_filter.metadata or ()
    )


def enabled(
    filters: Iterable[LoadedFilter], conf: cfg.ConfigOpts
) -> frozenset[str]:
    """Return the names of the enabled filters."""
    return frozenset(f.name for f in pipeline.enabled(filters, conf))


def deciding(
    conf: cfg.ConfigOpts, filters: Iterable[LoadedFilter] | None = None
) -> Pipeline:
    """Return the pipeline that nova-scheduler runs."""
    return Pipeline(
        pipeline.enabled(
            loading.load(conf) if filters is None else filters, conf
        )
    )


def locks(
    conf: cfg.ConfigOpts, aggregates: AggregateIndex
) -> tuple[Lock, ...]:
    """Return the locks of all configured filters, enabled or not."""
    return Pipeline(loading.load(conf)).locks(aggregates)
