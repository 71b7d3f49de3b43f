# SPDX-License-Identifier: Apache-2.0
"""Starts the part of nova-scheduler that reads nova.conf; prints the result.

It is a separate program, as Nova's configuration is global in a process. Its
argument is the path of nova.conf, or of a directory of such files, and it
prints JSON.
"""

import json
import pathlib
import sys

from nova import config
import nova.conf
from nova.scheduler import host_manager, request_filter
from oslo_config import cfg, iniparser

CONF = nova.conf.CONF


class HostManager(host_manager.HostManager):
    """Nova's host manager, without a database."""

    def refresh_cells_caches(self):
        pass

    def _init_aggregates(self):
        pass

    def _init_instance_info(self, *args):
        pass


class Options(iniparser.BaseParser):
    """Lists the options of a file."""

    def __init__(self):
        super().__init__()
        self.group = 'DEFAULT'
        self.found = []

    def new_section(self, section):
        self.group = section

    def assignment(self, key, value):
        self.found.append((self.group, key))

    def comment(self, comment):
        pass


def is_known(group, name):
    """Return whether Nova or this package has an option."""
    try:
        (CONF if group == 'DEFAULT' else CONF[group])[name]
    except (cfg.NoSuchGroupError, cfg.NoSuchOptError, KeyError):
        return False
    return True


def loaded():
    """Return the modules of this package that are loaded now."""
    return {
        name
        for name in sys.modules
        if name.partition('.')[0] == 'isolate_aggregates'
    }


def main(path):
    given = pathlib.Path(path)
    kind = '--config-dir' if given.is_dir() else '--config-file'
    config.parse_args(['nova-scheduler', kind, path])
    manager = HostManager()
    modules = loaded()
    # Imported late, as nova-scheduler loads none of these.
    from nova.api.validation.extra_specs import validators

    validators.load_validators()
    of_nova_api = loaded() - modules
    from isolate_aggregates.nova import registration
    from isolate_aggregates.upgrade_check.checks import Checks

    checks = Checks(CONF)
    options = Options()
    for file in sorted(given.iterdir()) if given.is_dir() else [given]:
        options.parse(file.read_text('utf-8').splitlines(keepends=True))
    started = {
        'modules': sorted(modules),
        'of_nova_api': sorted(of_nova_api),
        'host_filters': [
            type(one).__name__ for one in manager.enabled_filters
        ],
        'request_filters': [
            *(one.__name__ for one in request_filter.ALL_REQUEST_FILTERS),
            *(one.name for one in registration.installed().filters),
        ],
        'registration': checks.result('Registration').code.name,
        'filters': checks.result('Request filters').details,
        'unknown': [
            f'[{group}] {name}'
            for group, name in options.found
            if not is_known(group, name)
        ],
    }
    print(json.dumps(started))


if __name__ == '__main__':
    main(sys.argv[1])
