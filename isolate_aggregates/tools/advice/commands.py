# SPDX-License-Identifier: Apache-2.0
"""The commands of repairs.

They refer to objects by id if possible: names are not unique, and the
``openstack`` client may mistake a name for an id.
"""

from collections.abc import Iterable, Mapping, Sequence
import contextvars
import shlex
from types import MappingProxyType

from isolate_aggregates.aggregates import Aggregate, collation
from isolate_aggregates.placement.provider import Provider
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request.extra_specs import REQUIRED

# A program and its arguments, unquoted.
Command = tuple[str, ...]

# Commands to run in order until one fails.
Commands = tuple[Command, ...]

PROGRAM = 'isolate-aggregates'

# The names of our commands in the program that shows them, by their own names.
client_names: contextvars.ContextVar[Mapping[str, str]] = (
    contextvars.ContextVar('client_names', default=MappingProxyType({}))
)

# The visibilities of an image, each of which is an option without a value.
VISIBILITIES = ('public', 'private', 'community', 'shared')

# Options without a value.
FLAGS = (
    '--all-projects',
    '--disable',
    '--enable',
    '--live-migration',
    '--wait',
    *(f'--{visibility}' for visibility in VISIBILITIES),
)

# Repairs traits on hosts, memberships in Placement, and rollups.
SYNC: Commands = ((PROGRAM, 'sync'),)

# Starts and ends reservations, which deletes the servers of ended ones.
RECONCILE: Commands = ((PROGRAM, 'reservation', 'reconcile'),)

# The name in a lock that nothing opens.
_BETWEEN = 'CUSTOM_CLOSED_DURING_REPAIR'

# Later microversions require the generation, which may change between audit
# and repair.
_MEMBERSHIP = '1.18'
# Choosing the host of a migration.
_TARGETS = ('--os-compute-api-version=2.56',)
_TRAITS = '1.6'
_CLASSES = '1.2'


def shown(commands: Iterable[Command]) -> str:
    """Return commands as one line to paste into bash, zsh or ksh.

    The line has no control characters. It is empty if an argument cannot be
    written on a command line, because it contains a NUL character.
    """
    commands = tuple(commands)
    if any('\0' in word for command in commands for word in command):
        return ''
    return ' && '.join(
        ' '.join(map(quoted, _named(words))) for words in commands
    )


def _named(words: Command) -> Command:
    """Return a command as the program that shows it calls it."""
    names = client_names.get()
    program, *rest = words
    for end in range(len(rest) if program == PROGRAM else 0, 0, -1):
        name = names.get(' '.join(rest[:end]))
        if name:
            return ('openstack', *name.split(), *rest[end:])
    return words


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


def create_aggregate(name: str, zone: str | None = None) -> Command:
    """Return the command that creates a host aggregate."""
    option = (f'--zone={zone}',) if zone else ()
    return _openstack(('aggregate', 'create', *option), name)


def delete_aggregate(aggregate: Aggregate) -> Command:
    """Return the command that deletes a host aggregate without hosts."""
    return _openstack(('aggregate', 'delete'), _id_of(aggregate))


def set_zone(aggregate: Aggregate, zone: str) -> Command:
    """Return the command that sets the availability zone of an aggregate."""
    words = ('aggregate', 'set', f'--zone={zone}')
    return _openstack(words, _id_of(aggregate))


def rename_aggregate(aggregate: Aggregate, name: str) -> Command:
    """Return the command that renames a host aggregate."""
    words = ('aggregate', 'set', f'--name={name}')
    return _openstack(words, _id_of(aggregate))


def remove_hosts(aggregate: Aggregate, hosts: Iterable[str]) -> Commands:
    """Return the commands that remove hosts from a host aggregate."""
    return _hosts('remove', aggregate, hosts)


def add_hosts(aggregate: Aggregate, hosts: Iterable[str]) -> Commands:
    """Return the commands that add hosts to a host aggregate."""
    return _hosts('add', aggregate, hosts)


def unset_tags(aggregate: Aggregate, keys: Iterable[str]) -> Commands:
    """Return the commands that remove metadata from an aggregate."""
    return tuple(
        _openstack(('aggregate', 'unset', *_property(key)), _id_of(aggregate))
        for key in keys
    )


def set_tag(aggregate: Aggregate, key: str, value: str) -> Command:
    """Return the command that sets metadata of an aggregate.

    :param key: The key, without "=", which the client takes as the separator.
    """
    words = ('aggregate', 'set', *_property(f'{key}={value}'))
    return _openstack(words, _id_of(aggregate))


