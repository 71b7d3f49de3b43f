# SPDX-License-Identifier: Apache-2.0
"""Locks and keys do not depend on the collation of the database.

Nova's own filter compares metadata in the database. MySQL and MariaDB ignore
case and trailing spaces.
"""

import string

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nova import exception as nova_exception
from nova.db.api import api as api_db
from oslo_db import exception as db_exception
import pytest
import sqlalchemy as sa

from isolate_aggregates.aggregates import collation

TRAITS = ('CUSTOM_X', 'CUSTOM_Y', 'custom_x')

# What each tag closes here, with any database, to requests that ask for
# nothing, and to those that ask for CUSTOM_X.
CLOSES = {
    ('trait:CUSTOM_X', 'required'): (True, False),
    ('trait:CUSTOM_X', 'Required'): (True, False),
    ('trait:CUSTOM_X', 'required '): (True, False),
    ('trait:CUSTOM_X', 'requíred'): (True, False),
    ('trait:CUSTOM_X', ' required'): (False, False),
    ('trait:CUSTOM_X', 'forbidden'): (False, False),
    ('trait:custom_x', 'required'): (True, True),
    ('trait:CUSTOM_X ', 'required'): (True, True),
    ('Trait:CUSTOM_X', 'required'): (True, True),
    ('trait:CUSTOM_Ẍ', 'required'): (True, True),
    ('träit:CUSTOM_X', 'required'): (True, True),
    ('traits:CUSTOM_X', 'required'): (False, False),
}

# What Nova's own filter closes: less, or nothing that asks for the trait.
IN_TREE = {
    'mariadb': {
        ('trait:CUSTOM_X', 'Required'): (True, False),
        ('trait:CUSTOM_X', 'required '): (True, False),
        ('trait:CUSTOM_X', 'requíred'): (True, False),
        ('trait:custom_x', 'required'): (True, False),
        ('trait:CUSTOM_X ', 'required'): (True, False),
        ('Trait:CUSTOM_X', 'required'): (True, False),
        ('trait:CUSTOM_Ẍ', 'required'): (True, False),
        ('träit:CUSTOM_X', 'required'): (True, False),
    },
    'postgresql': {
        ('trait:CUSTOM_X', 'Required'): (False, False),
        ('trait:CUSTOM_X', 'required '): (False, False),
        ('trait:CUSTOM_X', 'requíred'): (False, False),
        ('Trait:CUSTOM_X', 'required'): (False, False),
        ('träit:CUSTOM_X', 'required'): (False, False),
    },
    'sqlite': {
        ('trait:CUSTOM_X', 'Required'): (False, False),
        ('trait:CUSTOM_X', 'required '): (False, False),
        ('trait:CUSTOM_X', 'requíred'): (False, False),
        ('träit:CUSTOM_X', 'required'): (False, False),
    },
}


def test_a_tag_locks_the_same_with_each_database(database):
    for number, (key, value) in enumerate(CLOSES):
        database.aggregate(f'{number}', {key: value})

    def closed(by):
        plain, keyed = by(), by('CUSTOM_X')
        return {
            tag: (f'{number}' in plain, f'{number}' in keyed)
            for number, tag in enumerate(CLOSES)
        }

    assert closed(database.closed) == CLOSES
    in_tree = CLOSES | IN_TREE[database.kind]
    assert closed(database.closed_in_tree) == in_tree


tags = st.tuples(
    st.sampled_from(['trait:', 'Trait:', 'trait: ', 'traits:', '']),
    st.sampled_from(TRAITS),
    st.sampled_from(['', ' ', '\n', '_', '%']),
).map(''.join)
values = st.sampled_from(
    [
        'required',
        'Required',
        'required  ',
        'REQUİRED',
        're\u200bquired',
        '',
        'x',
    ]
)
# MariaDB has only one of two keys that differ in nothing it looks at.
tagged = st.lists(
    st.tuples(tags, values),
    max_size=3,
    unique_by=lambda tag: tag[0].rstrip(' ').lower(),
)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(tagged, max_size=3), st.sets(st.sampled_from(TRAITS)))
def test_novas_filter_never_closes_more_aggregates(database, cloud, traits):
    database.clear()
    for number, metadata in enumerate(cloud):
        database.aggregate(f'{number}', dict(metadata))
    assert database.closed(*traits) >= database.closed_in_tree(*traits)


