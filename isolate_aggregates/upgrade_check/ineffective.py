# SPDX-License-Identifier: Apache-2.0
"""Finds filters and options that were set in vain."""

from collections.abc import Iterable, Iterator

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import entry_points
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import LoadedFilter


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
        # Options of other packages are their own.
        if isinstance(option[1], str)
    }
    for plugin in entry_points.installed(loading.NAMESPACE):
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
