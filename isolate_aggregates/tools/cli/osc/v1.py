# SPDX-License-Identifier: Apache-2.0
"""The commands of ``isolate-aggregates``, named as the client names its own.

The client loads all commands of all plugins on every start. So the classes
here are placeholders: ``ListCandidate``, for example, imports the command
``candidates`` when the client instantiates it to run it. The list of commands
in the help imports no command.
"""

import argparse
from typing import TYPE_CHECKING, Any

from isolate_aggregates.tools.cli.listed import DESCRIPTIONS, Listed

if TYPE_CHECKING:
    from cliff import command
    from osc_lib import shell

# Runs until it is terminated, so it does not belong in the client.
_SERVICE = 'exporter'

# The name in the client by the name of the entry point in
# isolate_aggregates.cli, if they differ.
_CLIENT_NAMES = {
    'candidates': 'candidate_list',
    'capacity': 'capacity_list',
    'effect': 'effect_show',
    'grant': 'key_add',
    'list': 'lock_list',
    'lock': 'lock_create',
    'matrix': 'matrix_list',
    'query': 'query_show',
    'relocate': 'relocation_create',
    'report': 'report_save',
    'reservation_calendar': 'reservation_calendar_list',
    'reservation_history': 'reservation_history_list',
    'reservation_update': 'reservation_set',
    'revoke': 'key_remove',
    'show': 'lock_show',
    'survive': 'survival_list',
    'unlock': 'lock_delete',
}


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
            from isolate_aggregates.tools.cli.osc import commands

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
        from isolate_aggregates.tools.cli.osc import commands

        return commands.load(cls.entry_point)(app, app_args)


def names() -> dict[str, str]:
    """Return the names in the client by those of ``isolate-aggregates``."""
    return {
        command.replace('_', ' '): f'isolation {name}'.replace('_', ' ')
        for command in DESCRIPTIONS
        if command != _SERVICE
        for name in [_CLIENT_NAMES.get(command, command)]
    }


def entry_points() -> dict[str, type[Deferred]]:
    """Return the commands of the client by the names of their entry points."""
    return {
        theirs.replace(' ', '_'): _deferred(theirs, ours.replace(' ', '_'))
        for ours, theirs in names().items()
    }


def _deferred(name: str, command: str) -> type[Deferred]:
    _, *objects, action = name.split()
    return type(
        ''.join(word.capitalize() for word in (action, *objects)),
        (Deferred,),
        {'__module__': __name__, 'entry_point': command, 'name': name},
    )


# The entry points in setup.cfg refer to these classes.
globals().update({cls.__name__: cls for cls in entry_points().values()})