def replace_tag(
    aggregate: Aggregate,
    key: str,
    to: str,
    value: str,
    prefix: str = '',
) -> Commands:
    """Return the commands that replace metadata of an aggregate.

    Empty if the new key contains "=", which the client takes as the separator.

    :param prefix: The prefix of the keys that lock. With it, the aggregate is
        locked all the time.
    """
    if '=' in to:
        return ()
    put = set_tag(aggregate, to, value)
    if key == to:
        return (put,)
    unset = unset_tags(aggregate, [key])
    if collation.may_equal(key, to.lower()):
        # MySQL cannot have both at once, so a third key locks in between.
        between = prefix + _BETWEEN
        if not prefix:
            return (*unset, put)
        return (
            set_tag(aggregate, between, REQUIRED),
            *unset,
            put,
            *unset_tags(aggregate, [between]),
        )
    return (put, *unset)


def create_flavor(flavor: Flavor) -> Command:
    """Return the command that creates a flavor."""
    sizes = {
        name: value
        for name in ('vcpus', 'ram', 'disk', 'ephemeral', 'swap')
        if (value := getattr(flavor, name))
    }
    words = (
        *(('--id', flavor.id) if flavor.id else ()),
        *(word for n, v in sizes.items() for word in (f'--{n}', str(v))),
        *_properties(flavor.extra_specs),
    )
    return _openstack(('flavor', 'create', *words), flavor.name)


def set_spec(flavor: Flavor, key: str, value: str) -> Command:
    """Return the command that sets an extra spec of a flavor.

    :param key: The key, without "=", which the client takes as the separator.
    """
    words = ('flavor', 'set', *_property(f'{key}={value}'))
    return _openstack(words, flavor.id or flavor.name)


def unset_spec(flavor: Flavor, key: str) -> Commands:
    """Return the command that removes an extra spec from a flavor."""
    words = ('flavor', 'unset', *_property(key))
    return (_openstack(words, flavor.id or flavor.name),)


def replace_spec(
    flavor: Flavor, to: str, value: str, instead_of: str
) -> Commands:
    """Return the commands that replace an extra spec of a flavor.

    Empty if the new key contains "=", which the client takes as the separator.
    """
    if '=' in to:
        return ()
    put = set_spec(flavor, to, value)
    if instead_of == to:
        return (put,)
    unset = unset_spec(flavor, instead_of)
    if collation.may_equal(instead_of, to.lower()):
        # MySQL cannot have both at once.
        return (*unset, put)
    return (put, *unset)


def delete_flavor(flavor: Flavor) -> Commands:
    """Return the command that deletes a flavor."""
    return (_openstack(('flavor', 'delete'), flavor.id or flavor.name),)


def grant(flavor: Flavor, traits: Iterable[str]) -> Commands:
    """Return the commands that let a flavor use hosts locked by traits."""
    name = flavor.id or flavor.name
    return tuple(
        (PROGRAM, 'grant', f'--flavor={name}', '--trait', trait)
        for trait in traits
    )


def create_image(image: Image) -> Command:
    """Return the command that creates an image, without its data."""
    words = (
        *(('--id', image.id) if image.id else ()),
        *(('--disk-format', image.disk_format) if image.disk_format else ()),
        *(('--min-disk', str(image.min_disk)) if image.min_disk else ()),
        *(('--min-ram', str(image.min_ram)) if image.min_ram else ()),
        *((f'--{image.visibility}',) if image.visibility else ()),
        *_properties(image.properties),
    )
    return _openstack(('image', 'create', *words), image.name)


def delete_image(image: Image) -> Command:
    """Return the command that deletes an image."""
    return _openstack(('image', 'delete'), image.id or image.name)


def set_visibility(image: Image, visibility: str) -> Command:
    """Return the command that sets the visibility of an image."""
    words = ('image', 'set', f'--{visibility}')
    return _openstack(words, image.id or image.name)


def unset_property(image: Image, key: str) -> Commands:
    """Return the command that removes a property from an image."""
    words = ('image', 'unset', *_property(key))
    return (_openstack(words, image.id or image.name),)


def set_property(image: Image, key: str, value: str) -> Commands:
    """Return the command that sets a property of an image.

    :param key: The key, without "=", which the client takes as the separator.
    """
    words = ('image', 'set', *_property(f'{key}={value}'))
    return (_openstack(words, image.id or image.name),)


