# SPDX-License-Identifier: Apache-2.0
"""Formats names and numbers for messages, and escapes untrusted text."""

from collections.abc import Iterable, Iterator
import contextlib
import contextvars
import difflib
import re
from typing import Any

_LONGEST = 200
_WORD = re.compile(r'[\w.:@/+-]+')


def escaped(text: str) -> str:
    r"""Return a text with control characters escaped.

    Tenants choose names, image properties and hints. To make these safe in
    logs, terminals and pages, control characters, line and paragraph
    separators and marks that change the writing direction become escape
    sequences, for example ``\n``, ``\x1b`` or ``\u202e``.
    """
    if text.isprintable():
        return text
    return ''.join(
        c if c.isprintable() else c.encode('unicode_escape').decode('ascii')
        for c in text
    )


def quoted(name: str) -> str:
    """Return a name that a tenant chose, to embed in a sentence.

    A name that is not a single word is quoted, so that nobody takes it for a
    part of the sentence.
    """
    return name if _WORD.fullmatch(name) else repr(name)


def short(message: object) -> str:
    """Return a message as one line to embed in a sentence.

    Passwords in URLs and the final full stop are removed.
    """
    line = public(' '.join(str(message).split()))
    return line.rstrip('.') if len(line) <= _LONGEST else f'{line[:200]}...'


def public(text: str) -> str:
    """Remove user names and passwords from the URLs in a text.

    Passwords with unquoted characters are not valid there, but are used: all
    up to the last ``@`` is removed.
    """
    return re.sub(r'//\S*@', '//', text)


def public_url(url: str) -> str:
    """Remove user name and password from a URL, which may have spaces."""
    return re.sub(r'//.*@', '//', url, flags=re.DOTALL)


def all_escaped(value: Any) -> Any:
    """Escape all texts in a nested value.

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
    """Within this context, :func:`listed` does not abbreviate names."""
    token = _is_unabridged.set(True)
    try:
        yield
    finally:
        _is_unabridged.reset(token)


def is_unabridged() -> bool:
    """Return whether names must not be abbreviated."""
    return _is_unabridged.get()


def listed(names: Iterable[str], most: int | None = 5) -> str:
    """Return sorted names: ``a, b and 7 more``.

    :param most: The most names; the others are only counted. None for all, as
        within :func:`unabridged`.
    """
    sorted_names = sorted(names)
    if _is_unabridged.get():
        most = None
    text = ', '.join(sorted_names[:most])
    more = 0 if most is None else len(sorted_names) - most
    return f'{text} and {more} more' if more > 0 else text


def named(noun: str, names: Iterable[str], most: int | None = 5) -> str:
    """Return sorted names after a noun: ``hosts a, b and 7 more``."""
    items = tuple(names)
    return f'{plural(len(items), noun)} {listed(items, most)}'


def plural(number: int, one: str, many: str | None = None) -> str:
    """Return the singular or plural of a word.

    :param one: The form for 1, for example ``host`` or ``has``.
    :param many: The form for all other numbers; None to append an ``s``.
    """
    return one if number == 1 else many or f'{one}s'


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 host``, ``12 hosts``."""
    return f'{number} {plural(number, noun)}'


def meant(name: str, names: Iterable[str], prefix: str = '') -> str:
    """Suggest the most similar name, as a question.

    :param prefix: A prefix that all names have and that does not count.
    :returns: The question with a leading space; empty if no name is similar.
    """
    near = difflib.get_close_matches(
        name.removeprefix(prefix),
        [one.removeprefix(prefix) for one in names if one.startswith(prefix)],
        n=1,
    )
    return f' (did you mean {prefix}{near[0]}?)' if near else ''
