# SPDX-License-Identifier: Apache-2.0
"""``isolate-aggregates-manage``: the records of what servers were placed with.

It works like ``nova-manage db online_data_migrations``: it may be run at any
time, again and again, while all services run. It reads the files that
nova-scheduler reads, for the addresses of Nova's databases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import functools
import json
import sys
from typing import Any

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects, rpc
import nova.conf
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_config import cfg
import sqlalchemy as sa
from sqlalchemy import orm

from isolate_aggregates import exception, programs
from isolate_aggregates.nova import database, images, placed, source
from isolate_aggregates.request.placed import Placed, decode, encode
from isolate_aggregates.request.placed import hint as hint_of
from isolate_aggregates.text import escaped

# The exit statuses of "nova-manage db online_data_migrations".
DONE, MORE, FAILED, MISUSED = 0, 1, 2, 127

# The number of servers that are read at once.
_BATCH = 500
# The number of servers whose ids are printed.
_NAMED = 20

_SPECS = api_models.RequestSpec.__table__
_MAPPINGS = api_models.InstanceMapping.__table__
_CELLS = api_models.CellMapping.__table__
_SERVER, _METADATA = models.Instance, models.InstanceSystemMetadata


@dataclasses.dataclass
class Count:
    """What was done with servers.

    :param done: The number of those whose request spec was changed.
    :param busy: The number of those in an operation, which were left out.
    :param unknown: The ids of those for which nothing tells what they were
        placed with.
    :param problems: Why some could not be read or changed.
    """

    done: int = 0
    busy: int = 0
    unknown: list[str] = dataclasses.field(default_factory=list)
    problems: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class _Row:
    """A server as Nova's API database knows it."""

    uuid: str
    cell: str | None
    data: dict[str, Any]

    @property
    def hints(self) -> dict[str, Any]:
        return self.data.get('scheduler_hints') or {}

    @property
    def record(self) -> Placed | None:
        values = self.hints.get(hint_of(self.uuid))
        return decode(self.uuid, values) if values else None

    @property
    def spec(self) -> objects.RequestSpec:
        """Its request spec, of which only the image is read."""
        spec = objects.RequestSpec(instance_uuid=self.uuid)
        image = self.data.get('image')
        if image:
            spec.image = objects.ImageMeta.obj_from_primitive(image)
        return spec


def record(most: int | None = None) -> Count:
    """Record what servers were placed with that have no record.

    :param most: The largest number of servers to record; None for all.
    """
    count = Count()
    for rows in _batches(count):
        by_cell: dict[str | None, list[_Row]] = {}
        for row in rows:
            by_cell.setdefault(row.cell, []).append(row)
        for cell, of_cell in by_cell.items():
            if cell is None:
                # It was never scheduled.
                continue
            try:
                found = _in_cell(cell, of_cell, count)
            except exception.IsolateAggregatesError as exc:
                count.problems.append(f'{len(of_cell)} servers: {exc}')
                continue
            for row, server in found:
                if count.done == most:
                    return count
                _change(count, row.uuid, functools.partial(_set, row, server))
    return count


def forget(most: int | None = None) -> Count:
    """Remove all records of what servers were placed with.

    :param most: The largest number of servers to change; None for all.
    """
    count = Count()
    for rows in _batches(count):
        for row in rows:
            if hint_of(row.uuid) not in row.hints:
                continue
            if count.done == most:
                return count
            _change(count, row.uuid, functools.partial(_remove, row.uuid))
    return count


def _set(row: _Row, server: Placed, stored: dict[str, Any]) -> bool:
    """Add a record, unless the server was placed or rebuilt meanwhile."""
    name = hint_of(row.uuid)
    hints = placed.hints_of(stored)
    if hints.get(name) != row.hints.get(name) or stored.get(
        'image'
    ) != row.data.get('image'):
        return False
    hints[name] = encode(server)
    return True


def _remove(uuid: str, stored: dict[str, Any]) -> bool:
    return placed.hints_of(stored).pop(hint_of(uuid), None) is not None


def _change(
    count: Count, uuid: str, change: Callable[[dict[str, Any]], bool]
) -> None:
    try:
        count.done += placed.edit(uuid, change)
    except exception.IsolateAggregatesError as exc:
        count.problems.append(f'server {uuid}: {exc}')


def _batches(count: Count) -> Iterator[list[_Row]]:
    """Yield all servers that are not being deleted."""
    last = 0
    statement = (
        sa.select(
            _SPECS.c.id,
            _SPECS.c.instance_uuid,
            _SPECS.c.spec,
            _CELLS.c.uuid,
        )
        .join(_MAPPINGS, _MAPPINGS.c.instance_uuid == _SPECS.c.instance_uuid)
        .outerjoin(_CELLS, _CELLS.c.id == _MAPPINGS.c.cell_id)
        .where(
            sa.func.coalesce(_MAPPINGS.c.queued_for_delete, sa.false())
            == sa.false()
        )
        .order_by(_SPECS.c.id)
        .limit(_BATCH)
    )
    while True:
        with (
            database.translated(),
            # A reader may be connected to a replica, which lags behind.
            api_db.context_manager.writer.get_engine().connect() as connection,
        ):
            rows = connection.execute(
                statement.where(_SPECS.c.id > last)
            ).fetchall()
        if not rows:
            return
        last = rows[-1].id
        yield [
            _Row(uuid, cell, data)
            for _, uuid, text, cell in rows
            if (data := _parsed(uuid, text, count)) is not None
        ]


