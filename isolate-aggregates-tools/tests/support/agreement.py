# SPDX-License-Identifier: Apache-2.0
"""Confirms the prompts of commands that change a cloud.

What they do without it is in ``test_consent.py`` and
``test_reservation_consent.py``.
"""

import io

import pytest

from isolate_aggregates_tools.cli import terminal

_CHANGES = frozenset({
    *('lock create', 'lock delete', 'key add', 'key remove'),
    *('provider set', 'provider unset'),
    'relocation create',
    *('reservation create', 'reservation end', 'reservation repair'),
    *('reservation set', 'reservation host set'),
})  # fmt: skip
_WITHOUT = frozenset({
    *('--dry-run', '--yes', '--help'),
    # With these, relocation create only shows a plan.
    *('--snapshot', '--rolling', '--output'),
})  # fmt: skip


def agreed(arguments):
    """Return the arguments of a command, with ``--yes`` if it would ask."""
    words = list(arguments)
    while words and words[0].startswith('--'):
        del words[: 1 if '=' in words[0] else 2]
    if words[:1] == ['isolation']:
        del words[0]
    is_change = any(
        ' '.join(words[:number]) in _CHANGES for number in (1, 2, 3)
    )
    if not is_change or _WITHOUT & set(arguments):
        return tuple(arguments)
    return (*arguments, '--yes')


class Terminal(io.StringIO):
    """Standard input with an operator who answers.

    :param meanwhile: What happens before the first answer.
    """

    def __init__(self, text='', meanwhile=None):
        super().__init__(text)
        self._meanwhile = meanwhile

    def isatty(self):
        """Tell that it is a terminal."""
        return True

    def readline(self, size=-1, /):
        """Return an answer."""
        if self._meanwhile:
            self._meanwhile()
            self._meanwhile = None
        return super().readline(size)


@pytest.fixture
def answer(monkeypatch):
    """Type answers, while something else happens."""

    def type_it(text, meanwhile=None):
        monkeypatch.setattr('sys.stdin', Terminal(text, meanwhile))
        # What is captured of standard error is what pipes get.
        monkeypatch.setattr(terminal, 'is_attended', lambda *_: True)

    return type_it
