# SPDX-License-Identifier: Apache-2.0
"""Tables on a terminal: nothing is wider than it, and no word is broken."""

import argparse
import io

from cliff.formatters import table
from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from isolate_aggregates.cli import terminal

UUID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611c'
LONG = 'CUSTOM_LICENSED_FOR_WINDOWS_DATACENTER'
PLAIN = argparse.Namespace(max_width=0, fit_width=False, print_empty=False)

words = st.text('abcdefgh', min_size=1, max_size=12)
sentences = st.lists(words, max_size=12).map(' '.join)


def shown(names, rows, width):
    stream = io.StringIO()
    terminal.Tables(table.TableFormatter(), width).emit_list(
        names, rows, stream, PLAIN
    )
    return stream.getvalue()


def cells(text):
    """Return the cells of a table, with the header first."""
    found = []
    for line in text.splitlines():
        if line.startswith('+'):
            found.append([])
        elif line:
            found[-1].append([cell.strip() for cell in line[1:-1].split('|')])
    return found


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(words, sentences, sentences, st.integers(0, 99)), min_size=1
    ),
    st.integers(60, 100),
)
def test_all_words_are_there_and_no_line_is_too_wide(rows, width):
    text = shown(('Name', 'First', 'Second', 'Number'), rows, width)
    assert max(map(len, text.splitlines())) <= width
    *_, lines, _ = cells(text)
    for at in range(4):
        told = ' '.join(line[at] for line in lines if line[at])
        wanted = ' '.join(str(row[at]) for row in rows if str(row[at]))
        assert told.split() == wanted.split()


@settings(deadline=None)
@given(st.lists(words, min_size=2, max_size=12, unique=True))
def test_columns_that_do_not_fit_go_to_another_table(names):
    rows = [[f'{number}{name}' for name in names] for number in range(3)]
    text = shown(names, rows, 40)
    assert max(map(len, text.splitlines())) <= 40
    tables = [part for part in cells(text) if part]
    heads = [head[0] for head in tables[::2]]
    assert {head[0] for head in heads} == {names[0]}
    assert [name for head in heads for name in head[1:]] == names[1:]
    for head, body in zip(heads, tables[1::2], strict=True):
        assert body == [
            [row[names.index(name)] for name in head] for row in rows
        ]


def test_a_table_that_fits_is_not_padded():
    rows = [('a', 'one two')]
    assert shown(('Name', 'Text'), rows, 19).splitlines() == [
        '+------+---------+',
        '| Name | Text    |',
        '+------+---------+',
        '| a    | one two |',
        '+------+---------+',
    ]


@pytest.mark.parametrize(
    ('word', 'told'),
    [
        pytest.param(LONG, 'CUSTOM_LICENS...S_DATACENTER', id='a long name'),
        pytest.param(UUID, UUID, id='a uuid'),
    ],
)
def test_a_name_is_shortened_in_its_middle_but_a_uuid_is_not(word, told):
    text = shown(('Name', 'Text'), [(word, 'two words')], 40)
    assert any(line[0] == told for part in cells(text) for line in part)


def test_shortened_column_names_stay_distinct():
    names = ['Name', *(f'{"x" * 20}{n}{"y" * 20}' for n in range(2))]
    text = shown(names, [('a', 'b', 'c')], 60)
    heads = [part[0] for part in cells(text)[::3]]
    assert len({name for head in heads for name in head[1:]}) == 2


def test_shortened_words_of_a_column_stay_distinct():
    words = [f'{"x" * 20}{n}{"y" * 20}' for n in range(2)]
    text = shown(('Name', 'Text'), [(word, LONG) for word in words], 60)
    _, body, *_ = cells(text)
    assert len({name for name, *_ in body}) == 2


@pytest.mark.parametrize(
    ('width', 'first'),
    [
        pytest.param(40, ['Flavor', 'Image'], id='in two columns'),
        pytest.param(24, ['No.'], id='by numbers, for want of room'),
    ],
)
def test_rows_stay_distinct_in_each_table(width, first):
    rows = [(f, i, 'a' * 9, 'b' * 9) for f in 'gh' for i in 'rs']
    text = shown(('Flavor', 'Image', 'C' * 9, 'D' * 9), rows, width)
    assert max(map(len, text.splitlines())) <= width
    tables = [part for part in cells(text) if part]
    assert len(tables[::2]) > 1
    for [head], body in zip(tables[::2], tables[1::2], strict=True):
        assert head[: len(first)] == first
        assert len({tuple(row[: len(first)]) for row in body}) == len(rows)


def test_a_table_of_fields_fits_the_terminal():
    stream = io.StringIO()
    terminal.Tables(table.TableFormatter(), 30).emit_one(
        ('name', 'hosts'), ('a', ' '.join(10 * ['host'])), stream, PLAIN
    )
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 30
    assert sum(line.count('host ') for line in lines) >= 10


# Lines


def test_a_query_is_folded_between_its_parameters_and_values():
    query = '  limit=10&member_of=aa%2Cbb%2Ccc&required=D%2CE&same=f'
    folded = terminal.folded(terminal.Query(query), 24)
    assert folded.splitlines() == [
        '  limit=10',
        '    &member_of=aa%2C',
        '    bb%2Ccc',
        '    &required=D%2CE',
        '    &same=f',
    ]


def test_lines_end_between_words_and_what_follows_is_indented():
    assert terminal.folded(f'  1 (1)  one two\nshort\n{UUID} x', 14) == (
        f'  1 (1)  one\n    two\nshort\n{UUID}\n  x'
    )
