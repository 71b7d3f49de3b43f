# SPDX-License-Identifier: Apache-2.0
"""The systemd units that the package installs."""

import configparser
import pathlib
import shlex

from isolate_aggregates.tools.cli.app import IsolateAggregatesApp

ROOT = pathlib.Path(__file__).parents[2]


def is_installed(unit):
    """Return whether a unit is among the files of the package."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / 'setup.cfg')
    return unit in setup['files']['data_files']


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
