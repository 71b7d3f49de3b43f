# SPDX-License-Identifier: Apache-2.0
"""The systemd units that the package installs."""

import configparser
import pathlib
import shlex

from isolate_aggregates_tools.cli.app import IsolateAggregatesApp

ROOT = pathlib.Path(__file__).parents[3]


def is_installed(unit):
    """Return whether a unit is among the files of the package."""
    setup = configparser.ConfigParser()
    found = []
    for path in ROOT.glob('isolate-aggregates-*/setup.cfg'):
        setup.read(path)
        found += setup['files']['data_files'].split()
    return unit in found


def command(unit):
    """Return the name and the arguments of the command of a service."""
    service = configparser.ConfigParser(interpolation=None)
    service.read(ROOT / unit)
    env, program, *arguments = shlex.split(service['Service']['ExecStart'])
    assert (env, program) == ('/usr/bin/env', 'isolate-aggregates')
    app = IsolateAggregatesApp(arguments)
    options, rest = app.parser.parse_known_args(arguments)
    assert options.config_file == ['/etc/nova/nova.conf']
    command_class, name, own = app.command_manager.find_command(rest)
    return name, command_class(app, None).get_parser(name).parse_args(own)
