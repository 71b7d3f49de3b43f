# SPDX-License-Identifier: Apache-2.0
"""Pastes the lines of README until its first answer, and times them.

``make first-hour`` does so on a fresh Debian with no more packages than README
names, as an ordinary user whose home directory has a space in its name, in a
clone of what is committed. It needs a network, Debian's ``mmdebstrap`` and the
superuser. What README does to a cloud is rehearsed: the cloud is that of the
first answer, before these lines. Afterwards it must give that answer. Of
another README only the words are counted::

    git show HEAD~100:README.rst > before.rst
    python tools/first_hour.py --count before.rst
"""

import argparse
import dataclasses
import itertools
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / 'tests' / 'docs'))

import pages  # noqa: E402

README = ROOT / 'README.rst'
ISOLATES = 'lock create'
# It takes minutes, and is run by each check of a change.
LEFT_OUT = ('make test',)
NOVA_CONF = '/etc/nova/nova.conf'
USER = 1000
HOME = '/home/an operator'
CLONE = f'{HOME}/isolate-aggregates'
# The cloud of README's first answer, and what in it the lines above add.
EXAMPLE = 'examples/windows-licensing.yaml'
ADDED = (
    """\
  metadata:
    trait:CUSTOM_LICENSED_WINDOWS: required
  hosts:""",
    'properties: {trait:CUSTOM_LICENSED_WINDOWS: required, ',
)
LEFT = ('  hosts:', 'properties: {')
BEFORE, AFTER = f'{HOME}/before.yaml', f'{HOME}/after.yaml'
# Of this machine: where names are looked up, and whom to trust for packages.
MOUNT = """\
root=$1
shift
mount --bind /dev "$root/dev"
mount -t proc proc "$root/proc"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
mkdir -p "$root/etc/ssl/certs"
mount --bind /etc/ssl/certs "$root/etc/ssl/certs"
exec chroot "$root" "$@"
"""
# The variables of a new session, but for these of pip.
SESSION = """\
for name in $(compgen -e); do
    case $name in
        PIP_CERT|PIP_DEFAULT_TIMEOUT|PIP_INDEX_URL|SSL_CERT_*|*_proxy) ;;
        *) unset "$name" ;;
    esac
done
export PATH=/usr/bin:/bin HOME={home}
cd {clone}
set -e
"""


@dataclasses.dataclass(frozen=True)
class Lines:
    """What README has to paste.

    :param typed: The commands; those that change a cloud as one, which
        rehearses them.
    :param conf: The lines of nova.conf.
    :param packages: The Debian packages that it names.
    """

    typed: list[str]
    conf: str
    packages: list[str]


def lines(readme: pathlib.Path = README) -> Lines:
    """Return what is pasted, up to the first answer that README shows."""
    pasted: list[str] = []
    conf = ''
    for block in pages.blocks(readme):
        if block.language == 'ini':
            conf = conf or block.text
        pasted += [
            command.text
            for command in block.typed
            if command.text not in LEFT_OUT
        ]
        if any('|' in command.output for command in block.typed):
            break
    typed: list[str] = []
    for changes, group in itertools.groupby(pasted, changes_cloud):
        some = [*group]
        typed += [rehearsed(some)] if changes else some
    typed.append(same_answer(typed[-1]))
    [named] = re.findall(r"\(Debian's ([^)]*)\)", readme.read_text('utf-8'))
    return Lines(typed, conf, re.findall('``(.*?)``', named))


def changes_cloud(text: str) -> bool:
    """Return whether a command of README is about a live cloud."""
    return 'OS_CLOUD' in text or NOVA_CONF in text


def rehearsed(some: list[str]) -> str:
    """Return the command that rehearses those of a cloud, as they stand.

    Linux gives processes in a changed root no network of their own.
    """
    [cloud] = re.findall('OS_CLOUD=(.*)', '\n'.join(some))
    words = [
        *('isolate-aggregates', 'rehearse', '--any-network'),
        *('--snapshot', BEFORE, '--as-cloud', cloud, '--output', AFTER),
        *('--', 'bash', '-ec', '\n'.join(some)),
    ]
    return shlex.join(words)


def same_answer(text: str) -> str:
    """Return the command that fails if the rehearsed cloud answers otherwise.

    :param text: The command with README's first answer.
    """
    other = text.replace(EXAMPLE, shlex.quote(AFTER))
    return f'diff <({text}) <({other})'


