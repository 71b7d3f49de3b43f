# SPDX-License-Identifier: Apache-2.0
"""Finds names in configuration files that nothing reads.

oslo.config ignores unknown sections and options, so a misspelt one silently
keeps a lock open. Other programs and plugins have sections and options in the
same files. So outside our section, only four kinds of names are reported:
those that are nearly one that this package reads, those that are read in
another section, those that Nova no longer reads, and those that look as if
they enabled a request filter of Nova.
"""

from collections.abc import Collection, Iterator, Mapping
import contextlib
import dataclasses
import difflib
import glob
import os
import re

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception, options
from isolate_aggregates.filters import loading
from isolate_aggregates.suggestions import meant

# How similar a misspelt name is to the right one, as difflib measures it. One
# letter more, less or exchanged is always above it; no two options of Nova
# are.
_NEAR = 0.88

# Options that many services have, in sections of their own.
_COMMON = frozenset({'region_name', 'valid_interfaces'})

# Where Nova configures its scheduler.
_SCHEDULING = (ia_conf.SCHEDULER, options.HOST_FILTERS)

# Enables a request filter of Nova. That of availability zones is always on in
# supported releases, and deployment tools still set its option.
_QUERIES_PLACEMENT = re.compile(
    'query_placement_for_(?!availability_zone$)', re.ASCII
)

# What decided about hosts and is no longer read by any supported Nova, with
# what is read instead.
_REMOVED = {
    (options.DEFAULT, 'scheduler_available_filters'): (
        'use [filter_scheduler] available_filters'
    ),
    (options.DEFAULT, 'scheduler_default_filters'): (
        'use [filter_scheduler] enabled_filters'
    ),
    (options.DEFAULT, 'scheduler_weight_classes'): (
        'use [filter_scheduler] weight_classes'
    ),
    (options.DEFAULT, 'scheduler_host_subset_size'): (
        'use [filter_scheduler] host_subset_size'
    ),
    (options.DEFAULT, 'scheduler_max_attempts'): (
        'use [scheduler] max_attempts'
    ),
    (options.DEFAULT, 'scheduler_driver'): 'remove it',
    (options.DEFAULT, 'scheduler_host_manager'): 'remove it',
    (ia_conf.SCHEDULER, 'driver'): 'remove it',
    (ia_conf.SCHEDULER, 'host_manager'): 'remove it',
}


@dataclasses.dataclass(frozen=True)
class UnknownName:
    """A section or option in a file that nothing reads.

    :param problem: A sentence without its full stop.
    :param is_certain: Whether it is a mistake. A section may also be that of
        another program, and an option may be left over from an older Nova.
    :param is_left_over: Whether an older Nova has read it.
    :param is_plugin: Whether it is the name of a plugin, which what loads the
        plugin reports, too.
    """

    problem: str
    is_certain: bool = True
    is_left_over: bool = False
    is_plugin: bool = False


def misspelt_names(conf: cfg.ConfigOpts) -> list[UnknownName]:
    """Return the names that a command must report, without Nova's options.

    :param conf: A configuration that was read, with the options of this
        package except those for the connection to a cloud.
    """

    more = {
        name
        for path in files(conf)
        for section, names in parsed(path).items()
        if section.lower() == ia_conf.GROUP
        for name in names
    }.difference(_registered(conf, ia_conf.GROUP))
    if more:
        # In another configuration, as a command that needs no cloud does not
        # check the options for the connection.
        conf = _with_connection(conf)
        # The command reports a filter that cannot be loaded.
        with contextlib.suppress(exception.IsolateAggregatesError, cfg.Error):
            loading.load(conf)
    names = unknown_names(conf, connection=bool(more))
    return [name for name in names if not name.is_left_over]


def _with_connection(conf: cfg.ConfigOpts) -> cfg.ConfigOpts:
    """Read the same files with the options for the connection, too."""
    more = cfg.ConfigOpts()
    options.register_opts(more)
    more(
        [f'--config-file={path}' for path in files(conf)],
        default_config_files=[],
        default_config_dirs=[],
    )
    return more


