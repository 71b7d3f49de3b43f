# SPDX-License-Identifier: Apache-2.0
"""The records of what servers were placed with, on each kind of database."""

from concurrent import futures
import contextlib
import json
import threading
import uuid

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models
import nova_flavors
import pytest
import sqlalchemy as sa

from isolate_aggregates import exception
from isolate_aggregates.nova import manage, placed
from isolate_aggregates.request.placed import Placed, encode, hint

IMAGE = '00000000-0000-0000-0000-000000000001'
RECORD = Placed(IMAGE, ('CUSTOM_A',), {'reservation:x': 'é', 'cut': None})
WRITES = 30
# SQLite locks the whole database, for Nova as for us.
SERVERS = pytest.mark.on('mariadb', 'postgresql')


@pytest.fixture
def server(database):
    """Return the id of a server, whose request spec Nova has stored."""
    return make_server()


def make_server(**fields):
    spec = objects.RequestSpec(
        nova_context.get_admin_context(),
        instance_uuid=str(uuid.uuid4()),
        flavor=nova_flavors.small(),
        image=objects.ImageMeta(id=IMAGE, properties=objects.ImageMetaProps()),
        num_instances=1,
        numa_topology=None,
        pci_requests=None,
        availability_zone=None,
        is_bfv=False,
        **fields,
    )
    spec.create()
    return spec.instance_uuid


def stored(server):
    """Return the request spec that Nova reads."""
    return objects.RequestSpec.get_by_instance_uuid(
        nova_context.get_admin_context(), server
    )


def write(server, name=None):
    """Record what a server was placed with."""

    def change(fields):
        placed.hints_of(fields)[name or hint(server)] = encode(RECORD)
        return True

    return placed.edit(server, change)


@pytest.mark.parametrize(
    'hints', [{}, {'scheduler_hints': None}, {'scheduler_hints': {'a': ['b']}}]
)
def test_nova_reads_what_was_recorded(database, hints):
    server = make_server(**hints)
    before = stored(server)
    assert write(server)
    after = stored(server)
    assert placed.recorded(after) == RECORD
    # A later change by Nova keeps it, and ours has changed nothing else.
    after.availability_zone = 'zone'
    after.save()
    assert placed.recorded(stored(server)) == RECORD
    given = hints.get('scheduler_hints') or {}
    assert {**given, hint(server): encode(RECORD)} == after.scheduler_hints
    for field in ('flavor', 'image', 'num_instances', 'is_bfv'):
        assert primitive(getattr(before, field)) == (
            primitive(getattr(after, field))
        )


def primitive(value):
    """Return what an object of Nova has, without which fields have changed.

    Those are listed in the order of a set.
    """
    if not hasattr(value, 'obj_to_primitive'):
        return value
    copied = value.obj_clone()
    copied.obj_reset_changes(recursive=True)
    return copied.obj_to_primitive()


@SERVERS
def test_schedulers_that_write_at_once_lose_nothing(server):
    with futures.ThreadPoolExecutor(4) as threads:
        names = [f'name-{number}' for number in range(WRITES)]
        assert all(threads.map(lambda name: write(server, name), names))
    assert {*stored(server).scheduler_hints} == {*names}


@SERVERS
def test_what_nova_writes_at_the_same_time_is_not_lost(server):
    """As when a user unpins a server while it is moved."""
    is_over = threading.Event()

    def record():
        number = 0
        while not is_over.is_set():
            write(server, f'name-{number % 3}')
            number += 1
        return number

    with futures.ThreadPoolExecutor(1) as threads:
        recording = threads.submit(record)
        try:
            for number in range(WRITES):
                spec = stored(server)
                spec.availability_zone = str(number)
                spec.save()
                assert stored(server).availability_zone == str(number)
        finally:
            is_over.set()
        assert recording.result()


def test_a_server_that_is_deleted_meanwhile_needs_no_record(server):
    stored(server).destroy()
    assert not write(server)
    with pytest.raises(nova_exception.RequestSpecNotFound):
        stored(server)


def test_a_database_that_takes_no_changes_is_an_error(database, server):
    with (
        read_only(database),
        pytest.raises(
            exception.ServiceError,
            match=r"Nova's database cannot be changed: \w+$",
        ),
    ):
        write(server)
    assert placed.recorded(stored(server)) is None
    assert write(server)


READ_ONLY = {
    'sqlite': ('PRAGMA query_only = ON', 'PRAGMA query_only = OFF'),
    'mariadb': (
        'SET SESSION TRANSACTION READ ONLY',
        'SET SESSION TRANSACTION READ WRITE',
    ),
    'postgresql': (
        'SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY',
        'SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE',
    ),
}


@contextlib.contextmanager
def read_only(database):
    """Let the database refuse all changes."""
    engine = api_db.context_manager.writer.get_engine()
    before, after = READ_ONLY[database.kind]

    def begin(connection, record, proxy):
        run(connection, before)

    def end(connection, record):
        if connection is not None:
            run(connection, after)

    sa.event.listen(engine, 'checkout', begin)
    sa.event.listen(engine, 'checkin', end)
    try:
        yield
    finally:
        sa.event.remove(engine, 'checkout', begin)
        sa.event.remove(engine, 'checkin', end)


def run(connection, statement):
    cursor = connection.cursor()
    cursor.execute(statement)
    cursor.close()
    connection.commit()


def test_all_records_are_removed(database):
    servers = [make_server() for _ in range(5)]
    with api_db.get_engine().begin() as connection:
        connection.execute(sa.delete(models.InstanceMapping))
        connection.execute(
            sa.insert(models.InstanceMapping),
            [
                {'instance_uuid': server, 'project_id': 'p', 'user_id': 'u'}
                for server in servers
            ],
        )
    for server in servers:
        write(server)
    assert manage.forget(2).done == 2
    assert manage.forget().done == 3
    assert not manage.forget().done
    assert all(not stored(server).scheduler_hints for server in servers)


def test_a_damaged_request_spec_stops_no_other_server(database):
    damaged, server = make_server(), make_server()
    with api_db.get_engine().begin() as connection:
        connection.execute(sa.delete(models.InstanceMapping))
        connection.execute(
            sa.insert(models.InstanceMapping),
            [
                {'instance_uuid': one, 'project_id': 'p', 'user_id': 'u'}
                for one in (damaged, server)
            ],
        )
        connection.execute(
            sa.update(models.RequestSpec)
            .where(models.RequestSpec.instance_uuid == damaged)
            .values(spec='{}')
        )
    write(server)
    found = manage.forget()
    assert found.done == 1
    [problem] = found.problems
    assert problem.startswith(f'server {damaged}: its request spec in Nova')


def test_a_record_is_text_that_every_database_keeps():
    """Also a MariaDB that takes only the characters of three bytes."""
    assert (
        json.dumps('\U0001f5dd')
        in encode(RECORD._replace(image='\U0001f5dd'))[0]
    )
