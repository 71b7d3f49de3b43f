# SPDX-License-Identifier: Apache-2.0
"""The filters that a request meets in nova-scheduler, ours and Nova's own."""

import dataclasses
from importlib import metadata
from typing import Annotated

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import entry_points, options
from isolate_aggregates.filter_sets import deciding
from isolate_aggregates.filters.loading import NAMESPACE, frozen, load
from isolate_aggregates.filters.pipeline import LoadedFilter, Pipeline
from isolate_aggregates_tools.mirrored import (
    acceptance,
    compute_services,
    host_filters,
    request_filters,
    traits,
)
from isolate_aggregates_tools.mirrored.host_filters import ENABLED
from isolate_aggregates_tools.mirrored.mirror import Mirror, MirroringFilter

_PACKAGE = 'isolate-aggregates'

# In Nova's order; nova-api comes first, and then the one without options.
MIRRORS = (
    *acceptance.MIRRORS,
    *traits.MIRRORS,
    *request_filters.MIRRORS,
    *host_filters.MIRRORS,
)


def mirrored(conf: cfg.ConfigOpts) -> tuple[LoadedFilter, ...]:
    """Return the filters that reproduce Nova's own request filters."""
    return tuple(
        LoadedFilter(
            mirror.name,
            MirroringFilter(
                mirror,
                {
                    (group, option): frozen(
                        options.value_of(conf, group, option)
                    )
                    for group, option in mirror.options
                },
            ),
            mirror.switch,
            is_mirrored=True,
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
    enabled = conf[group][option]
    if enabled is None:
        # Not set: of these, this one is in Nova's default.
        enabled = (compute_services.NAME,)
    if mirror.host_filter and mirror.name not in enabled:
        return f'not named in [{group}] {option}'
    return ''


def as_in_nova(conf: cfg.ConfigOpts) -> Pipeline:
    """Return the pipeline for use outside Nova.

    It has the filters of
    :func:`~isolate_aggregates.filter_sets.deciding`, followed by the
    mirrored ones.
    """
    return Pipeline((*deciding(conf).filters, *mirrored(conf)))


@dataclasses.dataclass(frozen=True)
class InstalledFilter:
    """A request filter of an installed package."""

    name: str
    enabled: bool
    note: Annotated[str, 'Its position in the order, or why it does not run.']
    origin: Annotated[str, 'Its package and class.']


def installed_filters(
    conf: cfg.ConfigOpts, with_nova: bool = True
) -> list[InstalledFilter]:
    """Return all installed filters: first the enabled ones, in order.

    :param with_nova: Whether to return the reproduced filters of Nova, too.
    """
    enabled = load(conf)
    origins = _origins(NAMESPACE)
    filters = [
        _describe(one, number, len(enabled), conf, origins[one.name])
        for number, one in enumerate(enabled, 1)
    ]
    version = metadata.version(_PACKAGE)
    filters += [
        _describe_mirror(mirror, _why_off(mirror, conf), version)
        for mirror in (MIRRORS if with_nova else ())
    ]
    names = {one.name for one in enabled}
    filters += [
        InstalledFilter(
            name,
            False,
            f'not named in [{ia_conf.GROUP}] request_filters',
            origin,
        )
        for name, origin in sorted(origins.items())
        if name not in names
    ]
    # The sort is stable, so both parts keep their order.
    return sorted(filters, key=lambda one: not one.enabled)


def _describe(
    entry: LoadedFilter,
    number: int,
    of: int,
    conf: cfg.ConfigOpts,
    origin: str,
) -> InstalledFilter:
    if entry.switch and not entry.is_enabled(conf):
        group, option = entry.switch
        note = f'[{group}] {option} is false'
        return InstalledFilter(entry.name, False, note, origin)
    note = f'number {number} of {of}'
    return InstalledFilter(entry.name, True, note, origin)


def _describe_mirror(
    mirror: Mirror, why_off: str, version: str
) -> InstalledFilter:
    rule = f'{mirror.rule.__module__}:{mirror.rule.__name__}'
    return InstalledFilter(
        mirror.name,
        not why_off,
        why_off or f"reproduces Nova's {mirror.nova_name}, outside Nova only",
        f'{_PACKAGE} {version}, {rule}',
    )


def _origins(namespace: str) -> dict[str, str]:
    """Return package and class of each installed filter by its name."""
    origins: dict[str, str] = {}
    for entry_point in entry_points.with_distributions(namespace):
        package = entry_point.dist
        origins.setdefault(
            entry_point.name,
            f'{package.name} {package.version}, {entry_point.value}'
            if package
            else entry_point.value,
        )
    return origins
