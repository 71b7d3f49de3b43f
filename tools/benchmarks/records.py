# SPDX-License-Identifier: Apache-2.0
"""Measures the records of what servers were placed with.

    python tools/benchmarks/records.py [--csv FILE] [servers ...]

*claim* is what a record adds to a boot, and *nova* what it takes Nova to load
and save the request spec of a server: milliseconds of processor time, both in
turn. *again* is what it adds if the server has the record already. *fill* is
how many seconds of processor time ``isolate-aggregates-manage record`` takes
for all servers, *second* a second run of it, *forget* the removal of all, and
*memory* how many MiB the process grows meanwhile. The databases are SQLite in
files.
"""

from collections.abc import Callable, Sequence
import dataclasses
import pathlib
import resource
import statistics
import tempfile
import time
import uuid

from filters import database
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

SERVERS = (1_000, 100_000)
RUNS = 300
IMAGE = str(uuid.uuid4())
PROPERTIES = {f'hw_property_{number}': 'value' for number in range(10)}
RECORD = Placed(IMAGE, ('CUSTOM_LICENSED',), PROPERTIES)


@dataclasses.dataclass(frozen=True)
class Row:
    """Milliseconds of processor time of a claim; seconds of all servers."""

    servers: int
    claim: float
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


def boot(server: str, has_record: bool) -> None:
    """Do what precedes a claim."""
    spec = objects.RequestSpec(instance_uuid=server, scheduler_hints={})
    if has_record:
        spec.scheduler_hints = {placed.placed.hint(server): ENCODED}
    placed.remember(spec, RECORD)
    placed.record(spec, server)


ENCODED = placed.placed.encode(RECORD)


def by_nova(server: str) -> None:
    """Load and save a request spec."""
    spec = objects.RequestSpec.get_by_instance_uuid(
        nova_context.get_admin_context(), server
    )
    spec.availability_zone = 'zone'
    spec.save()


def measure(number: int) -> Row:
    """Measure with a number of servers."""
    with (
        tempfile.TemporaryDirectory() as folder,
        database(f'sqlite:///{pathlib.Path(folder) / "api.sqlite"}'),
    ):
        connection = f'sqlite:///{pathlib.Path(folder) / "cell.sqlite"}'
        cell = sa.create_engine(connection)
        models.BASE.metadata.create_all(cell)
        uuids = insert(number, cell, connection)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        fill = milliseconds(manage.record) / 1000
        second = milliseconds(manage.record) / 1000
        forget = milliseconds(manage.forget) / 1000
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        claims, again, nova = [], [], []
        for server in uuids[:RUNS]:
            claims.append(milliseconds(boot, server, False))
            again.append(milliseconds(boot, server, True))
            nova.append(milliseconds(by_nova, server))
    return Row(
        number,
        *map(statistics.median, (claims, again, nova)),
        fill,
        second,
        forget,
        memory / 1024,
    )


def main() -> None:
    """Measure, and print the figures."""
    arguments = table.parser('servers', SERVERS).parse_args()
    # The message queue of a cell is looked up with its database.
    conf = nova.conf.CONF
    conf([], project='nova', default_config_files=[], default_config_dirs=[])
    rpc.set_defaults(control_exchange='nova')
    rpc.init(conf)
    table.report([measure(one) for one in arguments.servers], arguments.csv)


if __name__ == '__main__':
    main()
