# SPDX-License-Identifier: Apache-2.0
"""The source ``nova`` reads whole tables as texts, and loses nothing."""

from concurrent import futures
import contextlib
import itertools
import logging
import types

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
import nova.conf
from nova.db.api import api as api_db
from nova.db.api import models
from oslo_config import fixture as config_fixture
from oslo_db import exception as db_exception
from oslo_utils import uuidutils
import pytest
import sqlalchemy as sa
import uninstalling

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.nova import registration
from isolate_aggregates.nova import source as nova_source

LOCK = {'trait:CUSTOM_LICENSED': 'required'}
ROWS = 'is read row by row for the next 60 seconds'


def rows():
    """Return the aggregates as the rows of the tables have them."""
    return nova_source._from_rows(
        *nova_source._read(
            nova_source._ALL_METADATA, nova_source._ALL_AGGREGATES
        )
    )


def write(model, **values):
    """Write a row that Nova's API might refuse."""
    with api_db.get_engine().begin() as connection:
        connection.execute(sa.insert(model), values)


def write_aggregate(number, name):
    """Write an aggregate."""
    uuid = uuidutils.generate_uuid()
    write(models.Aggregate, id=number, uuid=uuid, name=name)
    return uuid


@contextlib.contextmanager
def sent():
    """Hear the statements that are sent to the database."""
    heard = []

    def hear(connection, cursor, statement, *others):
        # oslo.db begins the transactions of SQLite by itself.
        if statement != 'BEGIN':
            heard.append(statement.split()[0])

    engine = api_db.get_engine()
    sa.event.listen(engine, 'before_cursor_execute', hear)
    try:
        yield heard
    finally:
        sa.event.remove(engine, 'before_cursor_execute', hear)


@pytest.fixture
def warnings(caplog, monkeypatch):
    """Return the warnings of the source."""
    logger = logging.getLogger(nova_source.__name__)
    monkeypatch.setattr(logger, 'disabled', False)
    monkeypatch.setattr(logging.root.manager, 'disable', logging.NOTSET)
    with caplog.at_level(logging.WARNING, nova_source.__name__):
        yield lambda: [
            record.getMessage()
            for record in caplog.records
            if record.name == nova_source.__name__
        ]


