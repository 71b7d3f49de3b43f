# SPDX-License-Identifier: Apache-2.0
"""Compares metadata as the most lenient of Nova's databases would.

Nova's in-tree filter lets the database compare metadata. SQLite and PostgreSQL
distinguish ``Required`` from ``required``. MySQL and MariaDB, as Nova sets
them up, do not, and they also ignore trailing spaces and accents. The locks of
an aggregate must not depend on the database or the source. So a tag that locks
with any of these databases locks here, and keys of a request are compared
exactly.

Collations differ in which accented letters and invisible characters are equal
to others. Any text with such a character is treated as equal: Nova's API
accepts them only in values, where they are not needed.
"""

import functools

# A cloud has the same few values and keys on thousands of aggregates, and most
# of the others are the same when they are read again.
_MOST = 2**14


@functools.lru_cache(_MOST)
def may_equal(text: str, wanted: str) -> bool:
    """Return whether a text may equal another one in some database.

    :param text: The text, as it was read.
    :param wanted: What it is compared with: in lower case, and ASCII.
    """
    if _is_plain(text):
        return text.rstrip(' ').lower() == wanted
    return True


@functools.lru_cache(_MOST)
def may_start_with(text: str, prefix: str) -> bool:
    """Return whether a text may start with another one in some database.

    :param text: The text, as it was read.
    :param prefix: What it must start with: in lower case, and ASCII.
    """
    start = text[: len(prefix)]
    if _is_plain(start):
        return start.lower() == prefix
    return True


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()
