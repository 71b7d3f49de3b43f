# SPDX-License-Identifier: Apache-2.0
"""Compares names: which known one a misspelled one probably means.

Names that merely resemble each other are never taken for each other.
"""

from collections.abc import Iterable
import difflib
import re

import os_traits

from isolate_aggregates.aggregates import tags as tools_tags
from isolate_aggregates.request import extra_specs as xs

VALUES = (xs.REQUIRED, xs.FORBIDDEN)
# Values that mean "required".
_YES = ('yes', 'true', 'on', '1')
# How similar a misspelled value or name is to the one that is meant.
_CLOSE_VALUE = 0.75
_CLOSE_NAME = 0.85
_CUSTOM = 'CUSTOM_'
# Misspellings of "trait:", and of "trait:" without any separator.
LIKE_PREFIX = re.compile(r'\s*traits?\w*?\s*[:=.]\s*', re.IGNORECASE)
_BARE_PREFIX = re.compile(r'(traits?[_\- ]+)?(?=[A-Z])')
_NO_DIGITS = re.compile(r'[A-Z]+(\d+)')
# What a word begins with that means the opposite without it.
_OPPOSITES = ('UN', 'NON', 'NO', 'NOT')
# The shortest id in which one or two letters can be mistaken.
_LONG_ID = 16


def plain(name: str) -> str:
    """Return a name without case and separators."""
    return re.sub('[^a-z0-9]', '', name.lower())


def closest(name: str, names: Iterable[str]) -> str | None:
    """Return the known name that a misspelled one probably means, if any.

    Names that differ in numbers, in single letters or in a negation mean
    different things.
    """
    given = _without_custom(name)
    others = {
        _without_custom(other): other for other in sorted(set(names) - {name})
    }
    for other, whole in others.items():
        if plain(other) == plain(given) != '':
            return whole
    alike = [
        other
        for other in others
        if _serials(other) == _serials(given)
        and not _are_opposites(other, given)
    ]
    found = difflib.get_close_matches(given, alike, n=1, cutoff=_CLOSE_NAME)
    return others[found[0]] if found else None


def closest_id(name: str, names: Iterable[str]) -> str | None:
    """Return the known id that a misspelled one probably means, if any.

    Ids have no words, so a short one may always be another one.
    """
    others = sorted(set(names) - {name})
    for other in others:
        if plain(other) == plain(name) != '':
            return other
    near = [
        other
        for other in others
        if len(plain(other)) >= _LONG_ID and _are_near(plain(other), name)
    ]
    return near[0] if len(near) == 1 else None


def _are_near(one: str, other: str) -> bool:
    """Return whether two ids differ in at most two letters."""
    matcher = difflib.SequenceMatcher(None, one, plain(other), autojunk=False)
    longest = max(len(one), len(plain(other)))
    same = sum(block.size for block in matcher.get_matching_blocks())
    return longest - same <= 2


def _without_custom(name: str) -> str:
    return name.upper().strip().removeprefix(_CUSTOM)


def _serials(name: str) -> list[str]:
    """Return the words of a name that number or code something."""
    serials = []
    for word in re.split('[^A-Z0-9]+', name):
        numbered = _NO_DIGITS.fullmatch(word)
        if numbered:
            serials.append(numbered[1])
        elif len(word) == 1 or any(c.isdigit() for c in word):
            serials.append(word)
    return serials


def _are_opposites(one: str, other: str) -> bool:
    short, long = sorted((plain(one), plain(other)), key=len)
    return any(
        long.replace(start.lower(), '', 1) == short for start in _OPPOSITES
    )


def meant_value(value: str) -> str | None:
    """Return the value of a trait that is probably meant."""
    text = value.strip().lower()
    if text in _YES:
        return xs.REQUIRED
    close = difflib.get_close_matches(text, VALUES, n=1, cutoff=_CLOSE_VALUE)
    return close[0] if close else None


def looks_like_trait(key: str) -> str:
    """Return the trait that a key names; empty if it names none.

    It may be misspelled, as its prefix may be.
    """
    like = LIKE_PREFIX.match(key)
    if like:
        return key[like.end() :].strip().upper()
    bare = _BARE_PREFIX.match(key)
    name = key[bare.end() :].strip() if bare else ''
    if os_traits.is_custom(name) or name in tools_tags.standard_traits():
        return name
    return ''
