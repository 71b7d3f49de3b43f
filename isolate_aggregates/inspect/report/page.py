# SPDX-License-Identifier: Apache-2.0
"""Makes one page of it all, which needs nothing else and may load nothing.

Jinja2 escapes what goes into markup and into the data for the script, and we
every character that cannot be seen. Beside that the page's content security
policy allows its own script and style alone, by their hashes, and no address
to load anything from.
"""

import base64
from collections.abc import Iterable, Iterator
import contextlib
import hashlib
import importlib.resources
import os

import jinja2

from isolate_aggregates import exception, text
from isolate_aggregates.cloud import atomic
from isolate_aggregates.inspect.report import calendar
from isolate_aggregates.inspect.report import content as report_content
from isolate_aggregates.inspect.report.cells import cells
from isolate_aggregates.inspect.report.content import Content


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
    environment.filters['moment'] = calendar.shown
    locks = [overview.lock for overview in content.locks]
    return environment.from_string(template).render(
        content=content,
        figures=report_content.figures(content),
        bars=report_content.bars,
        cells=text.all_escaped(
            cells(
                content.matrix,
                content.aggregates,
                locks,
                content.image_names,
                content.tried.values(),
            )
        ),
        marks=content.calendar and calendar.marks(content.calendar),
        rooms=content.calendar
        and text.all_escaped(calendar.picture(content.calendar)),
        style=style,
        scripts=scripts,
        policy=_policy(style, scripts),
    )


def _shown(value: object) -> object:
    # What Jinja2 itself takes for markup.
    if isinstance(value, str) and not hasattr(value, '__html__'):
        return text.escaped(value)
    return value


def check(path: str | os.PathLike[str]) -> None:
    """Tell beforehand that a page cannot be written.

    :raises ReportError: if it cannot be written.
    """
    with _translated(path):
        atomic.check(path)


def write(content: Content, path: str | os.PathLike[str]) -> None:
    """Write the page, whole or not at all.

    :param path: The file; an existing one is replaced at the end.
    :raises ReportError: if it cannot be written.
    """
    page = render(content)
    with _translated(path), atomic.replacing(path) as stream:
        stream.write(page)


@contextlib.contextmanager
def _translated(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise exception.ReportError(path, exc.strerror or str(exc)) from exc


def _policy(style: str, scripts: Iterable[str]) -> str:
    return '; '.join(
        (
            "default-src 'none'",
            # An empty one of its own, or browsers ask for an icon.
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
