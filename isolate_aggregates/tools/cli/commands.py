# SPDX-License-Identifier: Apache-2.0
"""Finds the commands of ``isolate-aggregates`` without importing them."""

import argparse
from collections.abc import Iterator
import dataclasses
from importlib import metadata
import itertools
from typing import TYPE_CHECKING, Any

from cliff import commandmanager

from isolate_aggregates.text import meant
from isolate_aggregates.tools.cli.listed import DESCRIPTIONS, Listed

if TYPE_CHECKING:
    from cliff import app


class CommandManager(commandmanager.CommandManager):
    """Finds commands, and imports each only when it runs."""

    def load_commands(self, namespace: str) -> None:
        """Find the commands without importing them, unlike cliff."""
        self.group_list.append(namespace)
        for entry_point in metadata.entry_points(group=namespace):
            self.commands[entry_point.name.replace('_', ' ')] = entry_point

    def find_command(self, argv: list[str]) -> Any:
        """Return the command whose name the arguments begin with.

        cliff also takes a beginning of the name, so that a slip of the finger
        could change a cloud.
        """
        try:
            factory, name, arguments = super().find_command(argv)
            if name not in self.commands:
                raise ValueError(name)
            return factory, name, arguments
        except ValueError:
            words = itertools.takewhile(lambda word: word[:1] != '-', argv)
            name = ' '.join(words)
            longer = [c for c in self.commands if c.startswith(f'{name} ')]
            if len(longer) > 1:
                raise ValueError(
                    f'Several commands begin with {name!r}. See '
                    f'isolate-aggregates help {name}.'
                ) from None
            raise ValueError(
                f'There is no command {name!r}'
                f'{meant(name, longer or self.commands)}. '
                'See isolate-aggregates --help.'
            ) from None

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Yield each name with what the help loads to describe the command."""
        for name, entry_point in super().__iter__():
            is_ours = entry_point.name in DESCRIPTIONS
            yield name, _Line(entry_point) if is_ours else entry_point


@dataclasses.dataclass(frozen=True)
class _Line:
    """An entry point that can be described without importing its command."""

    entry_point: Any

    def load(self) -> '_Line':
        return self

    def __call__(
        self, program: 'app.App', options: argparse.Namespace | None
    ) -> Listed:
        return Listed(
            self.entry_point.name,
            lambda: self.entry_point.load()(program, options),
        )
