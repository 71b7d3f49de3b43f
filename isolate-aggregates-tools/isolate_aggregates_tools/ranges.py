# SPDX-License-Identifier: Apache-2.0
"""Abbreviates lists of names or texts, for example to ``cn-[0001-0050]``."""

from collections.abc import Iterable, Iterator, Sequence
import re

from isolate_aggregates_tools.wording import is_unabridged

# The most characters for names in a sentence or column.
_LONGEST = 60

# Splitting by these, every second part of a name is a number, and every second
# part of a text is a word.
_NUMBER = re.compile(r'([0-9]+)')
_WORD = re.compile(r'([^\s,;:()]+)')
_AMOUNT = re.compile(r'[0-9]+(?:\.[0-9]+)?')

# The first name of a list belongs to the first one of another, and so on.
_IN_ORDER = ' (respectively)'

_Parts = tuple[str, ...]


def folded(names: Iterable[str], longest: int | None = _LONGEST) -> str:
    """Return names in natural order, with ranges for consecutive numbers.

    The syntax is that of ClusterShell: ``cn-[0001-0050,0052]``. Its NodeSet
    takes many times as long for thousands of names, and takes ``,``, ``!``,
    ``&`` and ``^`` in a name for operators. Within :func:`text.unabridged`
    there are all names and no ranges.

    :param names: The names, at least one.
    :param longest: The most characters; further names are only counted. None
        for all names.
    """
    parts = sorted(map(_parts, set(names)), key=_natural)
    if is_unabridged() and longest in (None, _LONGEST):
        return ', '.join(map(''.join, parts))
    if longest is None:
        return _joined(parts)
    # Exponential, then binary search for the number of names that fit.
    too_many = 1
    while len(_joined(parts[:too_many])) <= longest:
        if too_many >= len(parts):
            return _joined(parts)
        too_many *= 2
    # At least one name, and as many as fit.
    fitting = max(too_many // 2, 1)
    while too_many - fitting > 1:
        middle = (fitting + too_many) // 2
        if len(_joined(parts[:middle])) <= longest:
            fitting = middle
        else:
            too_many = middle
    if fitting >= len(parts):
        return _joined(parts)
    return f'{_joined(parts[:fitting])} and {len(parts) - fitting} more'


def alike(texts: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """Merge texts that differ only in names and numbers.

    Names become ranges, and amounts become the smallest and the largest. What
    is said of some names is not said of others: texts are merged only if a
    single name differs, or if several differ in the same order.

    :param most: The most texts to return; further texts are only counted.
    """
    shapes: dict[_Parts, list[_Parts]] = {}
    for text in dict.fromkeys(texts):
        parts = _WORD.split(text)
        shapes.setdefault(tuple(parts[::2]), []).append(tuple(parts[1::2]))
    phrases = [
        _filled(between, words)
        for between, rows in shapes.items()
        for words in _merged(rows, most)
    ]
    if len(phrases) > most:
        return (*phrases[:most], f'{len(phrases) - most} more like these')
    return tuple(phrases)


def without_amounts(text: str) -> str:
    """Return a text that is the same for other amounts."""
    return _WORD.sub(
        lambda word: '0' if _AMOUNT.fullmatch(word[0]) else word[0], text
    )


def _merged(rows: Sequence[_Parts], most: int) -> Iterator[Sequence[str]]:
    """Yield the words of merged texts of the same shape."""
    columns = [tuple(words) for words in zip(*rows, strict=True)]
    # A name may be repeated within a text.
    names = list(
        dict.fromkeys(
            words
            for words in columns
            if len(set(words)) > 1 and not all(map(_AMOUNT.fullmatch, words))
        )
    )
    if len(names) < 2:
        yield [_spanned(words) for words in columns]
        return
    # By all names but those of the place that differs most.
    several = max(names, key=lambda words: len(set(words)))
    groups: dict[_Parts, list[_Parts]] = {}
    for place, row in enumerate(rows):
        rest = tuple(w[place] for w in names if w is not several)
        groups.setdefault(rest, []).append(row)
    if len(groups) > most and _have_one_order(names):
        yield [*map(_spanned, columns[:-1]), _spanned(columns[-1]) + _IN_ORDER]
        return
    for some in groups.values():
        yield [_spanned(words) for words in zip(*some, strict=True)]


def _have_one_order(columns: Iterable[Sequence[str]]) -> bool:
    """Return whether names of several places belong to each other in order."""
    rows = sorted(
        zip(*columns, strict=True), key=lambda row: _natural(_parts(row[0]))
    )
    return all(
        list(words) == sorted(set(words), key=lambda n: _natural(_parts(n)))
        for words in zip(*rows, strict=True)
    )


def _parts(name: str) -> _Parts:
    return tuple(_NUMBER.split(name))


def _natural(parts: _Parts) -> list[tuple[str, int, str]]:
    texts, numbers = parts[::2], parts[1::2]
    return [
        (text, int(number or 0), number)
        for text, number in zip(texts, (*numbers, ''), strict=True)
    ]


def _joined(names: Sequence[_Parts]) -> str:
    """Fold names of the same shape, first at the number that varies most."""
    shapes: dict[_Parts, list[_Parts]] = {}
    for parts in names:
        shapes.setdefault(parts[::2], []).append(parts)
    return ', '.join(
        ''.join(parts)
        for alike_names in shapes.values()
        for parts in _with_ranges(alike_names)
    )


def _with_ranges(names: list[_Parts]) -> list[_Parts]:
    places = range(1, len(names[0]), 2)
    values = {place: len({name[place] for name in names}) for place in places}
    for place in sorted(places, key=lambda n: (-values[n], -n)):
        if values[place] == 1:
            break
        groups: dict[tuple[_Parts, _Parts], list[str]] = {}
        for name in names:
            rest = name[:place], name[place + 1 :]
            groups.setdefault(rest, []).append(name[place])
        names = [
            (*before, _range(numbers), *after)
            for (before, after), numbers in groups.items()
        ]
    return names


def _range(numbers: Sequence[str]) -> str:
    """Return numbers in brackets, unchanged, consecutive ones as ranges."""
    if len(numbers) == 1:
        return numbers[0]
    runs = [
        first if first == last else f'{first}-{last}'
        for first, last in _runs(numbers)
    ]
    return f'[{",".join(runs)}]'


def _runs(numbers: Sequence[str]) -> Iterator[tuple[str, str]]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if str(int(last) + 1).zfill(len(last)) != number:
            yield first, last
            first = number
        last = number
    yield first, last


def _spanned(words: Sequence[str]) -> str:
    different = list(dict.fromkeys(words))
    if len(different) == 1:
        return different[0]
    if all(map(_AMOUNT.fullmatch, different)):
        return f'{min(different, key=float)} to {max(different, key=float)}'
    return folded(different)


def _filled(between: _Parts, words: Sequence[str]) -> str:
    return ''.join(
        part
        for pair in zip(between, (*words, ''), strict=True)
        for part in pair
    )
