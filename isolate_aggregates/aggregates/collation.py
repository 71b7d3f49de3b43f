# SPDX-License-Identifier: Apache-2.0
"""Reads metadata as the most generous of Nova's databases would.

Nova's in-tree filter lets the database compare metadata. For SQLite and
PostgreSQL ``Required`` is another text than ``required``. For MySQL and
MariaDB, as Nova sets them up, both are the same, and so is one with spaces at
its end or with accents. What an aggregate is locked by must not depend on
where Nova keeps it, nor on who reads it. So what locks with any of these
databases locks here, and what opens is compared exactly.

Which letters with accents, and which invisible characters, count as others
differs from collation to collation. Any text with such a character is taken
for equal: Nova's API takes them in values only, where they are not needed.
"""

import functools

# A cloud has the same few values and keys on thousands of aggregates, and most
# of the others are the same when they are read again.
_MOST = 2**14


@functools.lru_cache(_MOST)
def may_equal(text: str, wanted: str) -> bool:
    """Tell whether some database may take a text for another.

    :param text: The text, as it was read.
    :param wanted: What it is compared with: in lower case, and ASCII.
    """
    if _is_plain(text):
        return text.rstrip(' ').lower() == wanted
    return True


@functools.lru_cache(_MOST)
def may_start_with(text: str, prefix: str) -> bool:
    """Tell whether for some database a text may start with another.

    :param text: The text, as it was read.
    :param prefix: What it must start with: in lower case, and ASCII.
    """
    start = text[: len(prefix)]
    if _is_plain(start):
        return start.lower() == prefix
    return True


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()
