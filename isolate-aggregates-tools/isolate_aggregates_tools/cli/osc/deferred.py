# SPDX-License-Identifier: Apache-2.0
"""The commands of ``isolate-aggregates`` in the client.

The client loads all commands of all plugins on every start. So the classes
here are placeholders: ``ListCandidate``, for example, imports the command
``candidate list`` when the client instantiates it to run it. The list of
commands in the help imports no command.
"""

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from isolate_aggregates_tools.cli.command_help import Listed

if TYPE_CHECKING:
    from cliff import command
    from osc_lib import shell

# The first word of their names.
GROUP = 'isolation'

# Runs until it is terminated, so it does not belong in the client.
_SERVICE = 'exporter'


class Deferred:
    """A command that is imported when the client instantiates it."""

    # The name of its entry point in isolate_aggregates.cli.
    entry_point: str
    # Its name in the client.
    name: str

    def __new__(
        cls,
        app: 'shell.OpenStackShell',
        app_args: argparse.Namespace | None,
        cmd_name: str | None = None,
    ) -> Any:
        """Return the command itself.

        :param cmd_name: The name as it was given. cliff also takes a beginning
            of it, so that a slip of the finger could change a cloud.
        """
        if app_args is None:
            return Listed(cls.entry_point, lambda: cls._imported(app, None))
        if cmd_name not in (None, cls.name):
            from isolate_aggregates_tools.cli.osc import commands

            commands.refuse(str(cmd_name))
        return cls._imported(app, app_args)

    def __init__(
        self,
        app: 'shell.OpenStackShell',
        app_args: argparse.Namespace | None,
        cmd_name: str | None = None,
    ) -> None:
        """Tell cliff to give the name; this is never called."""

    @classmethod
    def _imported(
        cls,
        app: 'shell.OpenStackShell',
        app_args: argparse.Namespace | None,
    ) -> 'command.Command':
        from isolate_aggregates_tools.cli.osc import commands

        return commands.load(cls.entry_point)(app, app_args)


def deferred(
    descriptions: Iterable[str], module: str
) -> dict[str, type[Deferred]]:
    """Return the commands of the client by the names of their classes.

    :param descriptions: The names of entry points in isolate_aggregates.cli.
    :param module: The name of the module that will have the classes.
    """
    classes = (
        _deferred(entry_point, name, module)
        for entry_point, name in names(descriptions).items()
    )
    return {cls.__name__: cls for cls in classes}


def names(descriptions: Iterable[str]) -> dict[str, str]:
    """Return the names in the client, by those of the entry points."""
    return {
        entry_point: f'{GROUP} {entry_point.replace("_", " ")}'
        for entry_point in descriptions
        if entry_point != _SERVICE
    }


def _deferred(entry_point: str, name: str, module: str) -> type[Deferred]:
    *objects, action = entry_point.split('_')
    return type(
        ''.join(word.capitalize() for word in (action, *objects)),
        (Deferred,),
        {'__module__': module, 'entry_point': entry_point, 'name': name},
    )
