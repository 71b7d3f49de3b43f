# SPDX-License-Identifier: Apache-2.0
"""Shows the effect of changes before they are made."""

import argparse
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Protocol

from isolate_aggregates import entry_points, exception
from isolate_aggregates_tools.cli import consent

# What computes an effect is loaded only to compute one.
NAMESPACE = 'isolate_aggregates.cli.effects'

# As a field of the document of a command.
PreviewedEffect = Annotated[
    Any, 'What the changes do, as by effect show; null if it was not computed.'
]


class Shown(Protocol):
    """The effect of changes, as a command shows it."""

    def lines(self) -> Iterable[str]:
        """Yield the effect, the worst first."""

    def document(self) -> Any:
        """Return what "effect show" writes as json."""


def loaded(name: str) -> Callable[..., Shown]:
    """Return what computes the effect of a kind of change.

    :param name: The name of an entry point in ``NAMESPACE``.
    """

    def error(name: str, problem: str) -> Exception:
        return exception.IsolateAggregatesError(f'Effect {name} {problem}')

    found: Callable[..., Shown] = entry_points.load(NAMESPACE, [name], error)[
        name
    ]
    return found


class Previewing(consent.Confirming):
    """A mixin for commands that show the effect of their changes.

    It is shown before the question, and with ``--dry-run``. To compute it, the
    whole cloud is read.
    """

    _effect: Shown | None = None
    _problem = ''

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--no-effect',
            action='store_true',
            help='Do not show what the changes would do to servers, flavors '
            'and projects; with many hosts, this saves time',
        )
        return parser

    def preview(
        self, args: argparse.Namespace, compute: Callable[[], Shown]
    ) -> list[str]:
        """Return lines that describe the effect of a change.

        :param compute: Returns the effect.
        """
        self._effect, self._problem = None, ''
        if args.no_effect:
            return []
        try:
            self._effect = compute()
        except exception.IsolateAggregatesError as exc:
            self._problem = str(exc)
        return list(self.effect_lines())

    def effect_lines(self) -> Iterable[str]:
        """Yield the effect of the changes, the worst first."""
        if self._problem:
            yield f'The effect is not known: {self._problem}'
        if self._effect is not None:
            yield from self._effect.lines()

    def effect_document(self) -> Any:
        """Return the effect as a document; None if it was not computed."""
        return None if self._effect is None else self._effect.document()
