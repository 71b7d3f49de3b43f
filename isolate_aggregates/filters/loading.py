# SPDX-License-Identifier: Apache-2.0
"""Loads the request filters that the configuration names.

A filter that is missing or cannot be loaded is an error; it is never skipped.
"""

from collections.abc import Collection, Iterable, Iterator
import dataclasses
from importlib import metadata
from typing import Any

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import entry_points, exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex, Lock
from isolate_aggregates.aggregates.aggregate import naming
from isolate_aggregates.filters.contract import RequestFilter
from isolate_aggregates.filters.pipeline import (
    NamedFilter,
    Pipeline,
    Timer,
    check_class,
)
from isolate_aggregates.request.properties import WILDCARD

NAMESPACE = 'isolate_aggregates.request_filters'


@dataclasses.dataclass(frozen=True)
class LoadedFilter(NamedFilter):
    """A configured request filter.

    :param switch: The ``(group, option)`` that enables it; None if it is
        always enabled.
    """

    switch: tuple[str, str] | None = None

    def is_enabled(self, conf: cfg.ConfigOpts) -> bool:
        """Return whether the filter is enabled."""
        return not self.switch or bool(_option(self.name, self.switch, conf))

    def tagged(self, aggregates: AggregateIndex) -> tuple[Aggregate, ...]:
        """Return the aggregates with metadata for this filter.

        If the filter declares its locks, these are the locked aggregates.
        """
        locks = self.locks(aggregates)
        if locks is None:
            return tuple(
                a for a in aggregates if any(map(self.reads, a.metadata))
            )
        aggregates_by_uuid = {
            a.uuid: a for lock in locks for a in lock.aggregates
        }
        return tuple(aggregates_by_uuid.values())


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
        tagged_aggregates = loaded_filter.tagged(aggregates)
        if tagged_aggregates:
            yield UnusedTags(
                loaded_filter.name, loaded_filter.switch, tagged_aggregates
            )


def may_read(filters: Iterable[LoadedFilter], key: str) -> bool:
    """Return whether any filter may read a metadata key of aggregates.

    Only the filters of this package are taken at their word: a wrong
    declaration would open a lock.
    """
    return any(
        not loaded_filter.is_own
        or loaded_filter.metadata is None
        or any(_may_match(pattern, key) for pattern in loaded_filter.metadata)
        for loaded_filter in filters
    )


def _may_match(pattern: str, key: str) -> bool:
    """Return whether a pattern matches a key in any supported database.

    :param key: The key, in lower case.
    """
    prefix = pattern.removesuffix(WILDCARD).rstrip().lower()
    is_plain = prefix.isascii() and prefix.isprintable()
    return not is_plain or key.startswith(prefix)


def enabled(
    filters: Iterable[LoadedFilter], conf: cfg.ConfigOpts
) -> frozenset[str]:
    """Return the names of the enabled filters."""
    return frozenset(f.name for f in filters if f.is_enabled(conf))


def ineffective_options(
    conf: cfg.ConfigOpts, filters: Iterable[LoadedFilter]
) -> Iterator[str]:
    """Yield a sentence for each filter or option that was set in vain."""
    filters = tuple(filters)
    names = f'[{ia_conf.GROUP}] request_filters'
    if _is_set(conf, ia_conf.GROUP, 'request_filters'):
        for loaded_filter in filters:
            if loaded_filter.switch and not loaded_filter.is_enabled(conf):
                group, option = loaded_filter.switch
                yield (
                    f'{names} has {loaded_filter.name}, which does not run '
                    f'while [{group}] {option} is false'
                )
    used = {
        option
        for f in filters
        for option in f.request_filter.SETTINGS.values()
    }
    for plugin in metadata.entry_points(group=NAMESPACE):
        # Others may be broken, and are not used.
        if not plugin.module.startswith('isolate_aggregates.'):
            continue
        for group, option in plugin.load().SETTINGS.values():
            # blazar-nova reads those of Blazar, too.
            if group == ia_conf.BLAZAR or (group, option) in used:
                continue
            if _is_set(conf, group, option) and conf[group][option]:
                yield (
                    f'[{group}] {option} has no effect, because {names} does '
                    f'not have {plugin.name}'
                )


def _is_set(conf: cfg.ConfigOpts, group: str, option: str) -> bool:
    """Return whether the operator has set an option."""
    location = conf.get_location(option, group)
    return location is not None and location.location.is_user_controlled


def load(conf: cfg.ConfigOpts) -> tuple[LoadedFilter, ...]:
    """Load all configured filters, enabled or not, in order."""
    ia_conf.check(conf)
    plugins = entry_points.load(
        NAMESPACE, conf[ia_conf.GROUP].request_filters, exception.FilterError
    )
    return tuple(
        _build(name, plugin, conf) for name, plugin in plugins.items()
    )


def deciding(
    conf: cfg.ConfigOpts,
    filters: Iterable[LoadedFilter] | None = None,
    timer: Timer | None = None,
) -> Pipeline:
    """Return the pipeline that nova-scheduler runs."""
    return Pipeline(
        (
            f
            for f in (load(conf) if filters is None else filters)
            if f.is_enabled(conf)
        ),
        timer,
    )


def locks(
    conf: cfg.ConfigOpts, aggregates: AggregateIndex
) -> tuple[Lock, ...]:
    """Return the locks of all configured filters, enabled or not."""
    return Pipeline(load(conf)).locks(aggregates)


def _build(
    name: str, plugin: type[RequestFilter], conf: cfg.ConfigOpts
) -> LoadedFilter:
    """Create a filter from its class and the configuration."""
    check_class(name, plugin)
    plugin.register_opts(conf)
    settings = {
        argument: frozen(_option(name, option, conf))
        for argument, option in plugin.SETTINGS.items()
    }
    try:
        request_filter = plugin(**settings)
    except TypeError as exc:
        raise exception.FilterError(
            name, f'cannot be created from its SETTINGS: {exc}.'
        ) from exc
    return LoadedFilter(name, request_filter, plugin.ENABLED_BY)


def _option(name: str, option: tuple[str, str], conf: cfg.ConfigOpts) -> Any:
    try:
        return conf[option[0]][option[1]]
    except cfg.NoSuchOptError as exc:
        raise exception.FilterError(
            name,
            f'reads the option [{option[0]}] {option[1]}, which is not '
            'registered.',
        ) from exc


def frozen(value: Any) -> Any:
    """Return the value of an option so that a filter can be hashed."""
    return tuple(value) if isinstance(value, list) else value
