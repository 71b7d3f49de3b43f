# SPDX-License-Identifier: Apache-2.0
"""Finds names in configuration files that nothing reads.

oslo.config ignores unknown sections and options, so a misspelt one silently
keeps a lock open. In sections of Nova and others only names that are similar
to those that this package reads are reported, because other programs may
have options there.
"""

from collections.abc import Collection, Iterator, Mapping
import contextlib
import glob
import os

from keystoneauth1 import exceptions, loading
from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.text import meant

# What this package reads besides its own options.
_SERVICES = {
    'api_database': {'connection'},
    'placement': {'auth_type', 'auth_url', 'region_name', 'timeout'},
}
_OTHERS = {ia_conf.HOST_FILTERS: {'available_filters'}, **_SERVICES}


def unknown_names(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield a sentence for each name in a file that has no effect.

    :param conf: A configuration with the options of this package and of the
        configured request filters.
    """
    options = {
        section: {option.dest for option in opts}
        for section, opts in ia_conf.list_opts(connection=False)
    }
    places = {name: one for one, names in options.items() for name in names}
    for section, others in _OTHERS.items():
        options.setdefault(section, set()).update(others)
    try:
        options[ia_conf.GROUP] |= _auth_options(conf)
    except exceptions.NoMatchingPlugin as exc:
        plugins = loading.get_available_plugin_names()
        yield (
            f'[{ia_conf.GROUP}] auth_type names the unknown plugin '
            f'{exc.name}{meant(exc.name, plugins)}'
        )
    for path in _files(conf):
        for section, names in _parsed(path).items():
            group = section if section == ia_conf.DEFAULT else section.lower()
            if group not in options:
                guess = meant(group, options)
                if guess and group not in conf:
                    yield (
                        f'{path}: the section [{section}] has no effect{guess}'
                    )
                continue
            section_options = options[group] | _registered(conf, group)
            for name in names:
                if name in section_options:
                    continue
                advice = meant(name, options[group])
                if name in places and group not in _SERVICES:
                    advice = f' there; move it to [{places[name]}]'
                if advice or group == ia_conf.GROUP:
                    yield (
                        f'{path}: the option {name} in [{section}] has no '
                        f'effect{advice}'
                    )


def _auth_options(conf: cfg.ConfigOpts) -> set[str]:
    """Return the options of the configured plugin for Keystone.

    :raises NoMatchingPlugin: if there is no such plugin.
    """
    section = conf[ia_conf.GROUP]
    # With auth_section, keystoneauth reads another section instead.
    name = None if section.auth_section else section.auth_type
    if not name:
        return set()
    return {
        option.dest for option in loading.get_auth_plugin_conf_options(name)
    }


def _registered(conf: cfg.ConfigOpts, group: str) -> set[str]:
    if group == ia_conf.DEFAULT:
        return set(conf)
    return set(conf[group]) if group in conf else set()


def _files(conf: cfg.ConfigOpts) -> list[str]:
    """Return the configuration files in the order of oslo.config."""
    if 'config_file' not in conf:
        # Nothing was read from files.
        return []
    files = list(conf.config_file or ())
    for folder in conf.config_dir or ():
        files += sorted(glob.glob(os.path.join(folder, '*.conf')))
    return files


def _parsed(path: str) -> Mapping[str, Collection[str]]:
    """Return the names of the options by section."""
    sections: dict[str, dict[str, list[str]]] = {}
    # oslo.config has reported a file that cannot be read.
    with contextlib.suppress(OSError, cfg.ParseError):
        cfg.ConfigParser(path, sections).parse()
    return sections
