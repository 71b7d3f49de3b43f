# SPDX-License-Identifier: Apache-2.0
"""Tables and lines on a terminal of a given width."""

import argparse
import io

from cliff.formatters import table
from hypothesis import given
from hypothesis import strategies as st
import pytest
from thorough import examples

from isolate_aggregates_tools.cli import terminal

UUID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611c'
PLAIN = argparse.Namespace(max_width=0, fit_width=False, print_empty=False)

words = st.text('abcdefgh', min_size=1, max_size=12)


def written(names, rows, width):
    stream = io.StringIO()
    terminal.Tables(table.TableFormatter(), width).emit_list(
        names, rows, stream, PLAIN
    )
    return stream.getvalue()


def tables(text):
    """Return the cells of each table, the header first."""
    return [
        [
            [cell.strip() for cell in line[1:-1].split('|')]
            for line in part.splitlines()
            if not line.startswith('+')
        ]
        for part in text.split('\n\n')
    ]


@examples(40)
@given(st.lists(words, min_size=2, max_size=12, unique=True))
def test_columns_that_do_not_fit_go_to_another_table(names):
    # Cells no wider than their header: cliff would wrap others.
    rows = [[f'{number}' for name in names] for number in range(3)]
    text = written(names, rows, 40)
    assert max(map(len, text.splitlines())) <= 40
    parts = tables(text)
    assert {header[0] for header, *_ in parts} == {names[0]}
    assert [name for header, *_ in parts for name in header[1:]] == names[1:]
    for header, *body in parts:
        assert body == [
            [row[names.index(name)] for name in header] for row in rows
        ]


def test_a_table_whose_cells_can_be_folded_is_not_split():
    rows = [('a ' * 15, 'b ' * 15)]
    [[header, *_]] = tables(written(('Name', 'Text'), rows, 30))
    assert header == ['Name', 'Text']


def test_cells_are_folded_between_words_and_parts_of_a_property():
    rows = [('trait:CUSTOM_LICENSED_WINDOWS', 'locks four hosts', 7)]
    [[_, *body]] = tables(written(('Tag', 'Text', 'N'), rows, 50))
    assert body == [
        ['trait:', 'locks four', '7'],
        ['CUSTOM_LICENSED_WINDOWS', 'hosts', ''],
    ]


def test_only_a_word_longer_than_half_of_the_table_is_broken():
    assert tables(written(('Tag', 'Text'), [('a' * 29, 'b c')], 40)) == [
        [['Tag', 'Text'], ['a' * 29, 'b c']]
    ]
    [[_, *body]] = tables(written(('Tag', 'Text'), [('a' * 50, 'b')], 40))
    assert ''.join(tag for tag, _ in body) == 'a' * 50
    assert len(body) == 2


def test_a_word_that_fits_beside_the_first_column_is_not_broken():
    rows = [('x', 'a' * 34, 'b' * 34)]
    assert tables(written(('K', 'Tag', 'Text'), rows, 44)) == [
        [['K', 'Tag'], ['x', 'a' * 34]],
        [['K', 'Text'], ['x', 'b' * 34]],
    ]


def test_columns_are_not_repeated_where_others_would_not_fit():
    rows = [('a', 'b' * 20, 'c' * 30), ('a', 'd' * 20, 'e' * 30)]
    assert tables(written(('K', 'Tag', 'Text'), rows, 40)) == [
        [['K', 'Tag'], ['a', 'b' * 20], ['a', 'd' * 20]],
        [['K', 'Text'], ['a', 'c' * 30], ['a', 'e' * 30]],
    ]


@pytest.mark.parametrize(
    'word', ['2027-03-01T08:00:00+00:00', 'https://placement.example:8778/v1']
)
def test_times_and_urls_are_not_folded(word):
    [[_, *body]] = tables(written(('Tag', 'Text'), [(word, 'a b')], 45))
    assert body[0][0] == word


def test_a_name_that_is_too_long_is_broken_between_its_parts():
    name = 'query_placement_for_routed_networks'
    [[_, *body]] = tables(written(('Tag', 'Text'), [(name, 'a')], 40))
    assert [tag for tag, _ in body] == [
        'query_placement_for_routed_',
        'networks',
    ]


@pytest.mark.parametrize('width', [40, 30])
def test_fields_are_folded_between_words_too(width):
    stream = io.StringIO()
    terminal.Tables(table.TableFormatter(), width).emit_one(
        ('name', 'servers'), ('of one-word and another', 12), stream, PLAIN
    )
    assert max(map(len, stream.getvalue().splitlines())) <= width
    [[_, *body]] = tables(stream.getvalue())
    assert {word for row in body for word in row[1].split()} == {
        *('of', 'one-word', 'and', 'another', '12')
    }


def test_each_table_repeats_the_columns_that_tell_rows_apart():
    rows = [(f, i, 'a', 'b') for f in 'gh' for i in 'rs']
    parts = tables(written(('Flavor', 'Image', 'C' * 19, 'D' * 19), rows, 50))
    assert [header for header, *_ in parts] == [
        ['Flavor', 'Image', 'C' * 19],
        ['Flavor', 'Image', 'D' * 19],
    ]


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
