# SPDX-License-Identifier: Apache-2.0
"""Compares what a command says on a narrow terminal and in a file."""

import re
import sys

WIDTH = 80
# What may be folded: words, the parts of a property and of a query, and those
# of a name that is too long.
_PARTS = re.compile(r'&?(?:(?!%2C)[^&:=_])+(?:%2C|[:=_])?|[&:=_]')
# Borders of tables, and ends of lines of a shell.
_DRAWN = re.compile(r'[-+\\]+')


def broken(run, monkeypatch, *arguments):
    """Return what breaks at 80 columns: words, and lines of tables."""
    monkeypatch.setenv('COLUMNS', str(WIDTH))
    wide = run(*arguments).out
    with monkeypatch.context() as patch:
        patch.setattr(sys.stdout, 'isatty', lambda: True)
        narrow = run(*arguments).out
    assert wide.strip()
    assert narrow.strip()
    lines = [
        line
        for line in narrow.splitlines()
        if line[:1] in ('|', '+') and len(line) > WIDTH
    ]
    return sorted(_parts(narrow) - _parts(wide)) + lines


def _parts(text):
    return {
        part
        for word in re.split(r'[\s|]+', text)
        for part in _PARTS.findall(word)
        if not _DRAWN.fullmatch(part)
    }
