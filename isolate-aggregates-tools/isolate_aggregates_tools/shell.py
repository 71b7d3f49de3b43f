# SPDX-License-Identifier: Apache-2.0
"""Writes commands as text to paste into a shell.

Names of flavors, hosts and keys of metadata may have any character. So
commands in sentences, too, are written here, and nowhere else.
"""

from collections.abc import Iterable, Sequence
import enum
import re
import shlex

# The words before the name of a command of ours.
PROGRAM = 'isolate-aggregates'


class Kind(enum.Enum):
    """A command that is printed, and the options that it may have.

    A command without ``openstack`` is ours. The end-to-end tests run each
    with each of its options, so a new one needs a case there.

    :param words: The program and its subcommand. They have a microversion if
        the default of the client does not do.
    :param options: The names of its options.
    """

    AGGREGATE_ADD_HOST = 'openstack aggregate add host'
    AGGREGATE_CREATE = 'openstack aggregate create', '--zone'
    AGGREGATE_DELETE = 'openstack aggregate delete'
    AGGREGATE_REMOVE_HOST = 'openstack aggregate remove host'
    AGGREGATE_SET = (
        *('openstack aggregate set', '--name', '--property', '--zone'),
    )
    AGGREGATE_UNSET = 'openstack aggregate unset', '--property'

    FLAVOR_CREATE = (
        *('openstack flavor create', '--id', '--private'),
        *('--vcpus', '--ram', '--disk', '--ephemeral', '--swap'),
    )
    FLAVOR_DELETE = 'openstack flavor delete'
    FLAVOR_SET = (
        *('openstack flavor set', '--description', '--project', '--property'),
    )
    FLAVOR_UNSET = 'openstack flavor unset', '--project', '--property'

    IMAGE_CREATE = (
        *('openstack image create', '--file', '--id', '--disk-format'),
        *('--min-disk', '--min-ram', '--property'),
        *('--public', '--private', '--community', '--shared'),
    )
    IMAGE_DELETE = 'openstack image delete'
    IMAGE_SET = (
        *('openstack image set', '--property'),
        *('--public', '--private', '--community', '--shared'),
    )
    IMAGE_UNSET = 'openstack image unset', '--property'

    SERVER_DELETE = 'openstack server delete'
    SERVER_EVACUATE = 'openstack server evacuate'
    SERVER_LIST = 'openstack server list', '--all-projects', '--host'
    SERVER_MIGRATE = 'openstack server migrate', '--live-migration', '--wait'
    SERVER_MIGRATE_TO = (
        'openstack --os-compute-api-version=2.56 server migrate',
        *('--host', '--live-migration', '--wait'),
    )
    SERVER_MIGRATION_CONFIRM = 'openstack server migration confirm'
    SERVER_MIGRATION_LIST = 'openstack server migration list'
    SERVER_SHELVE = 'openstack server shelve'

    HYPERVISOR_LIST = 'openstack hypervisor list'
    SERVICE_LIST = 'openstack compute service list'
    SERVICE_SET = 'openstack compute service set', '--down', '--enable'

    ALLOCATION_DELETE = 'openstack resource provider allocation delete'
    INVENTORY_DELETE = (
        *('openstack resource provider inventory delete', '--resource-class'),
    )
    PROVIDER_DELETE = 'openstack resource provider delete'
    PROVIDER_LIST = 'openstack resource provider list', '--name'
    RESOURCE_CLASS_DELETE = (
        'openstack --os-placement-api-version 1.2 resource class delete'
    )
    TRAIT_CREATE = 'openstack --os-placement-api-version 1.6 trait create'

    # Of clients for Ironic, Blazar and Watcher.
    BAREMETAL_NODE_ADD_TRAIT = 'openstack baremetal node add trait'
    LEASE_HOST_SET = 'openstack reservation host set', '--extra'
    WATCHER_AUDIT_CREATE = (
        'openstack optimize audit create',
        *('--goal', '--parameter', '--strategy'),
    )

    HELP = 'help'
    KEY_ADD = 'key add', '--flavor', '--trait'
    LOCK_CREATE = 'lock create', '--trait'
    PROVIDER_UNSET = 'provider unset', '--aggregate', '--trait'
    RESERVATION_CREATE = 'reservation create', '--amount', '--id'
    RESERVATION_END = 'reservation end'
    RESERVATION_HISTORY_LIST = 'reservation history list'
    RESERVATION_HOST_LIST = 'reservation host list'
    RESERVATION_HOST_SET = 'reservation host set', '--disable', '--enable'
    RESERVATION_LIST = 'reservation list'
    RESERVATION_RECONCILE = 'reservation reconcile'
    RESERVATION_REPAIR = (
        *('reservation repair', '--call-off', '--evacuate', '--from'),
    )
    RESERVATION_SET = 'reservation set', '--amount', '--end', '--share'
    RESERVATION_SHOW = 'reservation show'
    SYNC = 'sync'

    def __init__(self, words: str, *options: str) -> None:
        self.words = tuple(words.split())
        self.options = frozenset(options)

    def __str__(self) -> str:
        return ' '.join(self.words)

    @property
    def is_ours(self) -> bool:
        return self.words[0] != 'openstack'


# What argparse takes for the value of an option, although it begins with "-".
_NEGATIVE = re.compile(r'-\d+|-\d*\.\d+', re.ASCII)


def command(kind: Kind, *words: str, names: Sequence[str] = ()) -> str:
    """Return a command as text to paste into bash, zsh or ksh.

    One of ours has no program, which the user has typed.

    :param words: Its options and their values.
    :param names: Its arguments, which are no options even if they start with
        ``-``.
    :raises ValueError: if the kind has no such option.
    """
    return line(words_of(kind, words, names))


def words_of(
    kind: Kind, words: Iterable[str], names: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the words of a command, unquoted.

    :raises ValueError: if the kind has no such option.
    """
    words = tuple(words)
    for word in words:
        option, _, _ = word.partition('=')
        if (
            option.startswith('-')
            and option not in kind.options
            and not _NEGATIVE.fullmatch(word)
        ):
            raise ValueError(f'{kind.name} has no option {option}')
    return (*kind.words, *words, *guarded(names))


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