def unknown_names(
    conf: cfg.ConfigOpts, connection: bool = True
) -> Iterator[UnknownName]:
    """Yield the names in the configuration files that have no effect.

    :param conf: A configuration with the options of Nova, of this package and
        of the configured request filters.
    :param connection: Whether it has those for the connection to a cloud, too.
    """
    ours = {
        section: {option.dest for option in opts}
        for section, opts in options.list_opts(connection=False)
    }
    ours[options.HOST_FILTERS].add('available_filters')
    places = {
        name: section
        for section in _SCHEDULING
        for name in _registered(conf, section)
    } | {
        name: section
        for section, names in ours.items()
        for name in names - _COMMON
    }
    if connection and (name := _auth_plugin(conf)):
        # Imported late: a command for a cloud file does not need it.
        from keystoneauth1 import exceptions
        from keystoneauth1 import loading as auth_loading

        try:
            of_plugin = auth_loading.get_auth_plugin_conf_options(name)
            ours[ia_conf.GROUP] |= {option.dest for option in of_plugin}
        except exceptions.NoMatchingPlugin:
            plugins = auth_loading.get_available_plugin_names()
            yield UnknownName(
                f'[{ia_conf.GROUP}] auth_type names the unknown plugin '
                f'{name}{meant(name, plugins)}',
                is_plugin=True,
            )
    for path in files(conf):
        for section, names in parsed(path).items():
            group = section if section == options.DEFAULT else section.lower()
            if group not in ours and group not in conf:
                if guess := _near(group, ours):
                    yield UnknownName(
                        f'{path}: the section [{section}] has no effect '
                        f'(did you mean {guess}?)',
                        is_certain=False,
                    )
                continue
            own = ours.get(group, set())
            for name in names:
                if name in own or name in _registered(conf, group):
                    continue
                subject = f'{path}: the option {name} in [{section}]'
                if instead := _REMOVED.get((group, name)):
                    yield UnknownName(
                        f'{subject} is no longer read by Nova; {instead}',
                        is_certain=False,
                        is_left_over=True,
                    )
                elif name in places:
                    yield UnknownName(
                        f'{subject} has no effect there; move it to '
                        f'[{places[name]}]'
                    )
                elif group == ia_conf.GROUP:
                    yield UnknownName(
                        f'{subject} has no effect{meant(name, own)}'
                    )
                elif guess := _near(name, own):
                    yield UnknownName(
                        f'{subject} has no effect (did you mean {guess}?)'
                    )
                elif group in _SCHEDULING and _QUERIES_PLACEMENT.match(name):
                    yield UnknownName(
                        f'{subject} has no effect, as Nova has no such '
                        'request filter; remove it'
                    )


def _near(name: str, names: Collection[str]) -> str | None:
    """Return the name of which this one is a misspelling, if there is one."""
    near = difflib.get_close_matches(name, names, n=1, cutoff=_NEAR)
    return near[0] if near else None


def _auth_plugin(conf: cfg.ConfigOpts) -> str | None:
    """Return the name of the configured plugin for Keystone."""
    section = conf[ia_conf.GROUP]
    # With auth_section, keystoneauth reads another section instead.
    name: str | None = None if section.auth_section else section.auth_type
    return name


def _registered(conf: cfg.ConfigOpts, group: str) -> set[str]:
    if group == options.DEFAULT:
        return set(conf)
    return set(conf[group]) if group in conf else set()


def files(conf: cfg.ConfigOpts) -> list[str]:
    """Return the configuration files in the order of oslo.config."""
    if 'config_file' not in conf:
        # Nothing was read from files.
        return []
    files = list(conf.config_file or ())
    for folder in conf.config_dir or ():
        files += sorted(glob.glob(os.path.join(folder, '*.conf')))
    return files


def parsed(path: str) -> Mapping[str, Collection[str]]:
    """Return the names of the options in a file by section."""
    sections: dict[str, dict[str, list[str]]] = {}
    # oslo.config has reported a file that cannot be read.
    with contextlib.suppress(OSError, cfg.ParseError):
        cfg.ConfigParser(path, sections).parse()
    return sections