def before(example: str) -> str:
    """Return the example as it is before the lines of README.

    :raises ValueError: if the example has nothing of what these add.
    """
    for added, left in zip(ADDED, LEFT, strict=True):
        if example.count(added) != 1:
            raise ValueError(f'{EXAMPLE} is not what README makes: {added}')
        example = example.replace(added, left)
    return example


def words(readme: pathlib.Path) -> tuple[int, bool]:
    """Return how many words one reads until an aggregate is isolated.

    Those of the whole page, and False, if none of its commands does that.
    """
    read = ''
    for line in readme.read_text('utf-8').splitlines():
        read += f'{line}\n'
        if ISOLATES in line and not line.endswith('\\') and '``' not in line:
            return len(read.split()), True
    return len(read.split()), False


def script(typed: list[str]) -> str:
    """Return a script that types commands, and notes when each has ended."""
    session = SESSION.format(home=shlex.quote(HOME), clone=shlex.quote(CLONE))
    noted = 'printf "%s\\t%s\\n" "$(date +%s.%N)" {} >> "$HOME/times"\n'
    return session + ''.join(
        f'echo {shlex.quote(f"$ {text}")} >&2\n'
        + f'{text}\n'
        + noted.format(shlex.quote(' '.join(text.replace('\\\n', '').split())))
        for text in typed
    )


def in_root(root: pathlib.Path, text: str) -> list[str]:
    """Return the command that runs a script in a root file system."""
    return [
        *('unshare', '--mount', 'sh', '-ec', MOUNT, 'sh', str(root)),
        *('setpriv', f'--reuid={USER}', f'--regid={USER}', '--clear-groups'),
        *('bash', '-c', text),
    ]


def machine(root: pathlib.Path, wanted: Lines) -> None:
    """Make the root file system, with the user and its clone."""
    run = subprocess.run
    release = platform.freedesktop_os_release()['VERSION_CODENAME']
    run(
        [
            *('mmdebstrap', '--quiet', '--mode=root', '--variant=minbase'),
            # A mirror may be older than its signature is valid.
            '--aptopt=Acquire::Check-Valid-Until "false"',
            f'--include={",".join(wanted.packages)}',
            *(release, str(root)),
        ],
        check=True,
    )
    clone = root / CLONE[1:]
    run(['git', 'clone', '--quiet', ROOT, clone], check=True)
    home = root / HOME[1:]
    example = (clone / EXAMPLE).read_text('utf-8')
    (root / BEFORE[1:]).write_text(before(example), 'utf-8')
    run(['chown', '-R', f'{USER}:{USER}', home], check=True)
    conf = root / NOVA_CONF[1:]
    conf.parent.mkdir()
    conf.write_text(wanted.conf)


def first_hour(root: pathlib.Path) -> list[tuple[float, str]]:
    """Paste the lines.

    :returns: How many seconds after the first one each command had ended.
    :raises subprocess.CalledProcessError: if one of them fails.
    """
    wanted = lines()
    machine(root, wanted)
    began = time.time()
    command = in_root(root, script(wanted.typed))
    subprocess.run(command, check=True)  # noqa: S603 - lines of README
    times = (root / HOME[1:] / 'times').read_text().splitlines()
    rows = [line.split('\t') for line in times]
    return [(float(moment) - began, text) for moment, text in rows]


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument(
        '--count',
        type=pathlib.Path,
        metavar='<file>',
        help='Only count the words of another README',
    )
    readme = parser.parse_args().count
    number, isolates = words(readme or README)
    if not isolates:
        print(f'{number} words, and no aggregate is isolated.')
        return
    if readme:
        print(f'{number} words until an aggregate is isolated.')
        return
    if os.geteuid() or not shutil.which('mmdebstrap'):
        sys.exit("It needs the superuser and Debian's mmdebstrap.")
    with tempfile.TemporaryDirectory(prefix='first-hour-') as folder:
        # The user goes through it.
        pathlib.Path(folder).chmod(0o711)
        rows = first_hour(pathlib.Path(folder, 'root'))
    for seconds, text in rows:
        print(f'{seconds:6.0f} s  {textwrap.shorten(text, 66)}')
    isolated = next(seconds for seconds, text in rows if ISOLATES in text)
    print(
        f'{isolated:.0f} seconds and {number} words until an aggregate is '
        'isolated.'
    )


if __name__ == '__main__':
    main()
