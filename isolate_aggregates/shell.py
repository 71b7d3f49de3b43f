# SPDX-License-Identifier: Apache-2.0
"""Writes commands as text to paste into a shell.

Names of flavors, hosts and keys of metadata may have any character. So
commands in sentences, too, are written here, and nowhere else.
"""

from collections.abc import Iterable, Sequence
import shlex


def command(program: str, *words: str, names: Sequence[str] = ()) -> str:
    """Return a command as text to paste into bash, zsh or ksh.

    :param program: The program and its subcommand, which are not quoted.
    :param words: Its options.
    :param names: Its arguments, which are no options even if they start with
        ``-``.
    """
    arguments = line((*words, *guarded(names)))
    return f'{program} {arguments}' if arguments else program


def line(words: Iterable[str]) -> str:
    """Return the words of a command, quoted where a shell needs it."""
    return ' '.join(map(quoted, words))


def quoted(word: str) -> str:
    """Return a word quoted for a shell, without control characters."""
    if word.isprintable() and "'" not in word:
        return shlex.quote(word)
    return f"$'{''.join(map(_escaped, word))}'"


def _escaped(character: str) -> str:
    # Interactive shells may expand "!" even within quotes.
    if character.isprintable() and character not in "'\\!":
        return character
    # Escaped as bytes, which do not depend on the locale.
    octets = character.encode('utf-8', 'surrogatepass')
    return ''.join(f'\\x{byte:02x}' for byte in octets)


def guarded(names: Sequence[str]) -> Sequence[str]:
    """Return arguments, after ``--`` if one looks like an option."""
    guard = any(name.startswith('-') for name in names)
    return ('--', *names) if guard else names


def option(name: str, value: str) -> Sequence[str]:
    """Return the words of an option with a value."""
    # With "=", a value may start with "-".
    return (f'{name}={value}',) if value.startswith('-') else (name, value)
