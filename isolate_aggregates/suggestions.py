# SPDX-License-Identifier: Apache-2.0
"""Suggests what was meant in place of an unknown name."""

from collections.abc import Iterable
import difflib


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