# Characters of each kind, those included by which the texts are taken apart;
# but neither NUL, which PostgreSQL refuses, nor what utf8mb3 does not have.
texts = st.text(
    st.sampled_from('aA :_%\'"\\,;\n\t\x1e\x1f\x7f\u200bßéİK\u017f東\uffff'),
    max_size=6,
)
keys = st.tuples(
    st.sampled_from(['trait:X', 'Trait:X', 'r:', ' ', '']), texts
).map(''.join)
values = st.sampled_from(['required', 'Required ', '1']) | texts
clouds = st.lists(
    st.tuples(texts, st.dictionaries(keys, values, max_size=3)), max_size=4
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(clouds)
def test_texts_give_the_same_as_rows(database, cloud):
    database.clear()
    for number, (name, metadata) in enumerate(cloud, 1):
        write_aggregate(number, f'{number}{name}')
        for key, value in metadata.items():
            # MariaDB takes some keys for the same.
            with contextlib.suppress(db_exception.DBDuplicateEntry):
                write(
                    models.AggregateMetadata,
                    aggregate_id=number,
                    key=key,
                    value=value,
                )
    source = database.source()
    aggregates = source.aggregates()
    assert aggregates == rows()
    assert len(aggregates) == len(cloud)
    assert source.aggregates() is aggregates


def test_only_the_zone_is_left_out_and_no_key_that_resembles_it(database):
    """A filter may read any of the other keys as a lock."""
    kept = (
        'Availability_Zone',
        'AVAILABILITY_ZONE',
        'availability_zone ',
        'availability_z\u00f5ne',
        'availability_zone\u200b',
        'availability',
        '',
    )
    for number, key in enumerate(('availability_zone', *kept), 1):
        write_aggregate(number, f'{number}')
        write(
            models.AggregateMetadata, aggregate_id=number, key=key, value='v'
        )
    source = database.source()
    assert source.aggregates()[0].availability_zone == 'v'
    source = database.source()
    source.leave_out_zones()
    aggregates = source.aggregates()
    assert [dict(a.metadata) for a in aggregates] == [
        {},
        *({key: 'v'} for key in kept),
    ]
    assert aggregates[0].availability_zone is None
    # Rows are read as a name has a control character.
    write_aggregate(99, 'a\x1fb')
    by_rows = source.aggregates()
    assert by_rows[:-1] == aggregates
    assert by_rows[-1].name == 'a\x1fb'


@pytest.mark.parametrize(
    ('filters', 'reads_zones'),
    [
        (['isolate_aggregates', 'reservation_prefix'], False),
        (['isolate_aggregates', 'blazar_reservation'], True),
    ],
)
def test_the_scheduler_reads_zones_only_for_a_filter(
    database, filters, reads_zones
):
    database.aggregate('pool', {'availability_zone': 'blazar_1', **LOCK})
    seen = []
    with (
        config_fixture.Config(nova.conf.CONF) as fixture,
        pytest.MonkeyPatch().context() as patch,
    ):
        ia_conf.register_opts(fixture.conf)
        fixture.config(
            request_filters=filters,
            aggregate_source=None,
            group=ia_conf.GROUP,
        )
        make = registration.IndexCache

        def cache(read, **options):
            seen.append(read)
            return make(read, **options)

        patch.setattr(registration, 'IndexCache', cache)
        registration.install()
        uninstalling.uninstall()
    # The last one is for requests.
    [aggregate] = seen[-1]()
    assert (aggregate.availability_zone == 'blazar_1') is reads_zones
    assert aggregate.metadata.items() >= LOCK.items()


# What Nova's own filter reads alike on all databases.
exact = st.dictionaries(
    st.sampled_from(['trait:CUSTOM_X', 'trait:CUSTOM_Y', 'rack']),
    st.sampled_from(['required', 'forbidden', '']),
)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(exact, max_size=4),
    st.sets(st.sampled_from(['CUSTOM_X', 'CUSTOM_Y'])),
)
def test_the_same_aggregates_are_closed_as_by_nova(database, cloud, traits):
    database.clear()
    for number, metadata in enumerate(cloud):
        database.aggregate(f'{number}', metadata)
    assert database.closed(*traits) == database.closed_in_tree(*traits)


def test_each_reading_sends_one_statement(database):
    database.aggregate('win', LOCK)
    source = database.source()
    source.aggregates()
    with sent() as statements:
        source.aggregates()
    assert statements == ['SELECT']


@pytest.mark.on('mariadb')
def test_a_connection_is_set_up_once_not_to_truncate_texts(database):
    database.aggregate('win', LOCK)
    api_db.get_engine().dispose()
    with sent() as statements:
        database.source().aggregates()
        database.source().aggregates()
    assert statements == ['SET', 'SELECT', 'SELECT']


@pytest.mark.on('mariadb')
def test_a_truncated_text_is_detected(database, warnings):
    for number in range(3):
        database.aggregate(f'win-{number}', {**LOCK, 'note': f'{number}é'})
    source = database.source()
    expected = source.aggregates()
    rows = nova_source._read_texts(True, [])
    longest = max(len(text.encode()) for *_, text in rows)
    assert [a.name for a in expected] == ['win-0', 'win-1', 'win-2']
    # From the minimum of the server to a sufficient value.
    for most in itertools.count(4):
        with api_db.get_engine().connect() as connection:
            connection.execute(
                sa.text(f'SET SESSION group_concat_max_len = {most}')
            )
        heard = len(warnings())
        assert database.source().aggregates() == expected, most
        if len(warnings()) == heard:
            break
        assert ROWS in warnings()[-1]
    assert most == longest


@pytest.mark.on('mariadb')
def test_rows_are_read_if_a_proxy_refuses_the_setting(
    database, warnings, monkeypatch
):
    database.aggregate('win', LOCK)
    expected = database.source().aggregates()
    api_db.get_engine().dispose()
    refused = sa.text('SET SESSION refused_by_proxy = 1')
    monkeypatch.setitem(nova_source._RAISE, 'mysql', refused)
    monkeypatch.setitem(nova_source._RAISE, 'mariadb', refused)
    assert database.source().aggregates() == expected
    [warning] = warnings()
    assert ROWS in warning
    assert 'refused_by_proxy' in warning


