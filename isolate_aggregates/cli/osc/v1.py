# SPDX-License-Identifier: Apache-2.0
"""Each command of ``isolate-aggregates``, by the name of its entry point.

The client loads all commands of all plugins on every start, whichever it is
to run. So what it finds here is no command yet: ``v1.candidates`` imports the
command ``candidates`` when the client makes one to run it. For the line in its
help nothing is imported.
"""

import argparse
import dataclasses
from typing import TYPE_CHECKING, Union

from isolate_aggregates.cli.listed import Listed

if TYPE_CHECKING:
    from cliff import command
    from osc_lib import shell


@dataclasses.dataclass(frozen=True)
class Deferred:
    """A command that is imported when it is wanted.

    :param name: The name of its entry point in ``isolate_aggregates.cli``.
    """

    name: str

    def __call__(
        self,
        app: 'shell.OpenStackShell',
        app_args: argparse.Namespace | None,
    ) -> Union['command.Command', Listed]:
        """Return the command, as the client calls a class of commands.

        :param app_args: Its parsed options; None to look at the help only.
        """
        if app_args is None:
            return Listed(self.name, lambda: self._command(app, None))
        return self._command(app, app_args)

    def _command(
        self,
        app: 'shell.OpenStackShell',
        app_args: argparse.Namespace | None,
    ) -> 'command.Command':
        from isolate_aggregates.cli.osc import commands

        return commands.load(self.name)(app, app_args)


def __getattr__(name: str) -> Deferred:
    if name.startswith('_'):
        raise AttributeError(name)
    return Deferred(name)
