# SPDX-License-Identifier: Apache-2.0
"""Gets or sets an option of an ini file, which may have several values.

Arguments: ``get file section option`` or ``set file section option value...``
"""

import pathlib
import re
import sys


def sections(text):
    """Return the lines of each section, by its name, in order."""
    found = {'': []}
    name = ''
    for line in text.splitlines():
        heading = re.fullmatch(r'\[(.+)\]', line)
        if heading:
            name = heading[1]
            found.setdefault(name, [])
        elif line:
            found[name].append(line)
    return found


def main(act, path, section, option, *values):
    file = pathlib.Path(path)
    found = sections(file.read_text('utf-8') if file.exists() else '')
    lines = found.setdefault(section, [])
    assigned = re.compile(rf'{re.escape(option)}\s*=\s*(.*)')
    if act == 'get':
        print(*[m[1] for m in map(assigned.match, lines) if m])
        return
    kept = [line for line in lines if not assigned.match(line)]
    found[section] = kept + [f'{option} = {value}' for value in values]
    text = ''
    for name, content in found.items():
        heading = [f'[{name}]'] if name else []
        text += ''.join(f'{line}\n' for line in [*heading, *content])
    file.write_text(text, 'utf-8')


if __name__ == '__main__':
    main(*sys.argv[1:])