@pytest.mark.parametrize('uuid', [None, ''])
def test_an_aggregate_without_a_uuid_is_named(database, uuid):
    database.aggregate('win', LOCK)
    write(models.Aggregate, id=9, uuid=uuid, name='old')
    with pytest.raises(exception.ServiceError) as caught:
        database.source().aggregates()
    assert str(caught.value) == (
        "Nova's API database has the aggregate old (id 9) without a uuid; "
        'store one in the column uuid of the table aggregates.'
    )


@pytest.mark.parametrize('character', ['\x1e', '\x1f'])
def test_names_with_the_characters_of_the_texts_are_read_as_rows(
    database, character, warnings
):
    write_aggregate(1, f'a{character}b')
    [aggregates] = database.source().aggregates()
    assert aggregates.name == f'a{character}b'
    assert [ROWS in warning for warning in warnings()] == [True]


def test_an_aggregate_without_a_name_is_not_lost(database):
    """Columns may be NULL, which has no text."""
    write_aggregate(1, None)
    assert [a.name for a in database.source().aggregates()] == [None]


def test_rows_are_read_while_texts_are_not_supported(
    database, warnings, monkeypatch
):
    database.aggregate('win', LOCK)
    now = 0.0
    clock = types.SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr(nova_source, 'time', clock)
    source = database.source()
    aggregates = source.aggregates()
    kind = api_db.get_engine().dialect.name
    with monkeypatch.context() as patch:
        nothing = sa.text('SELECT nothing()')
        patch.setitem(
            nova_source._BY_DIALECT,
            (kind, True),
            nova_source.Statements(nothing, nothing),
        )
        assert source.aggregates() is aggregates
    [warning] = warnings()
    assert ROWS in warning
    # The statement is not supported there.
    assert 'nothing' in warning
    assert '[SQL' not in warning
    with sent() as statements:
        now = 59.9
        assert source.aggregates() is aggregates
        now = 60.0
        assert source.aggregates() is aggregates
    # Two tables row by row, then their digests.
    assert statements == ['SELECT', 'SELECT', 'SELECT']


@pytest.mark.on('mariadb', 'postgresql')
def test_a_broken_connection_is_replaced(database):
    database.aggregate('win', LOCK)
    source = database.source()
    aggregates = source.aggregates()
    with api_db.get_engine().connect() as connection:
        if database.kind == 'mariadb':
            own, end = 'SELECT connection_id()', 'KILL {}'
            alive = (
                'SELECT count(*) FROM information_schema.processlist '
                'WHERE id = {}'
            )
        else:
            own, end = (
                'SELECT pg_backend_pid()',
                'SELECT pg_terminate_backend({})',
            )
            alive = 'SELECT count(*) FROM pg_stat_activity WHERE pid = {}'
        number = connection.scalar(sa.text(own))
    administrator = database.server._engine()
    with administrator.connect() as connection:
        connection = connection.execution_options(isolation_level='AUTOCOMMIT')
        connection.execute(sa.text(end.format(number)))
        # The server ends it when it next looks.
        while connection.scalar(sa.text(alive.format(number))):
            pass
    administrator.dispose()

    assert source.aggregates() is aggregates
    if database.kind == 'mariadb':
        with api_db.get_engine().connect() as connection:
            assert connection.scalar(sa.text(own)) != number
            most = sa.text('SELECT @@SESSION.group_concat_max_len')
            assert connection.scalar(most) == 2**28


@pytest.mark.on('mariadb', 'postgresql')
def test_a_reading_is_one_consistent_snapshot(database):
    """One locked aggregate replaces another, repeatedly."""

    def replace(times):
        for number in range(2, times):
            with api_db.get_engine().begin() as connection:
                for model in (models.AggregateMetadata, models.Aggregate):
                    connection.execute(sa.delete(model))
                uuid = uuidutils.generate_uuid()
                connection.execute(
                    sa.insert(models.Aggregate),
                    {'id': number, 'uuid': uuid, 'name': 'win'},
                )
                tag = {'key': 'trait:X', 'value': 'required'}
                connection.execute(
                    sa.insert(models.AggregateMetadata),
                    {'aggregate_id': number, **tag},
                )

    replace(3)
    source = database.source()
    seen = set()
    with futures.ThreadPoolExecutor(1) as pool:
        replacing = pool.submit(replace, 200)
        while not replacing.done():
            [aggregate] = source.aggregates()
            assert aggregate.metadata == {'trait:X': 'required'}
            seen.add(aggregate.uuid)
        replacing.result()
    assert len(seen) > 3


