# SPDX-License-Identifier: Apache-2.0
"""Writes the manual pages of the commands into the distributions.

Run by ``make man``; a test compares the files with the commands. They come
from the parsers of the arguments, not from their help: argparse words that
differently with each Python. The pages of the plugin's two programs, which
need Nova, are written by hand. The tools install them: an image of
nova-scheduler has the plugin alone, and no man.
"""

import argparse
from collections.abc import Iterable
from importlib import metadata
import pathlib
import re
from typing import Any

from isolate_aggregates_tools.cli import app, program_help
from isolate_aggregates_tools.cli.exit_status import ExitStatus

FOLDER = pathlib.Path(__file__).parents[1] / 'etc' / 'man'
PROGRAM = 'isolate-aggregates'

# Of which distribution the pages in a folder are.
FOLDERS = {
    'isolate-aggregates-tools': 'tools',
    'isolate-aggregates-reservations': 'reservations',
}

BY_HAND = ('isolate-aggregates-manage.1', 'isolate-aggregates-status.1')

_STATUSES = {
    ExitStatus.DONE: 'Done.',
    ExitStatus.ERROR: 'An error, which is on standard error.',
    ExitStatus.INVALID: 'An argument cannot be used.',
    ExitStatus.LEFT: 'Something is left to do.',
    ExitStatus.NO: 'The answer is no, or something was found.',
}


_CHOSEN = (
    '-f chooses the format and -c the columns, as with all commands that list '
    'or show something.'
)
_CLOUD = (
    'A command uses the live cloud of --os-cloud, of the OS_* variables or of '
    'the other --os-* options, which come before it and are those of '
    'openstack (see --help), or with --snapshot a cloud file.'
)
_FORMATS = (
    'Commands that list or show something take -f table, json, yaml, csv or '
    'value, and -c with the name of a column, which may be repeated. Each '
    'json or yaml document names its schema, a file of the package.'
)


def files() -> dict[pathlib.Path, str]:
    """Return the text of each page that is not written by hand, by its path.

    Only the commands of this repository have one, whatever is installed.
    """
    program = app.IsolateAggregatesApp()
    pages = {
        FOLDER / 'tools' / f'{PROGRAM}.1': _program(program),
    }
    own = {
        entry_point.name.replace('_', ' '): FOLDERS.get(entry_point.dist.name)
        for entry_point in metadata.entry_points(
            group='isolate_aggregates.cli'
        )
        if entry_point.dist
    }
    for name, entry_point in program.command_manager:
        if own.get(name):
            command = entry_point.load()(program, None)
            page = FOLDER / str(own[name]) / f'{_title(name)}.1'
            pages[page] = _command(name, command)
    return pages


def _title(name: str) -> str:
    return f'{PROGRAM}-{name.replace(" ", "-")}'


def _command(name: str, command: Any) -> str:
    parser = command.get_parser(f'{PROGRAM} {name}')
    arguments = [a for a in parser.own if a.help is not argparse.SUPPRESS]
    first = parser.description.strip().partition('\n')[0]
    return _page(
        _title(name),
        first.rstrip('.'),
        f'{PROGRAM} {name}',
        arguments,
        [
            *_paragraphs(parser.description),
            *_listed(
                'ARGUMENTS', [a for a in arguments if not a.option_strings]
            ),
            *_listed('OPTIONS', [a for a in arguments if a.option_strings]),
            *(
                ['.SH OUTPUT', _text(_CHOSEN)]
                if '--format' in parser._option_string_actions
                else []
            ),
            *_see(f'{PROGRAM}(1)'),
        ],
    )


