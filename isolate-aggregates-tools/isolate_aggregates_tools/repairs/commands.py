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
import json
from types import MappingProxyType
from typing import Any

from oslo_utils import uuidutils

from isolate_aggregates.aggregates import Aggregate, collation
from isolate_aggregates.aggregates.aggregate import ZONE
from isolate_aggregates.derived import derived_uuid
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request.extra_specs import REQUIRED, TRAIT_PREFIX
from isolate_aggregates_tools import shell
from isolate_aggregates_tools.cli.base import program
from isolate_aggregates_tools.cloud import changes
from isolate_aggregates_tools.cloud.changes import Change
from isolate_aggregates_tools.placement.provider import Provider
from isolate_aggregates_tools.shell import Kind

# An object: its kind, and its name. Empty ones stand for all.
Thing = tuple[str, str]
EVERYTHING: Thing = ('', '')


class Command(tuple[str, ...]):
    """A program and its arguments, unquoted, and what they do.

    Commands are equal if their words are.

    :param words: Its options and their values.
    :param names: Its arguments, which are no options even if they start with
        ``-``.
    :param change: Makes the same change to a snapshot.
    :param things: What is changed.
    :param host: The host that joins or leaves an aggregate; empty if none
        does.
    """

    kind: Kind
    change: Change
    things: frozenset[Thing]
    host: str

    def __new__(
        cls,
        kind: Kind,
        words: Iterable[str] = (),
        names: Sequence[str] = (),
        change: Change = changes.nothing,
        things: Iterable[Thing] = (EVERYTHING,),
        host: str = '',
    ) -> 'Command':
        first = (shell.PROGRAM,) if kind.is_ours else ()
        words = (*first, *shell.words_of(kind, words, names))
        self = super().__new__(cls, words)
        self.kind, self.change, self.host = kind, change, host
        self.things = frozenset(things)
        return self


# Commands to run in order until one fails.
Commands = tuple[Command, ...]

# The visibilities of an image, each of which is an option without a value.
VISIBILITIES = ('public', 'private', 'community', 'shared')

# Repairs traits on hosts, memberships in Placement, and rollups.
SYNC: Commands = (Command(Kind.SYNC),)

# Starts and ends reservations, which deletes the servers of ended ones.
RECONCILE: Commands = (Command(Kind.RESERVATION_RECONCILE),)

# The name in a lock that nothing opens.
_BETWEEN = 'CUSTOM_CLOSED_DURING_REPAIR'

_NO_NAMES: Mapping[str, str] = MappingProxyType({})
_SIZES = ('vcpus', 'ram', 'disk', 'ephemeral', 'swap')
_Thing = Aggregate | Flavor | Image
_SET = {
    Aggregate: Kind.AGGREGATE_SET,
    Flavor: Kind.FLAVOR_SET,
    Image: Kind.IMAGE_SET,
}
_UNSET = {
    Aggregate: Kind.AGGREGATE_UNSET,
    Flavor: Kind.FLAVOR_UNSET,
    Image: Kind.IMAGE_UNSET,
}

# Until it is filled in, the client refuses it before it creates anything.
_FILE = 'FILE'


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
    return (*program.get(), *others) if first == shell.PROGRAM else words


# Aggregates.


def create_aggregate(name: str, zone: str | None = None) -> Command:
    """Return the command that creates a host aggregate."""
    return _on(
        Kind.AGGREGATE_CREATE,
        Aggregate('', name),
        () if zone is None else (f'--zone={zone}',),
        changes.new_aggregate(name, {} if zone is None else {ZONE: zone}),
    )


def delete_aggregate(aggregate: Aggregate) -> Command:
    """Return the command that deletes a host aggregate without hosts."""
    return _on(
        Kind.AGGREGATE_DELETE, aggregate, (), changes.deleted(aggregate)
    )


def set_zone(aggregate: Aggregate, zone: str) -> Command:
    """Return the command that sets the availability zone of an aggregate."""
    change = changes.values(aggregate, {ZONE: zone})
    return _on(Kind.AGGREGATE_SET, aggregate, (f'--zone={zone}',), change)