def test_an_aggregate_that_reuses_an_id_is_a_new_one(database):
    """SQLite reuses the ids of deleted rows."""
    source = database.source()
    uuids = []
    for _ in range(2):
        database.clear()
        uuids.append(write_aggregate(1, 'win'))
        write(
            models.AggregateMetadata,
            id=1,
            aggregate_id=1,
            key='trait:X',
            value='required',
        )
        assert [a.uuid for a in source.aggregates()] == uuids[-1:]


def test_reordered_rows_are_not_a_change(database, monkeypatch):
    source = database.source()
    for number in (1, 2):
        write_aggregate(number, f'{number}')
    aggregates = source.aggregates()
    read = nova_source._read_texts

    def turned(*arguments):
        other, (part, number, _, text) = read(*arguments)
        backwards = '\x1e'.join([*reversed(text.split('\x1e')[:-1]), ''])
        assert backwards != text
        return [other, (part, number, 'another', backwards)]

    source._last = [], aggregates
    monkeypatch.setattr(nova_source, '_read_texts', turned)
    assert source.aggregates() is aggregates


def test_a_table_without_a_digest_is_never_taken_as_unchanged(
    database, monkeypatch, warnings
):
    database.aggregate('win', LOCK)
    source = database.source()
    kind = api_db.get_engine().dialect.name
    monkeypatch.setitem(
        nova_source._DIGESTS, kind, ('CASE WHEN 1 = 0 THEN ', ' END')
    )
    monkeypatch.setitem(
        nova_source._BY_DIALECT,
        (kind, True),
        nova_source.statements(kind, True),
    )
    assert source.aggregates() == rows()
    database.aggregate('other', LOCK)
    assert [a.name for a in source.aggregates()] == ['win', 'other']
    assert [ROWS in warning for warning in warnings()] == [True]


def test_any_change_of_a_row_is_noticed(database):
    """Also one that keeps the number and the length of all rows."""
    write_aggregate(1, 'a')
    write(models.AggregateMetadata, aggregate_id=1, key='trait:X', value='re')
    source = database.source()
    before = source.aggregates()
    assert source.aggregates() is before
    for model, column in (
        (models.Aggregate, 'name'),
        (models.AggregateMetadata, 'key'),
        (models.AggregateMetadata, 'value'),
    ):
        with api_db.get_engine().begin() as connection:
            connection.execute(sa.update(model).values({column: 'é'}))
        after = source.aggregates()
        assert after == rows()
        assert after != before
        before = after


@pytest.mark.parametrize(
    ('number', 'text'),
    [
        (1, None),
        (1, ''),
        (0, '1\x1fk\x1fv\x1e'),
        (2, '1\x1fk\x1fv\x1e2\x1fk\x1fv'),
        (2, '1\x1fk\x1fv\x1e2\x1fk\x1e'),
        # What ends a row, within a value, in place of one that was cut off.
        (2, '1\x1fk\x1fv\x1e1\x1fk\x1fv\x1e2\x1fk'),
    ],
)
def test_an_incomplete_text_gives_no_rows(number, text):
    with pytest.raises(nova_source._NoTextsError):
        nova_source._split(number, 'digest', text)


def test_a_text_is_split_into_rows():
    assert nova_source._split(0, None, None) == []
    rows = nova_source._split(2, 'digest', '1\x1fk\x1fv\x1e2\x1f\x1f\x1e')
    assert rows == [('1', 'k', 'v'), ('2', '', '')]


def test_unchanged_aggregates_are_reused(database):
    for name in ('a', 'b', 'c'):
        database.aggregate(name, LOCK)
    source = database.source()
    before = source.aggregates()
    aggregate = database.aggregate('d')
    after = source.aggregates()
    assert [a is b for a, b in zip(before, after, strict=False)] == [True] * 3
    aggregate.update_metadata(LOCK)
    last = source.aggregates()
    assert last[3].metadata == LOCK
    assert last[3] is not after[3]
    assert last[:3] == after[:3]
