# SPDX-License-Identifier: Apache-2.0
"""Names and numbers in English sentences, and texts that can be shown."""

from collections.abc import Iterable, Iterator
import contextlib
import contextvars
import difflib
import re
from typing import Any

_LONGEST = 200


def escaped(text: str) -> str:
    r"""Return a text in which every character can be seen.

    Tenants choose names, image properties and hints. Whatever shows them, such
    as a log, a terminal or a page, must not obey them: control characters,
    line and paragraph separators and marks that change the direction of
    writing become escape sequences, such as ``\n``, ``\x1b`` or ``\u202e``.

    :param text: The text.
    """
    if text.isprintable():
        return text
    return ''.join(
        c if c.isprintable() else c.encode('unicode_escape').decode('ascii')
        for c in text
    )


def short(said: object) -> str:
    """Return what was said as one line that fits into a sentence.

    Passwords in URLs are left out, and the full stop at the end.
    """
    line = public(' '.join(str(said).split()))
    return line.rstrip('.') if len(line) <= _LONGEST else f'{line[:200]}...'


def public(url: str) -> str:
    """Return a URL, or a text with URLs, without user and password in it."""
    return re.sub(r'//[^/@\s]*@', '//', url)


def all_escaped(value: Any) -> Any:
    """Return a value with every text in it escaped, however deep.

    :param value: Texts, numbers, and lists, tuples and dicts of these.
    """
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, dict):
        return {
            all_escaped(key): all_escaped(one) for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [all_escaped(one) for one in value]
    return value


_is_unabridged = contextvars.ContextVar('unabridged', default=False)


@contextlib.contextmanager
def unabridged() -> Iterator[None]:
    """Let sentences give all names, however many."""
    token = _is_unabridged.set(True)
    try:
        yield
    finally:
        _is_unabridged.reset(token)


def listed(names: Iterable[str], most: int | None = 5) -> str:
    """Return sorted names: ``a, b and 7 more``.

    :param names: The names, at least one.
    :param most: How many to give before counting the rest; None for all, as
        within :func:`unabridged`.
    """
    ordered = sorted(names)
    if _is_unabridged.get():
        most = None
    shown = ', '.join(ordered[:most])
    more = 0 if most is None else len(ordered) - most
    return f'{shown} and {more} more' if more > 0 else shown


def named(noun: str, names: Iterable[str], most: int | None = 5) -> str:
    """Return sorted names after what they are: ``hosts a, b and 7 more``.

    :param noun: What each is, in the singular.
    :param names: The names, at least one.
    :param most: How many to give before counting the rest; None for all.
    """
    found = tuple(names)
    return f'{plural(len(found), noun)} {listed(found, most)}'


def plural(number: int, one: str, many: str | None = None) -> str:
    """Return the form of a word that goes with a number.

    :param one: The form that goes with 1: ``host``, ``has``.
    :param many: The form that goes with all other numbers; None for the first
        one with an s.
    """
    return one if number == 1 else many or f'{one}s'


def counted(number: int, noun: str) -> str:
    """Return a number of things: ``1 host``, ``12 hosts``."""
    return f'{number} {plural(number, noun)}'


def meant(name: str, known: Iterable[str], prefix: str = '') -> str:
    """Return the known name that was perhaps meant, as a question.

    :param prefix: What all names begin with, which makes none similar.
    :returns: It begins with a blank; empty if nothing is near.
    """
    near = difflib.get_close_matches(
        name.removeprefix(prefix),
        [one.removeprefix(prefix) for one in known if one.startswith(prefix)],
        n=1,
    )
    return f' (did you mean {prefix}{near[0]}?)' if near else ''
