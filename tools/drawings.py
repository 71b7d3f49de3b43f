# SPDX-License-Identifier: Apache-2.0
"""Makes all images and tables that come from code or figures.

    python tools/drawings.py
    python tools/drawings.py --check

With ``--check`` nothing is written: what is out of date is named instead.
"""

import argparse
from collections.abc import Iterator
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / 'tools'))

import plot  # noqa: E402
import tables  # noqa: E402


def drawn() -> Iterator[tuple[pathlib.Path, str]]:
    """Yield each file with its expected text."""
    for one in plot.plots():
        yield plot.IMAGES / f'{one.name}.svg', plot.draw(one)
    yield from tables.tables()


def main() -> int:
    """Write the outdated files, or report them and fail."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--check', action='store_true')
    only_check = parser.parse_args().check
    found = False
    for path, text in drawn():
        if path.exists() and path.read_text('utf-8') == text:
            continue
        found = True
        name = path.relative_to(ROOT)
        if only_check:
            print(f'{name} is out of date; run "make architecture".')
        else:
            path.write_text(text, 'utf-8')
            print(name)
    return 1 if only_check and found else 0


if __name__ == '__main__':
    sys.exit(main())
