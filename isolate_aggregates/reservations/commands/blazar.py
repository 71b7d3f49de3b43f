# SPDX-License-Identifier: Apache-2.0
"""``reservation blazar``: the reservations in Nova that belong to Blazar.

Blazar is an optional dependency, so it is imported only by these commands.
"""

import argparse
from collections.abc import Iterable, Sequence
import importlib
import types
from typing import TYPE_CHECKING, Any

from isolate_aggregates import exception
from isolate_aggregates.cli import fields, output
from isolate_aggregates.reservations import names
from isolate_aggregates.reservations.commands import common, times

if TYPE_CHECKING:
    from isolate_aggregates.reservations.blazar.backend import Backend
    from isolate_aggregates.reservations.blazar.kept import Kept

_PACKAGE = 'isolate_aggregates.reservations.blazar'
_CONFIG_FILE = '/etc/blazar/blazar.conf'


def imported(name: str) -> types.ModuleType:
    """Import a module that needs Blazar.

    :raises InvalidRequest: if Blazar is not installed.
    """
    try:
        return importlib.import_module(f'{_PACKAGE}.{name}')
    except ImportError as exc:
        raise exception.InvalidRequest(
            f'This command needs Blazar ({exc}); run it where blazar-manager '
            'is installed.'
        ) from exc


def add_config_file(parser: argparse.ArgumentParser) -> None:
    """Add the option for Blazar's configuration file."""
    parser.add_argument(
        '--blazar-config-file',
        default=_CONFIG_FILE,
        metavar='<file>',
        help='Configuration file of blazar-manager, with the settings for its '
        f'database, Nova and Placement; default: {_CONFIG_FILE}',
    )


def _document(found: 'Kept') -> dict[str, Any]:
    """Return a reservation as a JSON document."""
    end = found.record.end
    return {
        'id': found.record.reservation,
        'projects': list(found.projects),
        'state': _state(found),
        'database': found.record.database,
        'ended': end and {'by': end.by, 'at': times.text(end.at)},
        'slots': sum(found.slots.values()),
        'servers': list(found.servers),
        'hosts': dict(sorted(found.slots.items())),
    }


def _state(found: 'Kept') -> str:
    if found.record.end is not None:
        return 'ending'
    if not found.is_ours:
        return 'other'
    return 'known' if found.is_known else 'unknown'


class ListBlazarReservations(output.ReportLister):
    """Show the reservations in Nova that belong to any Blazar.

    The state is relative to the Blazar of the configuration file: ``known`` if
    its database knows the reservation, ``unknown`` if it belongs to this
    database, which does not know it, ``other`` if it belongs to another
    database, and ``ending`` if it was ended and is not deleted yet. Unknown
    ones and others do not change until ``reservation blazar adopt`` or
    ``reservation blazar end``.
    """

    nothing = 'Nova has no reservations of Blazar.'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        add_config_file(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """List the reservations."""
        kept = imported('kept')
        backend = kept.backend(parsed_args.blazar_config_file)
        self._found = [_document(one) for one in kept.everything(backend)]
        return (
            ('Id', 'Projects', 'State', 'Database', 'Slots', 'Servers'),
            [
                (
                    found['id'],
                    ', '.join(found['projects']),
                    found['state'],
                    found['database'],
                    found['slots'],
                    len(found['servers']),
                )
                for found in self._found
            ],
        )

    def document(self) -> dict[str, Any]:
        """Return the reservations as a JSON document."""
        return {'reservations': self._found}


class _OneBlazarReservation(common.OneChanged):
    """Base class of commands that change a reservation of Blazar."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        common.add_reservation(parser)
        add_config_file(parser)
        return parser

    def _shown(self, found: 'Kept') -> tuple[Sequence[str], Iterable[Any]]:
        values = {k: fields.field(v) for k, v in _document(found).items()}
        return tuple(values), tuple(values.values())


class AdoptBlazarReservation(_OneBlazarReservation):
    """Hand a reservation over to the Blazar of the configuration file.

    If its database does not know the reservation, it gets a lease with the
    slots and the project that the reservation has in Placement and Nova. If
    the reservation is kept without Blazar, its lease is updated with what has
    changed. Servers do not change.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of this command."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--end',
            type=times.moment,
            metavar='<time>',
            help=f'When the lease ends, {common.TIME}, or a duration from '
            'now, such as 7d; required if the end is not known',
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        """Adopt it."""
        kept = imported('kept')
        backend = kept.backend(parsed_args.blazar_config_file)
        name = names.reservation_id(parsed_args.reservation)
        found = self._found(backend, name, parsed_args)
        now = times.now()
        until = (
            None
            if parsed_args.end is None
            else self.time(parsed_args.end, now)
        )
        if until and until <= now:
            self._usage.error('--end must be in the future')

        def find() -> list[str]:
            nonlocal found
            found = self._found(backend, name, parsed_args)
            belongs = (
                'is kept without Blazar'
                if found.without_blazar
                else 'belongs to the Blazar with the database '
                f'{found.record.database}'
            )
            return [
                f'hand reservation {name}, which {belongs}, over to the '
                f'Blazar with the database {backend.database}'
            ]

        if not parsed_args.yes and not self.agrees(parsed_args, find(), find):
            return self._shown(found)
        kept.adopt(backend, found, until, now)
        return self._shown(kept.one(backend, name))

    def _found(
        self, backend: 'Backend', name: str, args: argparse.Namespace
    ) -> 'Kept':
        """Return the reservation; end with 2 if it would have no end."""
        found: Kept = imported('kept').one(backend, name)
        made = found.without_blazar
        has_end = made.end if made else found.is_known
        if args.end is None and not has_end:
            self._usage.error('give --end, because no end is known')
        return found


class EndBlazarReservation(_OneBlazarReservation):
    """End a reservation that Blazar does not know, and delete its servers.

    They are deleted permanently, shelved ones too. The exit status is 3 as
    long as some are being deleted: run it again, or let its Blazar do the
    rest. A reservation that Blazar knows ends with its lease, and is refused.
    """

    _is_waiting = False

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        """End it."""
        kept = imported('kept')
        backend = kept.backend(parsed_args.blazar_config_file)
        name = names.reservation_id(parsed_args.reservation)
        found = self._found(backend, name)

        def find() -> list[str]:
            nonlocal found
            found = self._found(backend, name)
            return [
                common.end_of(
                    name, ', '.join(found.projects), len(found.servers)
                )
            ]

        if not parsed_args.yes and not self.agrees(parsed_args, find(), find):
            return self._shown(found)
        self._is_waiting = bool(kept.end(backend, found))
        if self._is_waiting:
            found = kept.one(backend, name)
        return self._shown(found)

    @staticmethod
    def _found(backend: 'Backend', name: str) -> 'Kept':
        """Return the reservation.

        :raises InvalidRequest: if it ends in another way.
        """
        found: Kept = imported('kept').one(backend, name)
        if found.without_blazar:
            raise exception.InvalidRequest(
                f'Reservation {name} is kept without Blazar; use reservation '
                'end.'
            )
        if found.is_ours and found.is_known and found.record.end is None:
            # Blazar would create it again.
            raise exception.InvalidRequest(
                f'Blazar knows reservation {name}; delete its lease.'
            )
        return found

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command.

        :returns: 0, or 3 while servers are being deleted.
        """
        code = super().run(parsed_args)
        return code or (common.NOT_YET if self._is_waiting else 0)
