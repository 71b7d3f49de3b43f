# SPDX-License-Identifier: Apache-2.0
"""Loads the request filters that the configuration names.

A filter that is missing or cannot be loaded is an error; it is never skipped.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
import dataclasses
from importlib import metadata
from typing import Any

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import entry_points, exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex, Lock
from isolate_aggregates.aggregates.aggregate import naming
from isolate_aggregates.filters import contract
from isolate_aggregates.filters.mirrored import MIRRORS
from isolate_aggregates.filters.mirrored.host_filters import ENABLED
from isolate_aggregates.filters.mirrored.mirror import Mirror, MirroringFilter
from isolate_aggregates.filters.pipeline import NamedFilter, Pipeline, Timer

NAMESPACE = 'isolate_aggregates.request_filters'

_PACKAGE = 'isolate-aggregates'
_OPTION = f'[{ia_conf.GROUP}] request_filters'


@dataclasses.dataclass(frozen=True)
class LoadedFilter(NamedFilter):
    """A configured request filter.

    :param name: The name of its entry point.
    :param request_filter: The filter.
    :param switch: The ``(group, option)`` that enables it; None if it is
        always enabled.
    """

    switch: tuple[str, str] | None = None

    def is_enabled(self, conf: cfg.ConfigOpts) -> bool:
        """Return whether the filter is enabled.

        :raises FilterError: if its option is not registered.
        """
        return not self.switch or bool(_option(self.name, self.switch, conf))

    def tagged(self, aggregates: AggregateIndex) -> tuple[Aggregate, ...]:
        """Return the aggregates with metadata for this filter.

        If the filter has locks, these are the locked aggregates.

        :raises FilterError: if the filter fails.
        """
        if isinstance(self.request_filter, contract.HasLocks):
            found = {
                one.uuid: one
                for lock in self.locks(aggregates)
                for one in lock.aggregates
            }
            return tuple(found.values())
        return tuple(
            one for one in aggregates if any(map(self.reads, one.metadata))
        )


@dataclasses.dataclass(frozen=True)
class UnusedTags:
    """Metadata without effect, because their filter is disabled.

    :param switch: The ``(group, option)`` that enables the filter.
    :param aggregates: The aggregates with such metadata, at least one.
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
    """Yield the metadata of disabled filters.

    :param filters: All configured filters.
    :param enabled: The names of the enabled filters.
    :raises FilterError: if a filter fails.
    """
    known = tuple(filters)
    read = frozenset().union(
        *(one.metadata or () for one in known if one.name in enabled)
    )
    for one in known:
        is_read = one.metadata is not None and one.metadata <= read
        if one.name in enabled or one.switch is None or is_read:
            continue
        tagged = one.tagged(aggregates)
        if tagged:
            yield UnusedTags(one.name, one.switch, tagged)


def enabled(
    filters: Iterable[LoadedFilter], conf: cfg.ConfigOpts
) -> frozenset[str]:
    """Return the names of the enabled filters.

    :raises FilterError: if an option that enables a filter is not registered.
    """
    return frozenset(one.name for one in filters if one.is_enabled(conf))


def load(conf: cfg.ConfigOpts) -> tuple[LoadedFilter, ...]:
    """Load all configured filters, enabled or not, in order.

    :raises ConfigError: if the configuration is invalid.
    :raises FilterError: if a filter is missing, cannot be loaded or violates
        its contract.
    """
    ia_conf.check(conf)
    names = conf[ia_conf.GROUP].request_filters
    repeating = {mirror.name for mirror in MIRRORS}
    mirrored = [one for one in names if one in repeating]
    if mirrored:
        raise exception.ConfigError(
            _OPTION,
            f'names {", ".join(mirrored)}, which reproduces a filter of '
            'Nova and always runs outside Nova; remove it.',
        )
    return _load(NAMESPACE, names, conf)


def mirrored(conf: cfg.ConfigOpts) -> tuple[LoadedFilter, ...]:
    """Return the filters that reproduce Nova's own request filters."""
    return tuple(
        LoadedFilter(
            mirror.name,
            MirroringFilter(
                mirror,
                {(g, o): _frozen(conf[g][o]) for g, o in mirror.options},
            ),
            mirror.switch,
        )
        for mirror in MIRRORS
        if not _why_off(mirror, conf)
    )


def _why_off(mirror: Mirror, conf: cfg.ConfigOpts) -> str:
    """Return why Nova does not run the mirrored filter; empty if it does."""
    if mirror.switch:
        group, option = mirror.switch
        return '' if conf[group][option] else f'[{group}] {option} is false'
    group, option = ENABLED
    # None if the option is not set.
    if mirror.host_filter and mirror.name not in (conf[group][option] or ()):
        return f'not named in [{group}] {option}'
    return ''


