# SPDX-License-Identifier: Apache-2.0
"""A line of each kind of printed commands, in stories, and what it changes.

They are made as our programs make them. A story is given a cloud, with what it
needs, and yields a line after the other. A test runs them on a real cloud; a
unit test only looks which commands there are.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools import shell
from isolate_aggregates_tools.placement.provider import Provider
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.shell import Kind

TRAIT = 'CUSTOM_PRINTED'
# Says that sync has added it.
MARK = f'CUSTOM_ISOLATE_SYNC_{TRAIT}'
RESOURCE_CLASS = 'CUSTOM_PRINTED'
FROM, TO, OTHER = 'host1', 'host2', 'host3'


@dataclasses.dataclass(frozen=True)
class Line:
    """A printed line.

    :param kind: The command in it.
    :param text: What is pasted into a shell.
    :param changes: What it changes: for each object its new attributes, or
        None if it is deleted.
    :param more: What an operator has to add to it.
    :param codes: The exit statuses that it may have.
    """

    kind: Kind
    text: str
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    more: str = ''
    codes: tuple[int, ...] = (0,)


def repair(command, changes=None):
    """Return the line of a repair or of the step of an effect."""
    return Line(command.kind, commands.shown([command]), changes or {})


def advised(kind, *words, names=(), changes=None, more='', codes=(0,)):
    """Return the line in a sentence."""
    text = shell.command(kind, *words, names=names)
    if kind.is_ours:
        text = f'{shell.PROGRAM} {text}'
    return Line(kind, text, changes or {}, more, codes)


def aggregates(cloud):
    name, new = cloud.name('pool'), cloud.name('other pool')
    yield repair(
        commands.create_aggregate(name, 'zone-1'),
        {
            f'aggregate {name}': {
                'zone': 'zone-1',
                'hosts': [],
                'metadata': {'availability_zone': 'zone-1'},
            }
        },
    )
    aggregate = Aggregate('', name, id=cloud.id_of('aggregate', name))
    as_named = Aggregate('', name)
    yield repair(
        commands.set_zone(as_named, 'zone-2'),
        {
            f'aggregate {name}': {
                'zone': 'zone-2',
                'metadata': {'availability_zone': 'zone-2'},
            }
        },
    )
    yield repair(
        commands.rename_aggregate(aggregate, new),
        {
            f'aggregate {name}': None,
            f'aggregate {new}': {
                'zone': 'zone-2',
                'hosts': [],
                'metadata': {'availability_zone': 'zone-2'},
            },
        },
    )
    [add] = commands.add_hosts(aggregate, [FROM])
    yield repair(
        add,
        {
            f'aggregate {new}': {'hosts': [FROM]},
            f'provider {FROM}': {'aggregates': [new]},
        },
    )
    yield repair(
        commands.set_value(aggregate, 'a key', '-value; with more'),
        {
            f'aggregate {new}': {
                'metadata': {
                    'a key': '-value; with more',
                    'availability_zone': 'zone-2',
                }
            }
        },
    )
    [unset] = commands.unset(aggregate, 'a key')
    yield repair(
        unset,
        {
            f'aggregate {new}': {
                'metadata': {'availability_zone': 'zone-2'},
            }
        },
    )
    [remove] = commands.remove_hosts(aggregate, [FROM])
    yield repair(
        remove,
        {
            f'aggregate {new}': {'hosts': []},
            f'provider {FROM}': {'aggregates': []},
        },
    )
    yield repair(
        commands.delete_aggregate(aggregate), {f'aggregate {new}': None}
    )


def flavors(cloud):
    name, demo = cloud.name('-flavor'), cloud.project('demo')
    projects = sorted([demo, cloud.project('alt_demo')])
    flavor = Flavor(
        name, cloud.uuid('flavor'), 1, 64, 2, 3, 4, {'a': 'b=c', 'd': 'e f'},
        is_public=False, projects=frozenset(projects),
    )  # fmt: skip
    made = {
        'vcpus': 1, 'ram': 64, 'disk': 2, 'ephemeral': 3, 'swap': 4,
        'description': None, 'extra_specs': {}, 'projects': [],
        'is_public': False,
    }  # fmt: skip
    thing = f'flavor {name}'
    changes = (
        made,
        {'extra_specs': {'a': 'b=c', 'd': 'e f'}},
        {'projects': projects[:1]},
        {'projects': projects},
    )
    steps = commands.create_flavor(flavor)
    for step, change in zip(steps, changes, strict=True):
        yield repair(step, {thing: change})
    [unset] = commands.unset(flavor, 'a')
    yield repair(unset, {thing: {'extra_specs': {'d': 'e f'}}})
    yield advised(
        Kind.FLAVOR_UNSET,
        *shell.option('--project', projects[0]),
        names=[name],
        changes={thing: {'projects': projects[1:]}},
    )
    yield advised(
        *(Kind.FLAVOR_SET, '--description', 'TEXT'),
        names=[name],
        changes={thing: {'description': 'TEXT'}},
    )
    [delete] = commands.delete_flavor(flavor)
    yield repair(delete, {thing: None})


def images(cloud):
    others = (*commands.VISIBILITIES[1:], commands.VISIBILITIES[0])
    for first, then in zip(commands.VISIBILITIES, others, strict=True):
        image = Image(
            cloud.name(first), cloud.uuid(first), {'hw_cpu_cores': '2'},
            visibility=first, disk_format='raw', min_ram=1, min_disk=2,
        )  # fmt: skip
        thing = f'image {image.name}'
        yield repair(
            commands.create_image(image),
            {
                thing: {
                    'id': image.id,
                    'visibility': first,
                    'disk_format': 'raw',
                    'min_ram': 1,
                    'min_disk': 2,
                    'size': len(cloud.data),
                    'hw_cpu_cores': '2',
                }
            },
        )
        yield repair(
            commands.set_visibility(image, then), {thing: {'visibility': then}}
        )
        yield repair(
            commands.set_value(image, 'trait:A', '$(it)'),
            {thing: {'trait:A': '$(it)'}},
        )
        [unset] = commands.unset(image, 'trait:A')
        yield repair(unset, {thing: {'trait:A': None}})
        yield repair(commands.delete_image(image), {thing: None})


def providers(cloud):
    name = cloud.name('provider')
    thing = f'provider {name}'
    [create] = commands.create_trait(TRAIT)
    yield repair(create, {f'trait {TRAIT}': {}})
    uuid, consumer = cloud.provider(name, TRAIT, RESOURCE_CLASS)
    provider = Provider(uuid, name)
    yield advised(Kind.PROVIDER_LIST, *shell.option('--name', name))
    yield advised(
        Kind.ALLOCATION_DELETE,
        names=[consumer],
        changes={thing: {'consumers': []}},
    )
    [unset] = commands.remove_trait(provider, TRAIT)
    yield repair(unset, {thing: {'traits': ['CUSTOM_OTHER']}})
    [leave] = commands.leave_aggregate(provider, cloud.uuid('first'))
    yield repair(leave, {thing: {'aggregates': [cloud.uuid('second')]}})
    yield advised(
        *(Kind.INVENTORY_DELETE, '--resource-class', RESOURCE_CLASS),
        names=[uuid],
        changes={thing: {'inventories': {'VCPU': 4}}},
    )
    [delete] = commands.delete_class(RESOURCE_CLASS)
    yield repair(delete, {f'class {RESOURCE_CLASS}': None})
    [delete] = commands.delete_provider(provider)
    yield repair(delete, {thing: None})


def locks(cloud):
    aggregate = cloud.aggregate('win', [FROM])
    flavor = cloud.flavor('win')
    [lock] = commands.lock(aggregate.name, TRAIT)
    member = f'provider {FROM}'
    traits = sorted([*cloud.traits(FROM), TRAIT, MARK])
    yield repair(
        lock,
        {
            f'aggregate {aggregate.name}': {
                'metadata': {f'trait:{TRAIT}': 'required'}
            },
            f'trait {TRAIT}': {},
            f'trait {MARK}': {},
            member: {'traits': traits},
        },
    )
    [grant] = commands.grant(flavor, [TRAIT])
    thing = f'flavor {flavor.name}'
    with_key = {'extra_specs': {f'trait:{TRAIT}': 'required'}}
    yield repair(grant, {thing: with_key})
    cloud.revoke(flavor)
    [grant] = commands.grant_to_any([TRAIT])
    line = repair(grant, {thing: with_key})
    yield dataclasses.replace(
        line, text=line.text.replace('FLAVOR', flavor.name)
    )
    yield advised(Kind.HELP, 'lock')
    cloud.remove_trait(FROM, TRAIT)
    [sync] = commands.SYNC
    yield repair(sync, {member: {'traits': traits}})


def servers(cloud):
    server = cloud.server('server', FROM)
    thing = f'server {server.name}'
    traits = sorted(cloud.traits(OTHER))
    cloud.disable(OTHER)
    yield repair(*commands.list_servers(FROM))
    yield advised(Kind.SERVICE_LIST)
    yield advised(Kind.HYPERVISOR_LIST)
    yield advised(Kind.SERVER_MIGRATION_LIST)

    confirmed = {
        thing: {'status': 'ACTIVE'},
        f'provider {TO}': {'consumers': []},
    }
    [live] = commands.migrate(server.id, live=True)
    yield repair(live, moved(thing, FROM, TO, server))
    cold, confirm = commands.migrate(server.id, live=False)
    yield repair(
        cold,
        {
            thing: {'host': FROM, 'status': 'VERIFY_RESIZE'},
            f'provider {FROM}': {'consumers': [server.id]},
            f'provider {TO}': {'consumers': ['migration']},
        },
    )
    yield repair(confirm, confirmed)
    [live] = commands.migrate(server.id, live=True, host=TO)
    yield repair(live, moved(thing, FROM, TO, server))
    cold, confirm = commands.migrate(server.id, live=False, host=FROM)
    yield repair(
        cold,
        {
            thing: {'host': FROM, 'status': 'VERIFY_RESIZE'},
            f'provider {FROM}': {'consumers': [server.id]},
            f'provider {TO}': {'consumers': ['migration']},
        },
    )
    yield repair(confirm, confirmed)

    yield advised(
        *(Kind.SERVICE_SET, '--down'),
        names=[FROM, 'nova-compute'],
        changes={f'service {FROM}': {'is_down': True}},
    )
    [evacuate] = commands.evacuate(server.id)
    yield repair(
        evacuate,
        {
            thing: {'host': TO, 'status': 'SHUTOFF'},
            # Nova takes the old ones when the service is up again.
            f'provider {TO}': {'consumers': [server.id]},
        },
    )
    [enable] = commands.enable_service(OTHER)
    yield repair(
        enable,
        {
            f'service {OTHER}': {'status': 'enabled'},
            # Without COMPUTE_STATUS_DISABLED, which nova-compute had added.
            f'provider {OTHER}': {'traits': traits},
        },
    )
    cloud.restart(FROM)
    yield advised(
        Kind.SERVER_SHELVE,
        names=[server.id],
        changes={
            thing: {'host': None, 'status': 'SHELVED_OFFLOADED'},
            f'provider {TO}': {'consumers': []},
        },
    )
    yield advised(Kind.SERVER_DELETE, names=[server.id], changes={thing: None})


def moved(thing, old, new, server):
    return {
        thing: {'host': new},
        f'provider {old}': {'consumers': []},
        f'provider {new}': {'consumers': [server.id]},
    }


def reservations(cloud):
    own = cloud.reservation([FROM, TO])
    thing = f'reservation {own}'
    owner, friend = cloud.project('demo'), cloud.project('alt_demo')
    [enable] = commands.enable_reservations([FROM])
    yield repair(enable, {'pool': {'hosts': [FROM]}})
    yield advised(
        *(Kind.RESERVATION_CREATE, '--id', own, '--amount', '1'),
        more=f'--project {owner} --vcpus 1 --ram 64 --disk 1',
        changes={
            thing: {'slots': {FROM: 1}, 'projects': [owner], 'end': None}
        },
    )
    for kind in (
        Kind.RESERVATION_LIST,
        Kind.RESERVATION_HISTORY_LIST,
        Kind.RESERVATION_HOST_LIST,
    ):
        yield advised(kind)
    yield advised(Kind.RESERVATION_SHOW, names=[own])
    yield advised(
        *(Kind.RESERVATION_SET, own, '--amount', '2'),
        changes={thing: {'slots': {FROM: 2}}},
    )
    yield advised(
        *(Kind.RESERVATION_SET, own, '--share', friend),
        changes={thing: {'projects': sorted([owner, friend])}},
    )
    yield advised(
        *(Kind.RESERVATION_SET, own, '--end', '2099-01-01T00:00:00+00:00'),
        changes={thing: {'end': '2099-01-01T00:00:00+00:00'}},
    )
    cloud.remove_slots(FROM, own)
    yield repair(*commands.RECONCILE, {thing: {'slots': {FROM: 2}}})
    yield advised(
        *(Kind.RESERVATION_HOST_SET, '--enable'),
        names=[TO],
        changes={'pool': {'hosts': [FROM, TO]}},
    )
    [again] = commands.repair_reservation(own)
    yield repair(again)
    server = cloud.server_of(own)
    # The slot of the server stays until it has left.
    yield advised(
        *(Kind.RESERVATION_REPAIR, own, '--from', FROM),
        changes={thing: {'slots': {FROM: 1, TO: 2}}},
        codes=(3,),
    )
    yield advised(
        *(Kind.RESERVATION_REPAIR, own, '--call-off'),
        changes={thing: {'slots': {FROM: 1, TO: 1}}},
    )
    cloud.force_down(FROM)
    yield advised(
        *(Kind.RESERVATION_REPAIR, own, '--from', FROM, '--evacuate'),
        changes={
            thing: {'slots': {FROM: 1, TO: 2}},
            f'server {server.name}': {'host': TO},
            f'provider {TO}': {'consumers': [server.id]},
        },
        codes=(3,),
    )
    cloud.restart(FROM)
    # With a server it would go on with the next reconcile.
    cloud.delete(server)
    yield advised(Kind.RESERVATION_END, names=[own], changes={thing: None})
    [disable] = commands.disable_reservations([FROM, TO])
    yield repair(disable, {'pool': {'hosts': []}})


STORIES = (
    *(aggregates, flavors, images, providers, locks, servers, reservations),
)

_OTHER = 'tests/e2e/test_other_clients.py'
# What runs the lines for services that the cloud does not have.
ELSEWHERE = {
    Kind.BAREMETAL_NODE_ADD_TRAIT: (
        f'{_OTHER}::test_a_node_of_bare_metal_gets_a_trait'
    ),
    Kind.LEASE_HOST_SET: (
        f'{_OTHER}::test_a_host_of_blazar_gets_an_extra_capability'
    ),
    Kind.WATCHER_AUDIT_CREATE: (
        f'{_OTHER}::test_watcher_gets_an_audit_that_runs_the_actions'
    ),
}