def rename_aggregate(aggregate: Aggregate, name: str) -> Command:
    """Return the command that renames a host aggregate."""
    change = changes.fields(aggregate, name=name)
    return _on(Kind.AGGREGATE_SET, aggregate, (f'--name={name}',), change)


def remove_hosts(aggregate: Aggregate, hosts: Iterable[str]) -> Commands:
    """Return the commands that remove hosts from a host aggregate."""

    def change(host: str) -> Change:
        return changes.hosts(aggregate, lambda old: old - {host})

    kind = Kind.AGGREGATE_REMOVE_HOST
    return tuple(
        _on(kind, aggregate, (), change(host), host) for host in sorted(hosts)
    )


def add_hosts(aggregate: Aggregate, hosts: Iterable[str]) -> Commands:
    """Return the commands that add hosts to a host aggregate."""

    def change(host: str) -> Change:
        return changes.hosts(aggregate, lambda old: old | {host})

    kind = Kind.AGGREGATE_ADD_HOST
    return tuple(
        _on(kind, aggregate, (), change(host), host) for host in sorted(hosts)
    )


# Metadata of aggregates, extra specs of flavors and properties of images. No
# key may have "=", which the client takes as the separator.


def set_value(thing: _Thing, key: str, value: str) -> Command:
    """Return the command that sets a value of an object."""
    change = changes.values(thing, {key: value})
    return _on(_SET[type(thing)], thing, _property(f'{key}={value}'), change)


def unset(thing: _Thing, *keys: str) -> Commands:
    """Return the commands that remove values of an object."""
    return tuple(
        _on(
            _UNSET[type(thing)],
            thing,
            _property(key),
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
        Kind.FLAVOR_CREATE,
        *(flavor, words, changes.new(bare)),
        name=flavor.name,
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
                    Kind.FLAVOR_SET,
                    flavor,
                    _properties(specs),
                    changes.values(made, specs),
                )
            ]
            if specs
            else []
        ),
        *(
            _on(
                Kind.FLAVOR_SET,
                flavor,
                (f'--project={project}',),
                changes.access(made, project),
            )
            for project in sorted(flavor.projects)
        ),
    )


def delete_flavor(flavor: Flavor) -> Commands:
    """Return the command that deletes a flavor."""
    return (_on(Kind.FLAVOR_DELETE, flavor, (), changes.deleted(flavor)),)


def grant(flavor: Flavor, traits: Iterable[str]) -> Commands:
    """Return the commands that let a flavor use hosts locked by traits."""
    return tuple(
        Command(
            Kind.KEY_ADD,
            (f'--flavor={_id(flavor)}', '--trait', trait),
            change=changes.values(flavor, {TRAIT_PREFIX + trait: REQUIRED}),
        )
        for trait in traits
    )


def grant_to_any(traits: Iterable[str]) -> Commands:
    """Return the commands that let a flavor, to be filled in, use hosts.

    What they change is not known.
    """
    return tuple(
        Command(Kind.KEY_ADD, ('--flavor', 'FLAVOR', '--trait', trait))
        for trait in traits
    )


def lock(aggregate: str, trait: str) -> Commands:
    """Return the command that locks an aggregate.

    What it changes is not known: a name has to be filled in.
    """
    return (Command(Kind.LOCK_CREATE, (aggregate, '--trait', trait)),)


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
    return _on(Kind.IMAGE_CREATE, image, words, change, name=image.name)


def delete_image(image: Image) -> Command:
    """Return the command that deletes an image."""
    return _on(Kind.IMAGE_DELETE, image, (), changes.deleted(image))


def set_visibility(image: Image, visibility: str) -> Command:
    """Return the command that sets the visibility of an image."""
    change = changes.fields(image, visibility=visibility)
    return _on(Kind.IMAGE_SET, image, (f'--{visibility}',), change)


# Placement, services, servers and reservations.