def deciding(
    conf: cfg.ConfigOpts,
    filters: Iterable[LoadedFilter] | None = None,
    timer: Timer | None = None,
) -> Pipeline:
    """Return the pipeline that nova-scheduler runs.

    :param filters: The filters, if they are loaded already.
    :param timer: Called with the name and the duration of each filter.
    :raises ConfigError: if the configuration is invalid.
    :raises FilterError: if a filter is missing or cannot be loaded.
    """
    loaded = load(conf) if filters is None else filters
    return Pipeline((one for one in loaded if one.is_enabled(conf)), timer)


def as_in_nova(conf: cfg.ConfigOpts) -> Pipeline:
    """Return the pipeline for use outside Nova.

    It has the filters of :func:`deciding`, followed by the mirrored ones.

    :raises ConfigError: if the configuration is invalid.
    :raises FilterError: if a filter is missing or cannot be loaded.
    """
    return Pipeline((*deciding(conf).filters, *mirrored(conf)))


def locks(
    conf: cfg.ConfigOpts, aggregates: AggregateIndex
) -> tuple[Lock, ...]:
    """Return the locks of all configured filters, enabled or not.

    :raises ConfigError: if the configuration is invalid.
    :raises FilterError: if a filter is missing or cannot be loaded.
    """
    return Pipeline(load(conf)).locks(aggregates)


@dataclasses.dataclass(frozen=True)
class InstalledFilter:
    """A request filter of an installed package.

    :param name: The name of its entry point.
    :param origin: Its package and class.
    :param enabled: Whether it runs.
    :param note: Its position in the order, or why it does not run.
    """

    name: str
    origin: str
    enabled: bool
    note: str


def installed_filters(conf: cfg.ConfigOpts) -> list[InstalledFilter]:
    """Return all installed filters: first the enabled ones, in order.

    :raises ConfigError: if the configuration is invalid.
    :raises FilterError: if a configured filter is missing or cannot be loaded.
    """
    loaded = load(conf)
    found = [
        _describe(one, number, len(loaded), conf)
        for number, one in enumerate(loaded, 1)
    ]
    found += [
        _describe_mirror(mirror, _why_off(mirror, conf)) for mirror in MIRRORS
    ]
    named = {one.name for one in loaded}
    found += [
        InstalledFilter(
            name, _origin(NAMESPACE, name), False, f'not named in {_OPTION}'
        )
        for name in _installed(NAMESPACE)
        if name not in named
    ]
    # The sort is stable, so both parts keep their order.
    return sorted(found, key=lambda one: not one.enabled)


def _describe(
    loaded: LoadedFilter, number: int, of: int, conf: cfg.ConfigOpts
) -> InstalledFilter:
    origin = _origin(NAMESPACE, loaded.name)
    if loaded.switch and not loaded.is_enabled(conf):
        group, option = loaded.switch
        note = f'[{group}] {option} is false'
        return InstalledFilter(loaded.name, origin, False, note)
    note = f'number {number} of {of}'
    return InstalledFilter(loaded.name, origin, True, note)


def _describe_mirror(mirror: Mirror, why_off: str) -> InstalledFilter:
    rule = f'{mirror.rule.__module__}:{mirror.rule.__name__}'
    version = metadata.version(_PACKAGE)
    return InstalledFilter(
        mirror.name,
        f'{_PACKAGE} {version}, {rule}',
        not why_off,
        why_off or f"reproduces Nova's {mirror.nova_name}, outside Nova only",
    )


def _installed(namespace: str) -> Sequence[str]:
    return sorted(metadata.entry_points(group=namespace).names)


def _origin(namespace: str, name: str) -> str:
    [found, *_] = metadata.entry_points(group=namespace, name=name)
    if found.dist is None:
        return found.value
    return f'{found.dist.name} {found.dist.version}, {found.value}'


def _load(
    namespace: str, names: Sequence[str], conf: cfg.ConfigOpts
) -> tuple[LoadedFilter, ...]:
    plugins = entry_points.load(namespace, names, exception.FilterError)
    return tuple(_build(name, one, conf) for name, one in plugins.items())


def _build(name: str, plugin: Any, conf: cfg.ConfigOpts) -> LoadedFilter:
    """Create a filter from its class and the configuration."""
    if isinstance(plugin, contract.HasOptions):
        plugin.register_opts(conf)
    options: Mapping[str, tuple[str, str]] = (
        plugin.SETTINGS if isinstance(plugin, contract.HasSettings) else {}
    )
    settings = {
        argument: _frozen(_option(name, option, conf))
        for argument, option in options.items()
    }
    try:
        made = plugin(**settings)
    except TypeError as exc:
        raise exception.FilterError(
            name, f'cannot be created from its SETTINGS: {exc}.'
        ) from exc
    switch = (
        plugin.ENABLED_BY if isinstance(plugin, contract.HasSwitch) else None
    )
    return LoadedFilter(name, made, switch)


def _option(name: str, option: tuple[str, str], conf: cfg.ConfigOpts) -> Any:
    try:
        return conf[option[0]][option[1]]
    except cfg.NoSuchOptError as exc:
        raise exception.FilterError(
            name,
            f'reads the option [{option[0]}] {option[1]}, which is not '
            'registered.',
        ) from exc


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
