# SPDX-License-Identifier: Apache-2.0
"""Loads the request filters that the configuration names.

A filter that is missing or cannot be loaded is an error; it is never skipped.
"""

from collections.abc import Iterable
from typing import Any

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import entry_points, exception
from isolate_aggregates.filters.contract import Option, RequestFilter
from isolate_aggregates.filters.pipeline import (
    LoadedFilter,
    check_class,
    value_of,
)
from isolate_aggregates.request.properties import WILDCARD

NAMESPACE = 'isolate_aggregates.request_filters'


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


def load(conf: cfg.ConfigOpts) -> tuple[LoadedFilter, ...]:
    """Load all configured filters, enabled or not, in order."""
    ia_conf.check(conf)
    plugins = entry_points.load(
        NAMESPACE, conf[ia_conf.GROUP].request_filters, exception.FilterError
    )
    return tuple(
        _build(name, plugin, conf) for name, plugin in plugins.items()
    )


def _build(
    name: str, plugin: type[RequestFilter], conf: cfg.ConfigOpts
) -> LoadedFilter:
    """Create a filter from its class and the configuration."""
    check_class(name, plugin)
    switch = plugin.ENABLED_BY and _registered(plugin.ENABLED_BY, conf)
    settings = {
        argument: frozen(value_of(name, _registered(option, conf), conf))
        for argument, option in plugin.SETTINGS.items()
    }
    try:
        request_filter = plugin(**settings)
    except TypeError as exc:
        raise exception.FilterError(
            name, f'cannot be created from its SETTINGS: {exc}.'
        ) from exc
    return LoadedFilter(name, request_filter, switch)


def _registered(option: Option, conf: cfg.ConfigOpts) -> tuple[str, str]:
    """Return group and name of an option, which may be the filter's own."""
    group, name = option
    if isinstance(name, cfg.Opt):
        conf.register_opt(name, group)
        return group, name.dest
    return group, name


def frozen(value: Any) -> Any:
    """Return the value of an option so that a filter can be hashed."""
    return tuple(value) if isinstance(value, list) else value
