# SPDX-License-Identifier: Apache-2.0
"""The commands of ``isolate-aggregates``, with the names the client's have.

The client loads all commands of all plugins on every start, whichever it is
to run. So what it finds here is no command yet: ``ListCandidate`` imports the
command ``candidates`` when the client makes one to run it. For the line in its
help nothing is imported.
"""

import argparse
from typing import TYPE_CHECKING, Any

from isolate_aggregates.cli.listed import DESCRIPTIONS, Listed

if TYPE_CHECKING:
    from cliff import command
    from osc_lib import shell

# By the name of the entry point in isolate_aggregates.cli: the name in the
# client, where they differ; None for what does not belong there. The client
# had all of them by our names once, and still takes these.
RENAMED = {
    'candidates': 'candidate_list',
    'capacity': 'capacity_show',
    'exporter': None,
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
    """A command that is imported when the client makes one."""

    # Its entry point in isolate_aggregates.cli.
    entry_point: str
    # What to type instead; empty if this name is the one to use.
    instead: str

    def __new__(
        cls,
        app: 'shell.OpenStackShell',
        app_args: argparse.Namespace | None,
    ) -> Any:
        """Return the command itself.

        :param app_args: Its parsed options; None to look at the help only.
        """
        if app_args is None:
            return Listed(
                cls.entry_point,
                lambda: cls._imported(app, None),
                deprecated=bool(cls.instead),
            )
        return cls._imported(app, app_args)

    @classmethod
    def _imported(
        cls,
        app: 'shell.OpenStackShell',
        app_args: argparse.Namespace | None,
    ) -> 'command.Command':
        from isolate_aggregates.cli.osc import commands

        return commands.load(cls.entry_point, cls.instead)(app, app_args)


def entry_points() -> dict[str, type[Deferred]]:
    """Return the commands of the client by the names of their entry points.

    The names that they had before are there too.
    """
    found = {}
    for command in DESCRIPTIONS:
        name = RENAMED.get(command, command)
        if name is not None:
            found[f'isolation_{name}'] = _deferred(name, command)
        if name != command:
            instead = (
                f'openstack isolation {name.replace("_", " ")}'
                if name
                else f'isolate-aggregates {command.replace("_", " ")}'
            )
            found[f'isolation_{command}'] = _deferred(
                command, command, instead
            )
    return found


def _deferred(name: str, command: str, instead: str = '') -> type[Deferred]:
    *objects, action = name.split('_')
    return type(
        ''.join(word.capitalize() for word in (action, *objects)),
        (Deferred,),
        {'__module__': __name__, 'entry_point': command, 'instead': instead},
    )


# The entry points in setup.cfg are these classes.
globals().update({found.__name__: found for found in entry_points().values()})
