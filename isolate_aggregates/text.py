# SPDX-License-Identifier: Apache-2.0
"""Formats names and numbers for messages, and escapes untrusted text."""

from collections.abc import Iterable
import contextvars
import re

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


def lacking(flavor: str, image: str | None, verb: str) -> str:
    """Return that neither flavor nor image do something, as text.

    :param image: The name of the image; None if there is none or it does not
        count.
    """
    if image is None:
        return f'flavor {flavor} does not {verb}'
    return f'neither flavor {flavor} nor image {quoted(image)} {verb}s'


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


# Whether names must not be abbreviated.
UNABRIDGED = contextvars.ContextVar('unabridged', default=False)


def listed(names: Iterable[str], most: int | None = 5) -> str:
    """Return sorted names: ``a, b and 7 more``.

    :param most: The most names; the others are only counted. None for all, as
        if UNABRIDGED is set.
    """
    sorted_names = sorted(names)
    if UNABRIDGED.get():
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

    :param many: The form for all numbers but 1; None to append an ``s``.
    """
    return one if number == 1 else many or f'{one}s'


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 host``, ``12 hosts``."""
    return f'{number} {plural(number, noun)}'
