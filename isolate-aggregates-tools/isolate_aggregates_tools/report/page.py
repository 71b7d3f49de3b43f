# SPDX-License-Identifier: Apache-2.0
"""Renders the page as a single file that loads nothing else.

Jinja2 escapes all values in markup and script data, and control characters are
escaped here. In addition, the content security policy of the page allows only
its own script and style, by their hashes, and no external resources.
"""

import base64
from collections.abc import Iterable, Iterator
import contextlib
import hashlib
import importlib.resources
import os
import zlib

import jinja2

from isolate_aggregates import text
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import files, ranges, wording
from isolate_aggregates_tools.report import calendar
from isolate_aggregates_tools.report import content as report_content
from isolate_aggregates_tools.report.cells import cells
from isolate_aggregates_tools.report.content import Content

# A part of the page with more characters is packed, to a twentieth or so.
_LARGE = 500_000
# In each page.
_MARK = '<meta name="generator" content="isolate-aggregates">'


def render(content: Content) -> str:
    """Return the page."""
    files = importlib.resources.files(__package__)
    names = ['page.html', 'page.css', 'page.js']
    if content.calendar:
        names.append('calendar.js')
    template, style, *scripts = (
        (files / name).read_text(encoding='utf-8') for name in names
    )
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
    )
    environment.filters['number'] = lambda value: f'{value:,}'
    environment.filters['amount'] = lambda value, bar: bar.amount(value)
    environment.filters['ranges'] = lambda names, longest=60: (
        ranges.folded(names, longest) if names else ''
    )
    environment.filters['named'] = lambda names, noun='flavor': text.named(
        noun, names, most=10
    )
    environment.filters['packed'] = _packed
    environment.filters['moment'] = calendar.time_text
    locks = [overview.lock for overview in content.locks]
    return environment.from_string(template).render(
        content=content,
        figures=report_content.figures(content),
        groups=report_content.finding_groups(content),
        opened=report_content.opened(content),
        bars=report_content.bars,
        cells=wording.all_escaped(
            cells(
                content.matrix,
                content.aggregates,
                locks,
                content.image_names,
                content.other_projects.values(),
                content.room,
            )
        ),
        marks=content.calendar and calendar.axis_times(content.calendar),
        rooms=content.calendar
        and wording.all_escaped(calendar.encode(content.calendar)),
        style=style,
        scripts=scripts,
        policy=_policy(style, scripts),
    )


def _packed(markup: str) -> str:
    """Return markup so that the script unpacks it, if it is large."""
    if len(markup) < _LARGE:
        return markup
    data = base64.b64encode(zlib.compress(markup.encode())).decode()
    return (
        f'<template class="packed">{data}</template>'
        '<noscript><p>This part requires JavaScript, as the cloud is large.'
        '</p></noscript>'
    )


def _shown(value: object) -> object:
    # Objects with __html__ are markup for Jinja2.
    if isinstance(value, str) and not hasattr(value, '__html__'):
        return text.escaped(value)
    return value


def check(path: str | os.PathLike[str]) -> None:
    """Check that the page can be written, before its contents are read."""
    with _translated(path):
        files.check(path, _MARK)


def write(content: Content, path: str | os.PathLike[str]) -> None:
    """Write the page atomically.

    :param path: The file; an existing one is replaced at the end.
    """
    page = render(content)
    with _translated(path), files.replacing(path, _MARK) as stream:
        stream.write(page)


@contextlib.contextmanager
def _translated(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise tools_errors.ReportError(path, exc.strerror or str(exc)) from exc


def _policy(style: str, scripts: Iterable[str]) -> str:
    return '; '.join(
        (
            "default-src 'none'",
            # An empty inline icon, or browsers would request one.
            'img-src data:',
            f'style-src {_source(style)}',
            f'script-src {" ".join(map(_source, scripts))}',
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _source(source: str) -> str:
    digest = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
