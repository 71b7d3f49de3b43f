# SPDX-License-Identifier: Apache-2.0
"""What README and documentation show: blocks of code, commands, output."""

import dataclasses
import pathlib
import re
import shlex
import textwrap

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / 'doc' / 'source'
PAGES = [
    *sorted(ROOT.glob('*.rst')),
    ROOT / 'tools' / 'benchmarks' / 'README.rst',
    *sorted(SOURCE.rglob('*.rst')),
]

_BLOCK = re.compile(
    r'^(?P<indent> *)\.\. code-block:: (?P<language>\w+)\n'
    r'(?P<options>(?:(?P=indent)   :[^\n]+\n)*)'
    r'\n(?P<body>(?:(?:(?P=indent)   [^\n]*)?\n)+)',
    re.MULTILINE,
)
_CAPTION = re.compile(r':caption: (\S+)')
# What GNU and OpenStack pages call the languages of a terminal.
_TERMINAL = ('bash', 'console', 'sh', 'shell')


@dataclasses.dataclass(frozen=True)
class Command:
    """A command as a page shows it.

    :param text: What is typed, on as many lines as the page has.
    :param output: What stands beneath it.
    """

    text: str
    output: str

    @property
    def words(self):
        """The words of which it is made."""
        return shlex.split(self.text.replace('\\\n', ' '))


@dataclasses.dataclass(frozen=True)
class Block:
    """A block of code on a page."""

    language: str
    caption: str | None
    text: str

    @property
    def typed(self):
        """The shown commands, each with the output beneath it."""
        if self.language not in _TERMINAL:
            return []
        found = []
        for part in re.split(r'^\$ ', self.text, flags=re.MULTILINE)[1:]:
            # A line that ends with a backslash goes on, and so does one
            # within quotes or brackets, which pages do not have.
            ends = re.search(r'(?<!\\)\n', part)
            assert ends
            found.append(Command(part[: ends.start()], part[ends.end() :]))
        return found

    def commands(self):
        """Yield the shown commands as words, with the output beneath."""
        for command in self.typed:
            yield command.words, command.output


def name(page):
    """Return how a page is called here."""
    return str(page.relative_to(ROOT)).removeprefix('doc/source/')


def path(called):
    """Return the page of a name."""
    [found] = [page for page in PAGES if name(page) == called]
    return found


def blocks(page):
    """Return the blocks of code on a page, in order."""
    found = []
    for match in _BLOCK.finditer(f'{page.read_text("utf-8")}\n'):
        caption = _CAPTION.search(match['options'])
        found.append(
            Block(
                match['language'],
                caption[1] if caption else None,
                textwrap.dedent(match['body']).strip() + '\n',
            )
        )
    return found


def agrees(page_text, real):
    """Return whether shown output is the real one.

    Pages fold long lines and leave out parts with a line of three dots.
    """
    parts = re.split(r'^ *\.\.\.$', page_text, flags=re.MULTILINE)
    squeezed = [re.escape(''.join(part.split())) for part in parts]
    return bool(re.fullmatch('.*'.join(squeezed), ''.join(real.split())))
