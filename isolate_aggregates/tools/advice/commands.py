# SPDX-License-Identifier: Apache-2.0
"""The commands of repairs, with what each changes.

A command is one change of a cloud in all its forms: the words that make it,
the same change to a snapshot, and the parts that it touches. They refer to
objects by id if possible: names are not unique, and the ``openstack`` client
may mistake a name for an id. Where neither is so, the name is shown.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
from types import MappingProxyType

from oslo_utils import uuidutils

from isolate_aggregates import shell
from isolate_aggregates.aggregates import Aggregate, collation
from isolate_aggregates.aggregates.aggregate import ZONE
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request.extra_specs import REQUIRED, TRAIT_PREFIX
from isolate_aggregates.tools.cli.base import PROGRAM, program
from isolate_aggregates.tools.cloud import changes
from isolate_aggregates.tools.cloud.changes import Change
from isolate_aggregates.tools.cloud.file.document import derived_uuid
from isolate_aggregates.tools.placement.provider import Provider

# An object: its kind, and its name. Empty ones stand for all.
Thing = tuple[str, str]
EVERYTHING: Thing = ('', '')


class Command(tuple[str, ...]):
    """A program and its arguments, unquoted, and what they do.

    Commands are equal if their words are.

    :param change: Makes the same change to a snapshot.
    :param things: What is changed.
    :param host: The host that joins or leaves an aggregate; empty if none
        does.
    """

    change: Change
    things: frozenset[Thing]
    host: str

    def __new__(
        cls,
        words: Iterable[str],
        change: Change = changes.nothing,
        things: Iterable[Thing] = (EVERYTHING,),
        host: str = '',
    ) -> 'Command':
        self = super().__new__(cls, words)
        self.change, self.host = change, host
        self.things = frozenset(things)
        return self


# Commands to run in order until one fails.
Commands = tuple[Command, ...]

# The visibilities of an image, each of which is an option without a value.
VISIBILITIES = ('public', 'private', 'community', 'shared')

# Repairs traits on hosts, memberships in Placement, and rollups.
SYNC: Commands = (Command((PROGRAM, 'sync')),)

# Starts and ends reservations, which deletes the servers of ended ones.
RECONCILE: Commands = (Command((PROGRAM, 'reservation', 'reconcile')),)

# The name in a lock that nothing opens.
_BETWEEN = 'CUSTOM_CLOSED_DURING_REPAIR'

_NO_NAMES: Mapping[str, str] = MappingProxyType({})
_SIZES = ('vcpus', 'ram', 'disk', 'ephemeral', 'swap')
_Thing = Aggregate | Flavor | Image

# Choosing the host of a migration.
_TARGETS = ('--os-compute-api-version=2.56',)
_TRAITS = '1.6'

# Until it is filled in, the client refuses it before it creates anything.
_FILE = 'FILE'
_CLASSES = '1.2'


def shown(
    commands: Iterable[Sequence[str]], names: Mapping[str, str] = _NO_NAMES
) -> str:
    """Return commands as one line to paste into bash, zsh or ksh.

    The line has no control characters. It is empty if an argument cannot be
    written on a command line, because it contains a NUL character.

    :param names: The names to write instead of uuids.
    """
    commands = tuple(commands)
    if any('\0' in word for command in commands for word in command):
        return ''
    return ' && '.join(
        shell.line(_named(_as_shown(words), names)) for words in commands
    )


def names(things: Sequence[Flavor | Image]) -> Mapping[str, str]:
    """Return the names that mean the same to the client as uuids do."""
    taken = Counter(thing.name for thing in things)
    taken.update(thing.id for thing in things if thing.id)
    return {
        thing.id: thing.name
        for thing in things
        if uuidutils.is_uuid_like(thing.id)
        and taken[thing.name] == 1
        and not thing.name.startswith('-')
        # Of those of others, the client finds none by name.
        and getattr(thing, 'visibility', None) != 'community'
    }


def _named(words: Sequence[str], names: Mapping[str, str]) -> Iterator[str]:
    """Yield the words of a command, with names of flavors and images."""
    # A reservation may have the id of its flavor.
    is_of_them = words[1:2] in (('flavor',), ('image',))
    for word in words:
        option, sign, value = word.rpartition('=')
        if (is_of_them and not sign) or option in ('--flavor', '--image'):
            value = names.get(value, value)
        yield f'{option}{sign}{value}'


def _as_shown(words: Sequence[str]) -> Sequence[str]:
    """Return a command as the program that shows it calls it."""
    first, *others = words
    return (*program.get(), *others) if first == PROGRAM else words


# Aggregates.


def create_aggregate(name: str, zone: str | None = None) -> Command:
    """Return the command that creates a host aggregate."""
    return _on(
        Aggregate('', name),
        ('create', *(() if zone is None else (f'--zone={zone}',))),
        changes.new_aggregate(name, {} if zone is None else {ZONE: zone}),
    )


def delete_aggregate(aggregate: Aggregate) -> Command:
    """Return the command that deletes a host aggregate without hosts."""
    return _on(aggregate, ('delete',), changes.deleted(aggregate))


def set_zone(aggregate: Aggregate, zone: str) -> Command:
    """Return the command that sets the availability zone of an aggregate."""
    change = changes.values(aggregate, {ZONE: zone})
    return _on(aggregate, ('set', f'--zone={zone}'), change)


def rename_aggregate(aggregate: Aggregate, name: str) -> Command:
    """Return the command that renames a host aggregate."""
    change = changes.fields(aggregate, name=name)
    return _on(aggregate, ('set', f'--name={name}'), change)


def remove_hosts(aggregate: Aggregate, hosts: Iterable[str]) -> Commands:
    """Return the commands that remove hosts from a host aggregate."""
    return _hosts('remove', aggregate, hosts)


def add_hosts(aggregate: Aggregate, hosts: Iterable[str]) -> Commands:
    """Return the commands that add hosts to a host aggregate."""
    return _hosts('add', aggregate, hosts)


def _hosts(
    action: str, aggregate: Aggregate, hosts: Iterable[str]
) -> Commands:
    def change(host: str) -> Change:
        some = frozenset({host})
        is_added = action == 'add'
        return changes.hosts(
            aggregate, lambda old: old | some if is_added else old - some
        )

    return tuple(
        _on(aggregate, (action, 'host'), change(host), host)
        for host in sorted(hosts)
    )


# Metadata of aggregates, extra specs of flavors and properties of images. No
# key may have "=", which the client takes as the separator.


def set_value(thing: _Thing, key: str, value: str) -> Command:
    """Return the command that sets a value of an object."""
    change = changes.values(thing, {key: value})
    return _on(thing, ('set', *_property(f'{key}={value}')), change)


def unset(thing: _Thing, *keys: str) -> Commands:
    """Return the commands that remove values of an object."""
    return tuple(
        _on(
            thing,
            ('unset', *_property(key)),
            changes.values(thing, {key: None}),
        )
        for key in keys
    )


def replace_value(
    thing: _Thing, key: str, to: str, value: str, prefix: str = ''
) -> Commands:
    """Return the commands that replace a value of an object.

    Empty if the new key contains "=", which the client takes as the separator.

    :param prefix: The prefix of the keys that lock. With it, an aggregate is
        locked all the time.
    """
    if '=' in to:
        return ()
    put = set_value(thing, to, value)
    if key == to:
        return (put,)
    removed = unset(thing, key)
    if not collation.may_equal(key, to.lower()):
        return (put, *removed)
    # MySQL cannot have both at once, so a third key locks in between.
    if not prefix:
        return (*removed, put)
    between = prefix + _BETWEEN
    return (
        set_value(thing, between, REQUIRED),
        *removed,
        put,
        *unset(thing, between),
    )


def replace_spec(
    flavor: Flavor, to: str, value: str, instead_of: str
) -> Commands:
    return replace_value(flavor, instead_of, to, value)


# Flavors and images.


def create_flavor(flavor: Flavor) -> Commands:
    """Return the commands that create a flavor.

    Each fails if Nova refuses it. ``flavor create`` would only tell if the
    extra specs or the access of a project are refused, and end with 0, and it
    takes one project.
    """
    sizes = {n: v for n in _SIZES if (v := getattr(flavor, n))}
    words = (
        *(('--id', flavor.id) if flavor.id else ()),
        *(word for n, v in sizes.items() for word in (f'--{n}', str(v))),
        *(() if flavor.is_public else ('--private',)),
    )
    bare = dataclasses.replace(flavor, extra_specs={}, projects=frozenset())
    create = _on(
        flavor, ('create', *words), changes.new(bare), name=flavor.name
    )
    # As in the snapshot after the first command.
    made = dataclasses.replace(
        flavor, id=flavor.id or derived_uuid('flavor', flavor.name)
    )
    specs = flavor.extra_specs
    return (
        create,
        *(
            [
                _on(
                    flavor,
                    ('set', *_properties(specs)),
                    changes.values(made, specs),
                )
            ]
            if specs
            else []
        ),
        *(
            _on(
                flavor,
                ('set', f'--project={project}'),
                changes.access(made, project),
            )
            for project in sorted(flavor.projects)
        ),
    )


def delete_flavor(flavor: Flavor) -> Commands:
    """Return the command that deletes a flavor."""
    return (_on(flavor, ('delete',), changes.deleted(flavor)),)


def grant(flavor: Flavor, traits: Iterable[str]) -> Commands:
    """Return the commands that let a flavor use hosts locked by traits."""
    return tuple(
        Command(
            (
                PROGRAM,
                'key',
                'add',
                f'--flavor={_id(flavor)}',
                '--trait',
                trait,
            ),
            changes.values(flavor, {TRAIT_PREFIX + trait: REQUIRED}),
        )
        for trait in traits
    )


def lock(aggregate: str, trait: str) -> Commands:
    """Return the command that locks an aggregate.

    What it changes is not known: a name has to be filled in.
    """
    return (Command((PROGRAM, 'lock', 'create', aggregate, '--trait', trait)),)


def create_image(image: Image) -> Command:
    """Return the command that creates an image.

    The file with its data has to be filled in. Without one the client takes
    its input for the data if that is no terminal: the rest of a script.
    """
    words = (
        *('--file', _FILE),
        *(('--id', image.id) if image.id else ()),
        *(('--disk-format', image.disk_format) if image.disk_format else ()),
        *(('--min-disk', str(image.min_disk)) if image.min_disk else ()),
        *(('--min-ram', str(image.min_ram)) if image.min_ram else ()),
        *((f'--{image.visibility}',) if image.visibility else ()),
        *_properties(image.properties),
    )
    new = dataclasses.replace(image, owner=None, size=0)
    change = changes.new(new)
    return _on(image, ('create', *words), change, name=image.name)


def delete_image(image: Image) -> Command:
    """Return the command that deletes an image."""
    return _on(image, ('delete',), changes.deleted(image))


def set_visibility(image: Image, visibility: str) -> Command:
    """Return the command that sets the visibility of an image."""
    change = changes.fields(image, visibility=visibility)
    return _on(image, ('set', f'--{visibility}'), change)


# Placement, services, servers and reservations.


def create_trait(trait: str) -> Commands:
    """Return the command that creates a trait in Placement."""
    option = ('--os-placement-api-version', _TRAITS)
    words = _openstack((*option, 'trait', 'create'), trait)
    return (Command(words, changes.new_trait(trait), [('trait', trait)]),)


def enable_service(host: str) -> Commands:
    """Return the command that enables the compute service of a host."""
    words = ('compute', 'service', 'set', '--enable')
    change = changes.enabled_services([host])
    return (Command(_openstack(words, host, 'nova-compute'), change),)


def list_servers(host: str) -> Commands:
    """Return the command that lists the servers on a host."""
    words = ('server', 'list', '--all-projects', f'--host={host}')
    return (_openstack(words),)


def leave_aggregate(provider: Provider, aggregate: str) -> Commands:
    """Return the command that removes a provider from a Placement aggregate.

    :param aggregate: Its uuid.
    """
    return (_of_provider(provider, 'aggregate', aggregate),)


def remove_trait(provider: Provider, trait: str) -> Commands:
    """Return the command that removes a trait from a provider."""
    return (_of_provider(provider, 'trait', trait),)


def add_node_traits(nodes: Iterable[Provider], trait: str) -> Commands:
    """Return the commands that give nodes of bare metal a trait.

    nova-compute reports the traits that Ironic has, and no others.
    """
    words = ('openstack', 'baremetal', 'node', 'add', 'trait')
    return tuple(
        Command(
            (*words, node.name, trait),
            changes.names_of_provider(
                node.uuid, 'traits', lambda old: old | {trait}
            ),
        )
        for node in nodes
    )


def enable_reservations(hosts: Iterable[str]) -> Commands:
    """Return the command that enables hosts for reservations."""
    return _reservations('--enable', sorted(hosts))


def disable_reservations(hosts: Iterable[str]) -> Commands:
    """Return the command that gives hosts back to ordinary servers.

    It fails while reservations need them.
    """
    return _reservations('--disable', sorted(hosts))


def _reservations(option: str, hosts: Sequence[str]) -> Commands:
    words = (
        PROGRAM,
        'reservation',
        'host',
        'set',
        option,
        *shell.guarded(hosts),
    )
    return (Command(words, changes.pool(hosts, option == '--enable')),)


def repair_reservation(reservation: str) -> Commands:
    """Return the command that moves slots to hosts that can be used."""
    return (Command((PROGRAM, 'reservation', 'repair', reservation)),)


def delete_class(resource_class: str) -> Commands:
    """Return the command that deletes a resource class."""
    return (_placement(_CLASSES, ('class', 'delete'), resource_class),)


def delete_provider(provider: Provider) -> Commands:
    """Return the command that deletes a resource provider."""
    return (_placement('1.0', ('provider', 'delete'), provider.uuid),)


def migrate(server_id: str, live: bool, host: str = '') -> Commands:
    """Return the commands that migrate a server.

    :param host: Its new host; empty to let Nova choose.
    """
    words = (
        *(_TARGETS if host else ()),
        *('server', 'migrate'),
        *(('--live-migration',) if live else ()),
        *((f'--host={host}',) if host else ()),
        '--wait',
    )
    confirm = _openstack(('server', 'migration', 'confirm'), server_id)
    return (_openstack(words, server_id), *(() if live else (confirm,)))


def evacuate(server_id: str) -> Commands:
    """Return the commands that evacuate a server from a host that is down.

    The server arrives stopped. The client would wait for it to be active, so
    that ``--wait`` never ended.
    """
    return (_openstack(('server', 'evacuate'), server_id),)


def _on(
    thing: _Thing,
    words: Sequence[str],
    change: Change,
    host: str = '',
    name: str | None = None,
) -> Command:
    """Return a command on an object.

    :param host: The host that joins or leaves it.
    :param name: The name to give; None for the id, if it has one.
    """
    kind = type(thing).__name__.lower()
    # The names of images are not unique.
    label = _id(thing) if isinstance(thing, Image) else thing.name
    names = (_id(thing) if name is None else name, *filter(None, [host]))
    return Command(
        _openstack((kind, *words), *names), change, [(kind, label)], host
    )


def _of_provider(provider: Provider, part: str, name: str) -> Command:
    # The client of Placement can only replace all of them.
    return Command(
        (PROGRAM, 'provider', 'unset', provider.uuid, f'--{part}', name),
        changes.names_of_provider(
            provider.uuid, f'{part}s', lambda old: old - {name}
        ),
        [('provider', provider.uuid)],
    )


def _openstack(words: Sequence[str], *names: str) -> Command:
    return Command(('openstack', *words, *shell.guarded(names)))


def _placement(microversion: str, words: Sequence[str], name: str) -> Command:
    option = ('--os-placement-api-version', microversion)
    return _openstack((*option, 'resource', *words), name)


def _property(text: str) -> Sequence[str]:
    return shell.option('--property', text)


def _properties(values: Mapping[str, str]) -> Iterable[str]:
    return (
        word
        for key, value in sorted(values.items())
        for word in _property(f'{key}={value}')
    )


def _id(thing: _Thing) -> str:
    return thing.name if thing.id in (None, '') else str(thing.id)
