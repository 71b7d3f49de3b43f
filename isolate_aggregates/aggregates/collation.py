# SPDX-License-Identifier: Apache-2.0
"""Compares metadata like the most lenient of Nova's databases.

Nova's in-tree filter compares metadata in the database. SQLite and PostgreSQL
distinguish ``Required`` from ``required``. MySQL and MariaDB, with Nova's
collation, do not, and they also ignore trailing spaces and accents. The locks
of an aggregate must not depend on the database or the source. So metadata that
locks with any of these databases locks here. The keys of a request are
compared exactly.

Collations differ in which accented letters and invisible characters they
ignore. Any text with such a character is treated as equal. Nova's API accepts
these characters only in values, where they are not needed.
"""

import functools

# The size of the caches. Thousands of aggregates share few keys and values,
# and most of these are the same when they are read again.
_MOST = 2**14


@functools.lru_cache(_MOST)
def may_equal(text: str, other: str) -> bool:
    """Return whether two texts are equal in any supported database.

    :param other: The other text, which must be ASCII in lower case.
    """
    if _is_plain(text):
        return text.rstrip(' ').lower() == other
    return True


@functools.lru_cache(_MOST)
def may_start_with(text: str, prefix: str) -> bool:
    """Return whether a text has a prefix in any supported database.

    :param prefix: The prefix, which must be ASCII in lower case.
    """
    start = text[: len(prefix)]
    if _is_plain(start):
        return start.lower() == prefix
    return True


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()
