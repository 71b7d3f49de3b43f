# SPDX-License-Identifier: Apache-2.0
"""Repairs work when they are pasted into a shell."""

from bash import read_by_bash
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isolate_aggregates.inspect.audit import repairs
from isolate_aggregates.testing import make_aggregate, make_flavor

NAMES = st.text(st.characters(exclude_characters='\0'), min_size=1)
ODD = [
    'a\tb', 'a\nb', "o'clock", '!!', "'!\\x41", '\x1b[31m', '\x80', '\u202e',
    '\ud800', '~', 'ü', '"$(x)"', '`x`', '-', '=', '#', '&&', '\\', "\n'",
]  # fmt: skip


@settings(max_examples=50, deadline=None)
@example(ODD)
@given(st.lists(NAMES, min_size=1))
def test_bash_reads_the_intended_words_for_any_names(
    names: list[str],
) -> None:
    commands = tuple(('openstack', name) for name in names)
    line = repairs.shown(commands)
    assert line.isprintable()
    assert read_by_bash(line) == commands


def test_plain_words_are_not_quoted() -> None:
    assert repairs.shown((('openstack', 'it is', 'a/b:c=d'),)) == (
        "openstack 'it is' a/b:c=d"
    )


def test_no_repair_is_shown_for_names_no_command_can_take() -> None:
    assert repairs.shown((('openstack', 'a\0b'),)) == ''
    # The client splits the argument at the first "=".
    aggregate, flavor = make_aggregate('a', id=7), make_flavor('f')
    assert repairs.replace_tag(aggregate, 'K', 'k=x', 'v') == ()
    assert repairs.replace_spec(flavor, 'K', 'k=x', 'v') == ()