# The ones that tables may have which Nova's migrations made, and those that
# they were converted to: what MariaDB and MySQL have had by default.
COLLATIONS = (
    'utf8mb3_general_ci',
    'utf8mb3_unicode_ci',
    'utf8mb4_general_ci',
    'utf8mb4_unicode_ci',
    'utf8mb4_unicode_520_ci',
    'utf8mb4_uca1400_ai_ci',
    'utf8mb4_uca1400_nopad_ai_ci',
)


def _near(text):
    """Return all that is one character away from a text."""
    for place in range(len(text) + 1):
        before, after = text[:place], text[place:]
        yield before + after[1:]
        for character in string.printable:
            yield before + character + after
            yield before + character + after[1:]


@pytest.mark.on('mariadb')
@pytest.mark.parametrize('name', COLLATIONS)
def test_no_collation_matches_more_values_than_our_comparison(database, name):
    charset = name.partition('_')[0]
    near = sorted({*_near('required'), *_near('REQUIRED'), 'Requ\u0131red'})
    with api_db.get_engine().connect() as connection:
        connection.execute(
            sa.text(
                'CREATE OR REPLACE TEMPORARY TABLE near (text VARCHAR(20)) '
                f'CHARACTER SET {charset} COLLATE {name}'
            )
        )
        connection.execute(
            sa.text('INSERT INTO near VALUES (:text)'),
            [{'text': text} for text in near],
        )
        equal = connection.scalars(
            sa.text("SELECT text FROM near WHERE text = 'required'")
        ).all()
        like = connection.scalars(
            sa.text("SELECT text FROM near WHERE text LIKE 'required%'")
        ).all()
    assert 'Required' in equal
    assert [t for t in equal if not collation.may_equal(t, 'required')] == []
    assert [
        t for t in like if not collation.may_start_with(t, 'required')
    ] == []


@pytest.mark.on('mariadb')
def test_printable_text_compares_as_in_mariadbs_default(database):
    """For what people can see, it is what MariaDB does by default."""
    near = {t for t in _near('required') if t.isprintable()}
    question = sa.text(
        "SELECT CONVERT(:text USING utf8mb3) = 'required' "
        'COLLATE utf8mb3_general_ci'
    )
    with api_db.get_engine().connect() as connection:
        for text in near:
            answer = connection.scalar(question, {'text': text})
            assert bool(answer) == collation.may_equal(text, 'required'), text


@pytest.mark.on('mariadb')
@pytest.mark.parametrize(
    'other', ['trait:custom_x', 'Trait:CUSTOM_X', 'trait:CUSTOM_X  ']
)
def test_mariadb_keeps_one_of_two_keys_that_it_compares_equal(database, other):
    aggregate = database.aggregate('win', {'trait:CUSTOM_X': 'required'})
    with pytest.raises(nova_exception.AggregateMetadataKeyExists):
        aggregate.update_metadata({other: 'required'})
    [win] = database.source().aggregates()
    assert win.metadata == {'trait:CUSTOM_X': 'required'}

    # An operator's delete ignores case.
    aggregate.update_metadata({other: None})
    assert [a.metadata for a in database.source().aggregates()] == [{}]


@pytest.mark.on('sqlite', 'postgresql')
def test_other_databases_keep_both_keys_and_close_the_aggregate(database):
    both = {'trait:CUSTOM_X': 'required', 'trait:custom_x': 'required'}
    database.aggregate('win', both)
    [win] = database.source().aggregates()
    assert win.metadata == both
    assert database.closed('CUSTOM_X') == {'win'}
    assert database.closed_in_tree('CUSTOM_X') == {'win'}


def test_characters_of_four_bytes_are_kept_or_refused(database):
    key = 'trait:CUSTOM_😀'
    if database.kind == 'mariadb':
        # Nova's tables are in utf8mb3. To cut it short would be to lie.
        with pytest.raises(db_exception.DBError):
            database.aggregate('win', {key: 'required'})
        assert database.source().aggregates() == ()
    else:
        database.aggregate('win', {key: 'required'})
        [win] = database.source().aggregates()
        assert win.metadata == {key: 'required'}


@pytest.mark.parametrize(
    'key', ['reservation:a', 'filter_tenant_id2', 'blazar:owner']
)
def test_keys_of_other_filters_are_read_as_written(database, key):
    database.aggregate('a', {key: 'Project'})
    database.aggregate('b', {key.upper(): 'project '})
    read = [a.metadata for a in database.source().aggregates()]
    assert read == [{key: 'Project'}, {key.upper(): 'project '}]
