# SPDX-License-Identifier: Apache-2.0
"""Names and texts of documents."""

from isolate_aggregates import text
from isolate_aggregates_tools import wording


def test_unabridged_lists_have_all_names():
    with wording.unabridged():
        assert text.listed('abcdefg') == 'a, b, c, d, e, f, g'
    assert text.listed('abcdefg') == 'a, b, c, d, e and 2 more'


def test_texts_are_escaped_at_every_depth():
    given = {'a\n': ['a\n', (1, 'a\n')]}
    assert wording.all_escaped(given) == {r'a\n': [r'a\n', [1, r'a\n']]}
