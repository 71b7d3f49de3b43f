# SPDX-License-Identifier: Apache-2.0
"""Measures the records of what servers were placed with.

    python tools/benchmarks/records.py [--csv FILE] [--databases NAME ...]
        [servers ...]

*claim* is what a record adds to a boot, and *nova* what it takes Nova to load
and save the request spec of a server: milliseconds of processor time of this
process, both in turn. *clock* is how long a claim waits for the record, with
the time of the database. *select* is the processor time of a transaction that
only reads the request spec, through Nova's engine: no way to change it costs
less than this and a second statement. *again* is the processor time if the
server has the record already. *fill* is how many seconds of processor time
``isolate-aggregates-manage record`` takes for all servers, *second* a second
run of it, *forget* the removal of all, and *memory* how many MiB the process
grows meanwhile. SQLite is in files, which are opened anew for each
transaction. A temporary MariaDB and PostgreSQL run on this machine; those that
are not installed are left out.
"""

from collections.abc import Callable, Sequence
import dataclasses
import multiprocessing
import pathlib
import resource
import statistics
import sys
import tempfile
import time
import uuid

from nova import context as nova_context
from nova import objects, rpc
import nova.conf
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import models
from oslo_serialization import jsonutils
import sqlalchemy as sa
import table

from isolate_aggregates.nova import manage, placed
from isolate_aggregates.request.placed import Placed

ROOT = pathlib.Path(__file__).parents[2]
sys.path += [str(ROOT / 'tests' / name) for name in ('databases', 'support')]

objects.register_all()

from nova_database import KINDS, NovaDatabase  # noqa: E402

SERVERS = (1_000, 100_000)
RUNS = 300
# What is read there.
IN_CELL = (
    models.Instance,
    models.InstanceSystemMetadata,
    models.InstanceAction,
    models.InstanceActionEvent,
)
IMAGE = str(uuid.uuid4())
PROPERTIES = {f'hw_property_{number}': 'value' for number in range(10)}
RECORD = Placed(IMAGE, ('CUSTOM_LICENSED',), PROPERTIES)


@dataclasses.dataclass(frozen=True)
class Row:
    """Milliseconds of processor time of a claim; seconds of all servers."""

    database: str
    servers: int
    claim: float
    clock: float
    select: float
    again: float
    nova: float
    fill: float
    second: float
    forget: float
    memory: float

    @property
    def ratio(self) -> float:
        """What a record costs, compared with Nova's load and save."""
        return self.claim / self.nova


def stored_spec() -> str:
    """Return a request spec as Nova stores it."""
    spec = objects.RequestSpec(
        flavor=objects.Flavor(
            id=1,
            flavorid='1',
            name='small',
            memory_mb=1024,
            vcpus=1,
            root_gb=1,
            ephemeral_gb=0,
            swap=0,
            extra_specs={'hw:cpu_policy': 'shared'},
        ),
        image=objects.ImageMeta(
            id=IMAGE,
            properties=objects.ImageMetaProps(
                traits_required=['CUSTOM_LICENSED']
            ),
        ),
        num_instances=1,
        numa_topology=None,
        pci_requests=None,
        is_bfv=False,
        availability_zone=None,
        project_id='p' * 32,
        user_id='u' * 32,
        scheduler_hints={},
    )
    return jsonutils.dumps(spec.obj_to_primitive())


def insert(number: int, cell: sa.Engine, connection: str) -> list[str]:
    """Add servers to both databases, and return their ids."""
    mapping = {
        'id': 1,
        'uuid': str(uuid.uuid4()),
        'name': 'cell1',
        'transport_url': 'none:///',
        'database_connection': connection,
    }
    with api_db.context_manager.writer.get_engine().begin() as api:
        api.execute(sa.insert(api_models.CellMapping), [mapping])
    uuids = [str(uuid.uuid4()) for _ in range(number)]
    text = stored_spec()
    # In parts, or the memory that this takes hides that of what is measured.
    for first in range(0, number, 500):
        insert_some(uuids[first : first + 500], text, cell)
    return uuids


