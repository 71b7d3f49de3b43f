# SPDX-License-Identifier: Apache-2.0
"""The help line of each command, available without importing it.

The help of ``isolate-aggregates`` and of ``openstack`` lists every command.
Importing all of them would take longer than the rest of the help.
"""

from collections.abc import Callable, Mapping
import functools
from importlib import metadata
from typing import TYPE_CHECKING, Any

from isolate_aggregates.lazy import lazy_property

if TYPE_CHECKING:
    from cliff import command

# The distributions with commands list their help lines in this group.
NAMESPACE = 'isolate_aggregates.cli.descriptions'


@functools.cache
def descriptions() -> Mapping[str, str]:
    """Return the help line of each command by the name of its entry point."""
    return {
        name: line
        for entry_point in metadata.entry_points(group=NAMESPACE)
        for name, line in entry_point.load().items()
    }


class Listed:
    """A command that is imported only if more than its help line is needed.

    :param name: The name of its entry point in ``isolate_aggregates.cli``.
    """

    # The help of the client reads it.
    deprecated = False

    def __init__(
        self, name: str, make: 'Callable[[], command.Command]'
    ) -> None:
        self._name = name
        self._make = make

    def get_description(self) -> str:
        """Return the help line of the command."""
        return descriptions()[self._name]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._command, name)

    @lazy_property
    def _command(self) -> 'command.Command':
        return self._make()