def _program(program: Any) -> str:
    lines = program_help.lines(program.command_manager)
    listed: list[str] = []
    for line in sorted(lines, key=lambda one: one.name):
        if line.name in ('complete', 'help'):
            page = _bold(line.name)
        else:
            page = f'{_bold(_title(line.name))}(1)'
        listed += ['.TP', page, _text(line.description)]
    arguments = [
        action
        for action in program.parser._actions
        if action.help is not argparse.SUPPRESS
        # Those of the installed keystoneauth.
        and not any(o.startswith('--os-') for o in action.option_strings)
    ]
    return _page(
        PROGRAM,
        'isolate hosts of OpenStack, and show which servers may use them',
        f'{PROGRAM} [options] <command>',
        [],
        [
            *_paragraphs(
                'Shows and changes what keeps servers out of hosts: the tags '
                'of host aggregates, and the traits and aggregates in '
                'Placement. Each command has a page of its own.'
            ),
            *_paragraphs(_CLOUD),
            '.SH COMMANDS',
            *listed,
            *_listed('OPTIONS', arguments),
            '.SH OUTPUT',
            *_paragraphs(_FORMATS),
            '.SH EXIT STATUS',
            *(
                line
                for status, meaning in _STATUSES.items()
                for line in ('.TP', _bold(str(int(status))), _text(meaning))
            ),
            *_paragraphs('The page of a command names those of its own.'),
            *_see('openstack(1)'),
        ],
    )


def _page(
    title: str,
    description: str,
    program: str,
    arguments: Iterable[argparse.Action],
    rest: Iterable[str],
) -> str:
    words, *more = program.split(' [')
    usage = ' '.join([_bold(words), *(_text(f'[{word}') for word in more)])
    for action in arguments:
        if '--help' not in action.option_strings:
            usage += ' ' + _usage(action)
    lines = [
        '.\\" Written by tools/man_pages.py.',
        f'.TH {title.upper()} 1 "" isolate-aggregates "User Commands"',
        '.SH NAME',
        f'{_text(title)} \\- {_text(description)}',
        '.SH SYNOPSIS',
        usage,
        '.SH DESCRIPTION',
        *rest,
    ]
    return '\n'.join(lines) + '\n'


def _usage(action: argparse.Action) -> str:
    if action.option_strings:
        shown = f'{_bold(action.option_strings[-1])}{_value(action)}'
        return shown if action.required else f'[{shown}]'
    shown = _italic(_metavar(action))
    if action.nargs in ('*', '+', argparse.REMAINDER):
        shown += ' ...'
    return f'[{shown}]' if action.nargs in ('*', '?') else shown


def _metavar(action: argparse.Action) -> str:
    if action.choices is not None and not action.metavar:
        return '|'.join(map(str, action.choices))
    metavar = action.metavar
    if isinstance(metavar, tuple):
        return ' '.join(metavar)
    return metavar or action.dest


def _value(action: argparse.Action) -> str:
    return '' if action.nargs == 0 else f' {_italic(_metavar(action))}'


def _listed(heading: str, arguments: Iterable[argparse.Action]) -> list[str]:
    lines = []
    for action in arguments:
        names = ', '.join(map(_bold, action.option_strings))
        head = f'{names}{_value(action)}'.strip() or _italic(_metavar(action))
        values = {**vars(action), 'prog': PROGRAM}
        lines += ['.TP', head, _text(str(action.help or '') % values)]
    return [f'.SH {heading}', *lines] if lines else []


def _see(page: str) -> list[str]:
    return ['.SH SEE ALSO', _bold(page.removesuffix('(1)')) + '(1)']


def _paragraphs(text: str) -> list[str]:
    found = [' '.join(one.split()) for one in re.split(r'\n\s*\n', text)]
    return [line for one in found if one for line in ('.PP', _text(one))]


def _text(text: str) -> str:
    """Escape text, which may begin a line."""
    text = ' '.join(text.split())
    text = text.replace('\\', '\\e').replace('-', '\\-')
    return f'\\&{text}' if text.startswith(('.', "'")) else text


def _bold(text: str) -> str:
    return f'\\fB{_text(text)}\\fR'


def _italic(text: str) -> str:
    return f'\\fI{_text(text)}\\fR'


if __name__ == '__main__':
    pages = files()
    for old in FOLDER.glob('*/*.1'):
        if old not in pages and old.name not in BY_HAND:
            old.unlink()
    for path, text in pages.items():
        path.write_text(text, 'utf-8')