def create_trait(trait: str) -> Commands:
    """Return the command that creates a trait in Placement."""
    option = ('--os-placement-api-version', _TRAITS)
    return (_openstack((*option, 'trait', 'create'), trait),)


def enable_service(host: str) -> Commands:
    """Return the command that enables the compute service of a host."""
    words = ('compute', 'service', 'set', '--enable')
    return (_openstack(words, host, 'nova-compute'),)


def list_servers(host: str) -> Commands:
    """Return the command that lists the servers on a host."""
    words = ('server', 'list', '--all-projects', f'--host={host}')
    return (_openstack(words),)


def set_members(provider: Provider, without: str) -> Commands:
    """Return the command that removes a provider from a Placement aggregate.

    :param without: The uuid of the aggregate.
    """
    rest = provider.aggregates - {without}
    words = ('provider', 'aggregate', 'set', *_each('--aggregate', rest))
    return (_placement(_MEMBERSHIP, words, provider.uuid),)


def set_traits(provider: Provider, without: str) -> Commands:
    """Return the command that removes a trait from a provider."""
    rest = provider.traits - {without}
    words = ('provider', 'trait', 'set', *_each('--trait', rest))
    return (_placement(_TRAITS, words, provider.uuid),)


def enable_reservations(hosts: Iterable[str]) -> Commands:
    """Return the command that enables hosts for reservations."""
    words = (PROGRAM, 'reservation', 'host', 'set', '--enable')
    return ((*words, *_guarded(sorted(hosts))),)


def disable_reservations(hosts: Iterable[str]) -> Commands:
    """Return the command that gives hosts back to ordinary servers.

    It fails while reservations need them.
    """
    words = (PROGRAM, 'reservation', 'host', 'set', '--disable')
    return ((*words, *_guarded(sorted(hosts))),)


def repair_reservation(reservation: str) -> Commands:
    """Return the command that moves slots to hosts that can be used."""
    return ((PROGRAM, 'reservation', 'repair', reservation),)


def delete_class(resource_class: str) -> Commands:
    """Return the command that deletes a resource class."""
    return (_placement(_CLASSES, ('class', 'delete'), resource_class),)


def delete_provider(provider: Provider) -> Commands:
    """Return the command that deletes a resource provider."""
    return (_placement('1.0', ('provider', 'delete'), provider.uuid),)


def migrate(server_id: str, live: bool) -> Commands:
    """Return the commands that migrate a server to another host."""
    words = ('server', 'migrate')
    if live:
        options = ('--live-migration', '--wait')
        return (_openstack((*words, *options), server_id),)
    return (
        _openstack((*words, '--wait'), server_id),
        _openstack((*words, 'confirm'), server_id),
    )


def migrate_to(server_id: str, host: str, live: bool) -> Commands:
    """Return the commands that migrate a server to a host."""
    words = (*_TARGETS, 'server', 'migrate')
    options = ('--live-migration',) if live else ()
    move = _openstack(
        (*words, *options, f'--host={host}', '--wait'), server_id
    )
    if live:
        return (move,)
    return move, _openstack(('server', 'migrate', 'confirm'), server_id)


def _hosts(
    action: str, aggregate: Aggregate, hosts: Iterable[str]
) -> Commands:
    words = ('aggregate', action, 'host')
    return tuple(
        _openstack(words, _id_of(aggregate), host) for host in sorted(hosts)
    )


def _openstack(words: Sequence[str], *names: str) -> Command:
    return ('openstack', *words, *_guarded(names))


def _placement(microversion: str, words: Sequence[str], name: str) -> Command:
    option = ('--os-placement-api-version', microversion)
    return _openstack((*option, 'resource', *words), name)


def _guarded(names: Sequence[str]) -> Sequence[str]:
    # A name that starts with "-" looks like an option.
    guard = any(name.startswith('-') for name in names)
    return ('--', *names) if guard else names


def _property(text: str) -> Command:
    # With "=", a value may start with "-".
    if text.startswith('-'):
        return (f'--property={text}',)
    return ('--property', text)


def _properties(values: Mapping[str, str]) -> Iterable[str]:
    return (
        word
        for key, value in sorted(values.items())
        for word in _property(f'{key}={value}')
    )


def _each(option: str, values: Iterable[str]) -> Iterable[str]:
    return (word for value in sorted(values) for word in (option, value))


def _id_of(aggregate: Aggregate) -> str:
    return aggregate.name if aggregate.id is None else str(aggregate.id)