def _parsed(uuid: str, text: str, count: Count) -> dict[str, Any] | None:
    """Return the fields of a stored request spec; None if it is damaged."""
    try:
        data = json.loads(text)['nova_object.data']
    except (ValueError, LookupError, TypeError):
        data = None
    if not isinstance(data, dict):
        count.problems.append(
            f"server {uuid}: its request spec in Nova's API database is no "
            'request spec; Nova cannot move this server either.'
        )
        return None
    return data


def _in_cell(
    cell: str, rows: Sequence[_Row], count: Count
) -> list[tuple[_Row, Placed]]:
    """Return what servers of a cell were placed with that have no record.

    :raises ServiceError: if the database of the cell cannot be read.
    """
    context = nova_context.get_admin_context()
    with database.translated():
        mapping = objects.CellMapping.get_by_uuid(context, cell)
        if mapping.is_cell0():
            return []
        with (
            nova_context.target_cell(context, mapping) as in_cell,
            main_db.get_context_manager(in_cell).reader.using(
                in_cell
            ) as session,
        ):
            return [*_unrecorded(session, rows, count)]


def _unrecorded(
    session: orm.Session, rows: Sequence[_Row], count: Count
) -> Iterator[tuple[_Row, Placed]]:
    uuids = [row.uuid for row in rows]
    # Read before the state of the servers: one that is rebuilt since before
    # this was read is seen to be busy, or to have been rebuilt.
    metadata: dict[str, dict[str, str | None]] = {}
    for entry in session.execute(
        sa.select(
            _METADATA.instance_uuid, _METADATA.key, _METADATA.value
        ).where(_METADATA.instance_uuid.in_(uuids), _METADATA.deleted == 0)
    ):
        metadata.setdefault(entry.instance_uuid, {})[entry.key] = entry.value
    servers = {
        server.uuid: server
        for server in session.execute(
            sa.select(
                _SERVER.uuid, _SERVER.image_ref, _SERVER.task_state
            ).where(_SERVER.uuid.in_(uuids), _SERVER.deleted == 0)
        )
    }
    rebuilds = images.refusals(session, uuids)
    for row in rows:
        server = servers.get(row.uuid)
        if server is None:
            continue
        image = '' if row.data.get('is_bfv') else server.image_ref or ''
        try:
            record = row.record
        except exception.RequestRefused as exc:
            # A newer version may have written it.
            count.problems += exc.reasons
            continue
        if record is not None and not record.is_of(image):
            # Another scheduler has accepted a rebuild.
            record = None
        if record is not None and (
            record.properties is not None or row.uuid in rebuilds
        ):
            # What Nova has after a rebuild may not have been accepted.
            continue
        if server.task_state:
            count.busy += 1
            continue
        properties = images.properties_of(metadata.get(row.uuid, {}))
        if record is not None:
            yield row, record._replace(properties=properties)
            continue
        spec = row.spec
        named = images.named_image(spec)
        if images.is_refused(image, named, rebuilds.get(row.uuid, [])):
            count.unknown.append(row.uuid)
            continue
        yield row, Placed(named, tuple(images.traits_of(spec)), properties)


def _report(verb: str, count: Count, most: int | None) -> int:
    """Print what was done, and return the exit status."""
    print(f'{count.done} servers {verb}.')
    if count.unknown:
        print(
            f'{len(count.unknown)} servers have no record, because a rebuild '
            'of them was refused before, so that nothing tells what they were '
            'placed with. Rebuild them from an image that they may use, or '
            'name the host when you move them: '
            f'{", ".join(count.unknown[:_NAMED])}'
            f'{", ..." if len(count.unknown) > _NAMED else ""}'
        )
    for problem in count.problems:
        print(escaped(problem), file=sys.stderr)
    if count.problems:
        print('Run it again when this is repaired.', file=sys.stderr)
        return FAILED
    if count.busy:
        print(f'{count.busy} servers were left out, as an operation goes on.')
    if count.busy or (most is not None and count.done >= most):
        print('Run it again until the status is 0.')
        return MORE
    return DONE


def _add_commands(subparsers: Any) -> None:
    for name, text in (
        ('record', 'Record what servers without a record were placed with.'),
        ('forget', 'Remove all records, before the package is uninstalled.'),
    ):
        parser = subparsers.add_parser(name, help=text, description=text)
        parser.add_argument(
            '--max-count',
            type=int,
            metavar='<number>',
            help='The largest number of servers to change; all by default.',
        )


def main(argv: list[str] | None = None) -> int:
    """Run the program.

    :param argv: The arguments, without the name of the program.
    """
    return programs.run(_run, argv, MISUSED)


def _run(argv: Sequence[str]) -> int:
    conf = nova.conf.CONF
    conf.register_cli_opt(cfg.SubCommandOpt('command', handler=_add_commands))
    programs.read(conf, argv, 'nova', 'nova-scheduler')
    most = conf.command.max_count
    if most is not None and most < 1:
        print('--max-count must be a positive integer.', file=sys.stderr)
        return MISUSED
    if not conf.api_database.connection:
        print(
            '[api_database] connection is not set in the files that were '
            f'read: {", ".join(conf.config_file) or "none"}; name those of '
            'nova-scheduler with --config-file.',
            file=sys.stderr,
        )
        return MISUSED
    objects.register_all()
    # Nova's cells have message queues too; nothing is sent.
    rpc.set_defaults(control_exchange='nova')
    try:
        rpc.init(conf)
        with database.translated():
            source.configure(conf)
            main_db.configure(conf)
        if conf.command.name == 'record':
            return _report('recorded', record(most), most)
        return _report('changed', forget(most), most)
    except (
        exception.IsolateAggregatesError,
        nova_exception.NovaException,
        rpc.messaging.MessagingException,
    ) as exc:
        print(exc, file=sys.stderr)
        return FAILED


if __name__ == '__main__':
    sys.exit(main())
