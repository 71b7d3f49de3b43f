# SPDX-License-Identifier: Apache-2.0
"""``reservation import``: import reservations from Blazar."""

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from oslo_log import log as logging

from isolate_aggregates.cli import consent, output
from isolate_aggregates.reservations.commands import blazar, common, times

if TYPE_CHECKING:
    from isolate_aggregates.reservations.blazar.importing import Import

LOG = logging.getLogger(__name__)

_TO_DO = 'import'
_DONE = 'imported'
_KEPT = 'was imported'
_LEFT = 'left'


class ImportReservations(consent.Asking, output.ReportLister):
    """Import instance reservations from Blazar, to keep them without it.

    Copies active and future reservations from Blazar's database into their
    flavors. Servers do not change, and nothing is deleted. Reservations that
    cannot be imported are listed and stay as they are; the exit status is then
    3. Stop blazar-manager first.
    """

    nothing = 'Blazar has no active or future reservations.'
    old_yes = '--apply'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        blazar.add_config_file(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Import them, or show what would be done."""
        importing = blazar.imported('importing')
        blazar.imported('kept').configure(parsed_args.blazar_config_file)
        store = common.store(self.app.conf, self.app.connect())

        def find() -> list[str]:
            self._found: list[Import] = importing.plan(store, store.now())
            return [
                f'{_TO_DO} reservation {one.id} of lease {one.lease}'
                for one in self._found
                if not (one.problem or one.is_kept)
            ]

        self._is_done = parsed_args.yes or self.agrees(
            parsed_args, find(), find
        )
        if self._is_done:
            self._found = importing.carry_out(store, store.now())
        for one in self._found:
            if one.problem:
                LOG.warning(
                    'Reservation %s is not imported: %s.', one.id, one.problem
                )
            for note in one.notes:
                LOG.warning('Reservation %s: %s.', one.id, note)
        documents = [self._one(found) for found in self._found]
        self._documents = documents
        return (
            ('Id', 'Lease', 'Project', 'Start', 'End', 'Hosts', 'Result'),
            [
                (
                    found['id'],
                    found['lease'],
                    found['project'],
                    found['start'],
                    found['end'],
                    ', '.join(f'{k} ({v})' for k, v in found['hosts'].items()),
                    found['result'],
                )
                for found in documents
            ],
        )

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command.

        :returns: 0, or 3 if some reservations cannot be imported.
        """
        code = super().run(parsed_args)
        is_left = any(one.problem for one in self._found)
        return code or (common.NOT_YET if is_left else 0)

    def document(self) -> dict[str, Any]:
        """Return the reservations as a JSON document."""
        return {'reservations': self._documents}

    def after(self) -> Iterable[str]:
        """Yield hints for the next step, if nothing was done."""
        if self.is_left:
            yield 'Nothing was changed. Stop blazar-manager and give --yes.'

    def _one(self, found: 'Import') -> dict[str, Any]:
        made = found.reservation
        return {
            'id': found.id,
            'lease': found.lease,
            'project': found.project,
            'start': made and times.text(made.start),
            'end': made and times.text(made.end),
            'amount': made and made.amount,
            'hosts': dict(found.hosts),
            'result': self._result(found),
            'problem': found.problem,
            'notes': list(found.notes),
        }

    def _result(self, found: 'Import') -> str:
        if found.problem:
            return _LEFT
        if found.is_kept:
            return _KEPT
        return _DONE if self._is_done else _TO_DO
