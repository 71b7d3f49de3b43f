# SPDX-License-Identifier: Apache-2.0
"""Runs commands where only the local API can be reached.

A program of its own, of the standard library only. Its argument is the number
of a socket, on which it

1. is told in JSON whether it may leave the networks, and what it protects,
2. answers with what it has done, and with a socket that listens there,
3. is told a number, a command, its variables and its longest time,
4. answers with the number, how the command ended, and what it left behind,
   and so on.

What the command starts is its descendant, whoever else ends: it ends what is
left, also when the socket is closed or it is terminated. Another line before
the answer ends the command, too: nothing waits for that answer any more.
"""

from collections.abc import Mapping, Sequence
import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import select
import signal
import socket
import struct
import sys
import time
from typing import Any

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_PR_SET_CHILD_SUBREAPER = 36
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
# A struct ifreq: a name and flags.
_FLAGS = '16sH14x'
_ADDRESS = '127.0.0.1'
# How long what is told to end may take, in seconds.
_PATIENCE = 5
# How often it looks whether a command has ended, in seconds.
_PAUSE = 0.02
_LIBC = ctypes.CDLL(None, use_errno=True)


def leave() -> str:
    """Have only a loopback from now on.

    :returns: Why the system does not allow it; empty if it does.
    """
    user, group = os.getuid(), os.getgid()
    if _LIBC.unshare(_CLONE_NEWUSER | _CLONE_NEWNET | _CLONE_NEWNS):
        return os.strerror(ctypes.get_errno())
    try:
        for name, text in (
            ('setgroups', 'deny'),
            ('uid_map', f'{user} {user} 1'),
            ('gid_map', f'{group} {group} 1'),
        ):
            pathlib.Path('/proc/self', name).write_text(text)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            asked = struct.pack(_FLAGS, b'lo', 0)
            answer = fcntl.ioctl(any_socket, _GET_FLAGS, asked)
            _, value = struct.unpack(_FLAGS, answer)
            up = struct.pack(_FLAGS, b'lo', value | _UP)
            fcntl.ioctl(any_socket, _SET_FLAGS, up)
    except OSError as exc:
        return str(exc.strerror)
    return ''


def mount(
    source: str | None,
    target: str,
    kind: str | None = None,
    flags: int = 0,
    data: str | None = None,
) -> None:
    """Mount something; raise OSError if that is not possible."""
    source_, target_, kind_, data_ = (
        None if text is None else os.fsencode(text)
        for text in (source, target, kind, data)
    )
    if _LIBC.mount(source_, target_, kind_, ctypes.c_ulong(flags), data_):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def protect(wanted: Mapping[str, Any]) -> str:
    """Keep what is written to the working folder elsewhere.

    :param wanted: ``folder``, ``upper`` and ``work``, and ``hidden``: files by
        those that hide them.
    :returns: Why that is not possible; empty if it is.
    """
    try:
        mount(None, '/', flags=_MS_REC | _MS_PRIVATE)
        problem = overlay(wanted['folder'], wanted['upper'], wanted['work'])
        # Afterwards: an overlay does not show what is mounted below it.
        for path, other in wanted['hidden'].items():
            mount(other, path, flags=_MS_BIND)
    except OSError as exc:
        return str(exc.strerror)
    return problem


def overlay(folder: str, upper: str, work: str) -> str:
    """Mount an overlay on the working folder; return why it is not possible.

    :param upper: The folder that gets what is written.
    """
    if any(set(',:\\') & set(path) for path in (folder, upper, work)):
        return 'its name has a comma, a colon or a backslash'
    options = f'lowerdir={folder},upperdir={upper},workdir={work},userxattr'
    try:
        mount('overlay', folder, 'overlay', data=options)
        os.chdir(folder)
    except OSError as exc:
        return str(exc.strerror)
    return ''


def children() -> dict[int, str]:
    """Return the processes below this one, with their names."""
    found = {}
    for entry in os.listdir('/proc'):
        if not entry.isdigit():
            continue
        try:
            text = pathlib.Path('/proc', entry, 'stat').read_text()
        except OSError:
            continue
        name, _, rest = text.partition('(')[2].rpartition(')')
        state, parent = rest.split()[:2]
        if int(parent) == os.getpid() and state != 'Z':
            found[int(entry)] = name
    return found


def has_children() -> bool:
    """Forget the children that have ended; return whether others are left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def end_rest() -> list[str]:
    """End what is left, which becomes a child of this one; return names."""
    names = set[str]()
    until = time.monotonic() + _PATIENCE
    while has_children():
        left = children()
        names.update(left.values())
        signum = signal.SIGTERM
        if time.monotonic() > until:
            signum = signal.SIGKILL
        for number in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signum)
        time.sleep(_PAUSE)
    return sorted(names)


def run(
    command: Sequence[str],
    environ: Mapping[str, str],
    channel: socket.socket,
    limit: float | None,
) -> int | None:
    """Run the command; return its exit status.

    It may run on if the other side of the socket closes or sends a line.

    :param limit: The longest time in seconds; None for any time.
    :returns: None if the command may run on.
    """
    until = None if limit is None else time.monotonic() + limit
    number = os.fork()
    if not number:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        try:
            # The user has given the command, for nothing else.
            os.execvpe(command[0], [*command], environ)  # noqa: S606
        except OSError as exc:
            print(f'{command[0]}: {exc.strerror}', file=sys.stderr)
        os._exit(127)
    while until is None or time.monotonic() < until:
        ended, status = os.waitpid(number, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if select.select([channel], [], [], _PAUSE)[0]:
            break
    return None


def main() -> None:
    """Do what the other side of the socket says."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    # Commands do not get it, so the other side notices the end of this one.
    channel.set_inheritable(False)
    lines = channel.makefile('r')
    wanted = json.loads(lines.readline())
    problem = open_folder = ''
    if wanted['isolated']:
        problem = leave()
        if not problem:
            open_folder = protect(wanted)
    else:
        open_folder = 'no namespace'
    if problem:
        channel.sendall(json.dumps({'problem': problem}).encode() + b'\n')
        return
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    listener = socket.create_server((_ADDRESS, 0), backlog=128)
    answer = json.dumps({'problem': '', 'open_folder': open_folder}) + '\n'
    socket.send_fds(channel, [answer.encode()], [listener.fileno()])
    listener.close()
    # As if the other side closes it: what it runs is ended first.
    signal.signal(
        signal.SIGTERM, lambda *_: channel.shutdown(socket.SHUT_RDWR)
    )
    # The command hears of Ctrl-C itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in lines:
        todo = json.loads(line)
        if not todo:
            # It was only to end a command.
            continue
        status = run(todo['command'], todo['environ'], channel, todo['limit'])
        result = {
            'number': todo['number'],
            'status': status,
            'left': end_rest(),
        }
        try:
            channel.sendall(json.dumps(result).encode() + b'\n')
        except BrokenPipeError:
            return


if __name__ == '__main__':
    main()
