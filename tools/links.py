# SPDX-License-Identifier: Apache-2.0
"""Checks the links of the built documentation.

    python tools/links.py doc/build/html releasenotes/build/html

A link within it has to lead to a file that is there, and to an anchor that
this file has. Links to other sites are tried by Sphinx, if there is a network.
"""

from collections.abc import Iterator, Sequence
import functools
from html import parser
import pathlib
import subprocess
import sys
from urllib import parse

import requests

DOC = pathlib.Path(__file__).resolve().parents[1] / 'doc'
# Where most of the links lead.
OUTSIDE = 'https://docs.openstack.org/'
# Written by the theme for a button that leads to no page.
NOWHERE = ('', '#')


class Page(parser.HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = set()

    def handle_starttag(
        self, tag: str, attrs: list[tuple[str, str | None]]
    ) -> None:
        """Record the links and anchors of an element."""
        for name, value in attrs:
            if name == 'id' or (tag, name) == ('a', 'name'):
                self.anchors.add(value or '')
            elif name in ('href', 'src'):
                self.targets.add(value or '')


@functools.cache
def read(path: pathlib.Path) -> Page:
    """Return a page."""
    page = Page()
    page.feed(path.read_text('utf-8'))
    return page


def fault(path: pathlib.Path, target: str) -> str | None:
    """Return the problem of a link; None if there is none.

    :param path: The file of the page.
    :param target: The target of the link.
    """
    split = parse.urlsplit(target)
    if split.scheme or split.netloc or target in NOWHERE:
        return None
    file = path
    if split.path:
        file = (path.parent / parse.unquote(split.path)).resolve()
    if not file.is_file():
        return 'there is no such file'
    anchor = parse.unquote(split.fragment)
    if anchor and file.suffix == '.html' and anchor not in read(file).anchors:
        return 'the page has no such anchor'
    return None


def faults(root: pathlib.Path) -> Iterator[str]:
    """Yield one sentence for each broken link below a directory."""
    for path in sorted(root.resolve().rglob('*.html')):
        for target in sorted(read(path).targets):
            wrong = fault(path, target)
            if wrong:
                yield f'{path.relative_to(root.resolve())}: {target}: {wrong}'


def is_online() -> bool:
    """Return whether other sites can be reached."""
    try:
        requests.head(OUTSIDE, timeout=5)
    except requests.RequestException:
        return False
    return True


def main(arguments: Sequence[str]) -> int:
    """Check all links; return the exit status."""
    wrong = [each for root in arguments for each in faults(pathlib.Path(root))]
    print(*wrong, sep='\n', end='\n' if wrong else '')
    if wrong:
        return 1
    print('All links within the documentation lead somewhere.', flush=True)
    if not is_online():
        print(f'{OUTSIDE} cannot be reached: other sites are left out.')
        return 0
    return subprocess.run([
        sys.executable, '-m', 'sphinx', '-q', '-b', 'linkcheck',
        DOC / 'source', DOC / 'build' / 'linkcheck',
    ]).returncode  # fmt: skip


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