def insert_some(uuids: Sequence[str], text: str, cell: sa.Engine) -> None:
    """Add some servers."""
    with api_db.context_manager.writer.get_engine().begin() as api:
        api.execute(
            sa.insert(api_models.RequestSpec),
            [{'instance_uuid': one, 'spec': text} for one in uuids],
        )
        api.execute(
            sa.insert(api_models.InstanceMapping),
            [
                {'instance_uuid': one, 'cell_id': 1, 'project_id': 'p'}
                for one in uuids
            ],
        )
    with cell.begin() as main:
        main.execute(
            sa.insert(models.Instance.__table__),
            [{'uuid': one, 'image_ref': IMAGE, 'deleted': 0} for one in uuids],
        )
        main.execute(
            sa.insert(models.InstanceSystemMetadata.__table__),
            [
                {
                    'instance_uuid': one,
                    'key': f'image_{name}',
                    'value': value,
                    'deleted': 0,
                }
                for one in uuids
                for name, value in PROPERTIES.items()
            ],
        )


def milliseconds(what: Callable[..., object], *arguments: object) -> float:
    """Return the processor time of a call."""
    begin = time.process_time()
    what(*arguments)
    return 1000 * (time.process_time() - begin)


def request(server: str, has_record: bool) -> objects.RequestSpec:
    """Return the request of a server, for which a host was found."""
    spec = objects.RequestSpec(instance_uuid=server, scheduler_hints={})
    if has_record:
        spec.scheduler_hints = {placed.placed.hint(server): ENCODED}
    placed.remember(spec, RECORD)
    return spec


ENCODED = placed.placed.encode(RECORD)


def read_only(server: str) -> None:
    """Read the text of a request spec."""
    with api_db.context_manager.writer.get_engine().begin() as connection:
        connection.execute(TEXT, {'server': server}).scalar()


TEXT = sa.select(api_models.RequestSpec.spec).where(
    api_models.RequestSpec.instance_uuid == sa.bindparam('server')
)


def by_nova(server: str) -> None:
    """Load and save a request spec."""
    spec = objects.RequestSpec.get_by_instance_uuid(
        nova_context.get_admin_context(), server
    )
    spec.availability_zone = 'zone'
    spec.save()


def measure(number: int, kind: str) -> Row:
    """Measure with a number of servers on a kind of database."""
    # The message queue of a cell is looked up with its database.
    conf = nova.conf.CONF
    conf([], project='nova', default_config_files=[], default_config_dirs=[])
    rpc.set_defaults(control_exchange='nova')
    rpc.init(conf)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # A server that refuses root runs as another user.
        folder.chmod(0o755)
        api = NovaDatabase(kind, folder / kind, KINDS[kind])
        try:
            with api.in_use():
                return measured(number, kind, cell_of(api, folder))
        finally:
            api.close()


def cell_of(api: NovaDatabase, folder: pathlib.Path) -> str:
    """Create the database of a cell beside that of the API; return its URL."""
    if api.server is None:
        url = f'sqlite:///{folder / "cell.sqlite"}'
    else:
        api.server.create_database('nova_cell', api.server.OPTIONS)
        url = api.server.url('nova_cell').render_as_string(False)
    engine = sa.create_engine(url)
    models.BASE.metadata.create_all(engine, [one.__table__ for one in IN_CELL])
    engine.dispose()
    return url


def measured(number: int, kind: str, connection: str) -> Row:
    """Measure with the databases that are in use."""
    cell = sa.create_engine(connection)
    try:
        uuids = insert(number, cell, connection)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        fill = milliseconds(manage.record) / 1000
        second = milliseconds(manage.record) / 1000
        forget = milliseconds(manage.forget) / 1000
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        claims, clock, selects, again, nova = [], [], [], [], []
        for server in uuids[:RUNS]:
            first, repeated = request(server, False), request(server, True)
            begin = time.monotonic()
            claims.append(milliseconds(placed.record, first, server))
            clock.append(1000 * (time.monotonic() - begin))
            selects.append(milliseconds(read_only, server))
            again.append(milliseconds(placed.record, repeated, server))
            nova.append(milliseconds(by_nova, server))
    finally:
        cell.dispose()
    return Row(
        kind,
        number,
        *map(statistics.median, (claims, clock, selects, again, nova)),
        fill,
        second,
        forget,
        memory / 1024,
    )


def main() -> None:
    """Measure, and print the figures."""
    parser = table.parser('servers', SERVERS)
    parser.add_argument(
        '--databases', nargs='+', choices=KINDS, default=[*KINDS]
    )
    arguments = parser.parse_args()
    rows = []
    for kind in arguments.databases:
        if KINDS[kind] is not None and not KINDS[kind].is_installed():
            print(f'{kind} is not installed')
            continue
        for servers in arguments.servers:
            # The memory is that of one measurement.
            with multiprocessing.Pool(1) as pool:
                rows.append(pool.apply(measure, [servers, kind]))
    table.report(rows, arguments.csv)


if __name__ == '__main__':
    main()
