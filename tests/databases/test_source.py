# SPDX-License-Identifier: Apache-2.0
"""The source ``nova`` reads the current state of Nova's database."""

import datetime
import re

from nova import context as nova_context
from nova import objects
from nova.db.api import api as api_db
from nova.db.api import models
import pytest
import sqlalchemy as sa

from isolate_aggregates import exception

LOCK = {'trait:CUSTOM_LICENSED': 'required'}
# How the driver puts it, and no more: the rest may have an address in it.
UNREADABLE = (
    r"Nova's API database cannot be read: "
    r'(DBConnectionError|OperationalError)'
)


def test_aggregates_are_read_as_nova_wrote_them(database):
    metadata = {**LOCK, 'availability_zone': 'zürich', 'note': ' a b '}
    written = database.aggregate('win', metadata, ['host1', 'host2'])
    database.aggregate('empty')

    source = database.source()
    win, empty = source.aggregates()
    assert (win.uuid, win.name, win.id) == (written.uuid, 'win', written.id)
    assert win.metadata == metadata
    assert win.availability_zone == 'zürich'
    assert (empty.name, empty.metadata) == ('empty', {})
    assert source.aggregates_of(['host1', 'host3']) == {
        'host1': {win.uuid},
        'host3': frozenset(),
    }


def test_each_change_is_seen_and_no_other(database):
    aggregate = database.aggregate('win')
    source = database.source()
    plain = source.aggregates()
    assert source.aggregates() is plain

    aggregate.update_metadata(LOCK)
    [win] = locked = source.aggregates()
    assert win.metadata == LOCK
    assert source.aggregates() is locked

    aggregate.update_metadata(dict.fromkeys(LOCK))
    assert [a.metadata for a in source.aggregates()] == [{}]


@pytest.mark.on('mariadb', 'postgresql')
def test_a_transaction_that_is_open_does_not_hide_a_fresh_tag(database):
    """InnoDB shows a transaction what there was at its first question."""
    aggregate = database.aggregate('win')
    reader = nova_context.get_admin_context()
    tags = sa.select(models.AggregateMetadata.value)
    source = database.source()
    source.aggregates()
    with api_db.context_manager.reader.using(reader):
        assert reader.session.execute(tags).all() == []
        aggregate.update_metadata(LOCK)
        [win] = source.aggregates()
        before = reader.session.execute(tags).all()
    assert win.metadata == LOCK
    if database.kind == 'mariadb':
        assert before == [], 'the other transaction would see it as well'


def test_the_slave_connection_is_not_used(database):
    database.aggregate('win', LOCK, ['host1'])
    source = database.source()
    assert len(source.aggregates()) == 1
    assert source.aggregates_of(['host1'])['host1']
    # Whoever does ask it learns nothing.
    asynchronous = nova_context.get_admin_context()
    with api_db.context_manager.reader.async_.using(asynchronous):
        url = asynchronous.session.get_bind().url
        assert url.database.endswith('slave.sqlite')


@pytest.mark.on('mariadb', 'postgresql')
def test_a_restarted_server_is_reconnected(database):
    database.aggregate('win', LOCK)
    source = database.source()
    before = source.aggregates()

    database.server.stop()
    with pytest.raises(exception.ServiceError) as caught:
        source.aggregates()
    assert re.fullmatch(UNREADABLE, str(caught.value))

    # The pool still has connections to the server that is gone.
    database.server.start()
    assert source.aggregates() is before

    database.server.stop()
    database.server.start()
    assert source.aggregates_of(['host1']) == {'host1': frozenset()}


@pytest.mark.on('mariadb')
def test_a_host_in_another_case_is_kept_in_its_aggregate(database):
    """Nova takes no such name any more; earlier ones may have."""
    win = database.aggregate('win', LOCK, ['HOST1'])
    aggregates = database.source().aggregates_of(['host1', 'host2'])
    assert aggregates == {'host1': {win.uuid}, 'host2': frozenset()}


@pytest.mark.on('mariadb')
def test_hosts_that_differ_only_in_case_are_distinct(database):
    upper = database.aggregate('upper', LOCK, ['HOST1'])
    lower = database.aggregate('lower', LOCK, ['host1'])
    aggregates = database.source().aggregates_of(['host1', 'HOST1'])
    assert aggregates == {'HOST1': {upper.uuid}, 'host1': {lower.uuid}}


def test_novas_objects_give_the_same_aggregates(database):
    database.aggregate('a', LOCK, ['host1'])
    database.aggregate('b', {'reservation:1': ''}, ['host1', 'host2'])
    context = nova_context.get_admin_context()
    told = {
        (a.uuid, a.name, tuple(a.metadata.items()))
        for a in objects.AggregateList.get_all(context)
    }
    read = {
        (a.uuid, a.name, tuple(a.metadata.items()))
        for a in database.source().aggregates()
    }
    assert read == told


BOOT = datetime.datetime(2026, 11, 26, 12, 30, 15, 400_000)
SECOND = datetime.timedelta(seconds=1)
