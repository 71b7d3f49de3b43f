# SPDX-License-Identifier: Apache-2.0
"""Lists entry points and modules, for the page "Where is what"."""

import ast
from collections.abc import Iterator
import configparser
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIST = ROOT / 'doc' / 'source' / 'contributor' / 'where.inc'
PACKAGE = ROOT / 'isolate_aggregates'

# The groups of entry points to list, with descriptions.
_GROUPS = {
    'isolate_aggregates.cli': 'Commands',
    'isolate_aggregates.request_filters': 'Request filters',
    'isolate_aggregates.aggregate_sources': 'Aggregate sources',
}


def written() -> str:
    """Return the lists, in reStructuredText."""
    return '\n'.join(_lines()) + '\n'


def _lines() -> Iterator[str]:
    setup = configparser.ConfigParser()
    setup.read(ROOT / 'setup.cfg')
    for group, title in _GROUPS.items():
        yield from _title(title)
        for line in setup['entry_points'][group].strip().splitlines():
            name, target = (part.strip() for part in line.split('='))
            module, found = target.split(':')
            shown = name.replace('_', ' ') if title == 'Commands' else name
            yield f'* ``{shown}``: ``{found}`` in ``{_path(module)}``'
        yield ''
    yield from _title('Modules')
    for folder, paths in _folders():
        yield f'``{folder}``'
        yield f'  {_summary(paths[0])}'
        yield ''
        for path in paths[1:]:
            yield f'  * ``{path.name}``: {_summary(path)}'
        yield ''


def _title(title: str) -> list[str]:
    return [title, '=' * len(title), '']


def _path(module: str) -> str:
    path = ROOT.joinpath(*module.split('.')).with_suffix('.py')
    return path.relative_to(PACKAGE).as_posix()


def _folders() -> Iterator[tuple[str, list[pathlib.Path]]]:
    """Yield each package with its modules, its own first."""
    for path in sorted(PACKAGE.rglob('__init__.py')):
        modules = sorted(path.parent.glob('*.py'))
        modules.remove(path)
        folder = path.parent.relative_to(ROOT).as_posix()
        yield f'{folder}/', [path, *modules]


def _summary(path: pathlib.Path) -> str:
    """Return the first line of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text('utf-8'))) or ''
    return text.partition('\n')[0]
