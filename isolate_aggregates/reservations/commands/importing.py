# SPDX-License-Identifier: Apache-2.0
"""``reservation import``: import reservations from Blazar.

Blazar is an optional dependency, so it is imported only by this command.
"""

import argparse
from collections.abc import Iterable, Sequence
import importlib
import types
from typing import TYPE_CHECKING, Any

from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.reservations.commands import common, times
from isolate_aggregates.tools.cli import consent, output
from isolate_aggregates.tools.cli.exit_status import ExitStatus

if TYPE_CHECKING:
    from isolate_aggregates.reservations.blazar.importing import Import

LOG = logging.getLogger(__name__)

_MODULE = 'isolate_aggregates.reservations.blazar.importing'
_CONFIG_FILE = '/etc/blazar/blazar.conf'

_TO_DO = 'import'
_DONE = 'imported'
_EARLIER = 'was imported'
_REFUSED = 'left'


class ImportReservations(consent.Confirming, output.ReportLister):
    """Import instance reservations from Blazar, to keep them without it.

    Copies active and future reservations from Blazar's database into their
    flavors. Servers do not change, and nothing is deleted. Reservations that
    cannot be imported are listed and stay as they are; the exit status is then
    3. Stop blazar-manager first.
    """

    nothing = 'Blazar has no active or future reservations.'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--blazar-config-file',
            default=_CONFIG_FILE,
            metavar='<file>',
            help='Configuration file of blazar-manager, with the settings for '
            f'its database; default: {_CONFIG_FILE}',
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """Import them, or show what would be done."""
        importing = _module()
        importing.configure(parsed_args.blazar_config_file)
        store = common.store(self.app.conf, self.app.connect())

        def find() -> list[str]:
            self._results: list[Import] = importing.plan(store, store.now())
            return [
                f'{_TO_DO} reservation {result.id} of lease {result.lease}'
                for result in self._results
                if not (result.problem or result.was_imported)
            ]

        self._is_done = parsed_args.yes or self.agrees(
            parsed_args, find(), find
        )
        if self._is_done:
            self._results = importing.carry_out(store, store.now())
        for result in self._results:
            if result.problem:
                LOG.warning(
                    'Reservation %s is not imported: %s.',
                    result.id,
                    result.problem,
                )
            for note in result.notes:
                LOG.warning('Reservation %s: %s.', result.id, note)
        self._documents = [self._document(result) for result in self._results]
        return (
            ('Id', 'Lease', 'Project', 'Start', 'End', 'Hosts', 'Result'),
            [
                (
                    document['id'],
                    document['lease'],
                    document['project'],
                    document['start'],
                    document['end'],
                    ', '.join(
                        f'{host} ({number})'
                        for host, number in document['hosts'].items()
                    ),
                    document['result'],
                )
                for document in self._documents
            ],
        )

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command.

        :returns: 0, or 3 if some reservations cannot be imported.
        """
        code = super().run(parsed_args)
        is_refused = any(result.problem for result in self._results)
        return code or (ExitStatus.LEFT if is_refused else 0)

    def document(self) -> dict[str, Any]:
        """Return the reservations as a JSON document."""
        return {'reservations': self._documents}

    def after(self) -> Iterable[str]:
        """Yield hints for the next step, if nothing was done."""
        if self.is_undone:
            yield 'Nothing was changed. Stop blazar-manager and give --yes.'

    def _document(self, result: 'Import') -> dict[str, Any]:
        reservation = result.reservation
        return {
            'id': result.id,
            'lease': result.lease,
            'project': result.project,
            'start': reservation and times.text(reservation.start),
            'end': reservation and times.text(reservation.end),
            'amount': reservation and reservation.amount,
            'hosts': dict(result.hosts),
            'result': self._outcome(result),
            'problem': result.problem,
            'notes': list(result.notes),
        }

    def _outcome(self, result: 'Import') -> str:
        if result.problem:
            return _REFUSED
        if result.was_imported:
            return _EARLIER
        return _DONE if self._is_done else _TO_DO


def _module() -> types.ModuleType:
    try:
        return importlib.import_module(_MODULE)
    except ImportError as exc:
        raise exception.InvalidRequest(
            f'This command needs Blazar ({exc}); run it where blazar-manager '
            'is installed.'
        ) from exc
