# SPDX-License-Identifier: Apache-2.0
"""Repairs work when they are pasted into a shell."""

from bash import read_by_bash
from hypothesis import example, given
from hypothesis import strategies as st
from thorough import examples

from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.testing import make_aggregate, make_flavor

NAMES = st.text(st.characters(exclude_characters='\0'), min_size=1)
ODD = [
    'a\tb', 'a\nb', "o'clock", '!!', "'!\\x41", '\x1b[31m', '\x80', '\u202e',
    '\ud800', '~', 'ü', '"$(x)"', '`x`', '-', '=', '#', '&&', '\\', "\n'",
]  # fmt: skip


@examples(15)
@example(ODD)
@given(st.lists(NAMES, min_size=1))
def test_bash_reads_the_intended_words_for_any_names(names):
    todo = tuple(('openstack', name) for name in names)
    line = commands.shown(todo)
    assert line.isprintable()
    assert read_by_bash(line) == todo


def test_plain_words_are_not_quoted():
    assert commands.shown((('openstack', 'it is', 'a/b:c=d'),)) == (
        "openstack 'it is' a/b:c=d"
    )


def test_no_repair_is_shown_for_names_no_command_can_take():
    assert commands.shown((('openstack', 'a\0b'),)) == ''
    # The client splits the argument at the first "=".
    aggregate, flavor = make_aggregate('a', id=7), make_flavor('f')
    assert commands.replace_value(aggregate, 'K', 'k=x', 'v', 'k') == ()
    assert commands.replace_spec(flavor, 'k=x', 'v', instead_of='K') == ()