def create_trait(trait: str) -> Commands:
    """Return the command that creates a trait in Placement."""
    change = changes.new_trait(trait)
    thing = ('trait', trait)
    return (
        Command(
            Kind.TRAIT_CREATE, names=[trait], change=change, things=[thing]
        ),
    )


def enable_service(host: str) -> Commands:
    """Return the command that enables the compute service of a host."""
    change = changes.enabled_services([host])
    names = (host, 'nova-compute')
    return (Command(Kind.SERVICE_SET, ('--enable',), names, change),)


def list_servers(host: str) -> Commands:
    """Return the command that lists the servers on a host."""
    return (Command(Kind.SERVER_LIST, ('--all-projects', f'--host={host}')),)


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
    return tuple(
        Command(
            Kind.BAREMETAL_NODE_ADD_TRAIT,
            names=(node.name, trait),
            change=changes.names_of_provider(
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
    change = changes.pool(hosts, option == '--enable')
    return (Command(Kind.RESERVATION_HOST_SET, (option,), hosts, change),)


def set_amount(reservation: str, amount: int) -> Commands:
    """Return the command that gives a reservation another number of slots."""
    words = ('--amount', str(amount))
    return (Command(Kind.RESERVATION_SET, words, [reservation]),)


def repair_reservation(reservation: str) -> Commands:
    """Return the command that moves slots to hosts that can be used."""
    return (Command(Kind.RESERVATION_REPAIR, names=[reservation]),)


def delete_class(resource_class: str) -> Commands:
    """Return the command that deletes a resource class."""
    return (Command(Kind.RESOURCE_CLASS_DELETE, names=[resource_class]),)


def delete_provider(provider: Provider) -> Commands:
    """Return the command that deletes a resource provider."""
    return (Command(Kind.PROVIDER_DELETE, names=[provider.uuid]),)


def migrate(server_id: str, live: bool, host: str = '') -> Commands:
    """Return the commands that migrate a server.

    :param host: Its new host; empty to let Nova choose.
    """
    kind = Kind.SERVER_MIGRATE_TO if host else Kind.SERVER_MIGRATE
    words = (
        *(('--live-migration',) if live else ()),
        *((f'--host={host}',) if host else ()),
        '--wait',
    )
    confirm = Command(Kind.SERVER_MIGRATION_CONFIRM, names=[server_id])
    return (
        Command(kind, words, [server_id]),
        *(() if live else (confirm,)),
    )


def evacuate(server_id: str) -> Commands:
    """Return the commands that evacuate a server from a host that is down.

    The server arrives stopped. The client would wait for it to be active, so
    that ``--wait`` never ended.
    """
    return (Command(Kind.SERVER_EVACUATE, names=[server_id]),)


def run_watcher_actions(actions: Sequence[Mapping[str, Any]]) -> Commands:
    """Return the command that lets OpenStack Watcher run given actions."""
    words = (
        *('--goal=unclassified', '--strategy=actuator'),
        f'--parameter=actions={json.dumps(actions)}',
    )
    return (Command(Kind.WATCHER_AUDIT_CREATE, words),)


def _on(
    kind: Kind,
    thing: _Thing,
    words: Iterable[str],
    change: Change,
    host: str = '',
    name: str | None = None,
) -> Command:
    """Return a command on an object.

    :param host: The host that joins or leaves it.
    :param name: The name to give; None for the id, if it has one.
    """
    # The names of images are not unique.
    label = _id(thing) if isinstance(thing, Image) else thing.name
    names = (_id(thing) if name is None else name, *filter(None, [host]))
    things = [(type(thing).__name__.lower(), label)]
    return Command(kind, words, names, change, things, host)


def _of_provider(provider: Provider, part: str, name: str) -> Command:
    # The client of Placement can only replace all of them.
    return Command(
        Kind.PROVIDER_UNSET,
        (provider.uuid, f'--{part}', name),
        (),
        changes.names_of_provider(
            provider.uuid, f'{part}s', lambda old: old - {name}
        ),
        [('provider', provider.uuid)],
    )


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
