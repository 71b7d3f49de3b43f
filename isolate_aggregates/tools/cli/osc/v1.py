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
    'capacity': 'capacity_show',
    'grant': 'key_grant',
    'list': 'lock_list',
    'lock': 'lock_create',
    'matrix': 'matrix_show',
    'query': 'query_show',
    'report': 'report_save',
    'reservation_calendar': 'reservation_calendar_show',
    'reservation_update': 'reservation_set',
    'revoke': 'key_revoke',
    'show': 'lock_show',
    'unlock': 'lock_delete',
}


class Deferred:
    """A command that is imported when the client instantiates it."""

    # The name of its entry point in isolate_aggregates.cli.
    entry_point: str

    def __new__(
        cls,
        app: 'shell.OpenStackShell',
        app_args: argparse.Namespace | None,
    ) -> Any:
        """Return the command itself."""
        if app_args is None:
            return Listed(cls.entry_point, lambda: cls._imported(app, None))
        return cls._imported(app, app_args)

    @classmethod
    def _imported(
        cls,
        app: 'shell.OpenStackShell',
        app_args: argparse.Namespace | None,
    ) -> 'command.Command':
        from isolate_aggregates.tools.cli.osc import commands

        return commands.load(cls.entry_point)(app, app_args)


def entry_points() -> dict[str, type[Deferred]]:
    """Return the commands of the client by the names of their entry points."""
    return {
        f'isolation_{name}': _deferred(name, command)
        for command in DESCRIPTIONS
        if command != _SERVICE
        for name in [_CLIENT_NAMES.get(command, command)]
    }


def _deferred(name: str, command: str) -> type[Deferred]:
    *objects, action = name.split('_')
    return type(
        ''.join(word.capitalize() for word in (action, *objects)),
        (Deferred,),
        {'__module__': __name__, 'entry_point': command},
    )


# The entry points in setup.cfg refer to these classes.
globals().update({cls.__name__: cls for cls in entry_points().values()})
