# SPDX-License-Identifier: Apache-2.0
"""A part that fails is named, and stops no other.

The parts are hosts, projects, servers, providers and records. Each row breaks
one of them; a round must still do everything else.
"""

import json

from agreement import agreed
import pytest
import reservation_world
from reservation_world import HOUR, NOW, PROJECT, uuid

from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations import errors, names
from isolate_aggregates_tools.placement import inventories

SHAPE = reservations.Shape(4, 1024, 10)
NEEDS = {'VCPU': 4, 'MEMORY_MB': 1024}
FRIEND = 'f' * 32
END = NOW + 2 * HOUR


@pytest.fixture
def three_hosts(world):
    def play():
        for name in ('h1', 'h2', 'h3'):
            world.add_host(name)

    world.play_once('three hosts', play)


def reserve(world, start=NOW, amount=1, **settings):
    reservation = reservations.new(
        PROJECT, amount, SHAPE, start, END, **settings
    )
    reservations.create(world.store, reservation, NOW)
    return reservation.id


def lose_provider(world, host):
    child = world.child(host)
    found = inventories.read(world.direct, child)
    inventories.write(
        world.direct, child, inventories.Inventories(found.generation, {})
    )
    inventories.delete_provider(world.direct, child)


def refuse_to_join(world):
    """Nova does not take the host into the pool."""
    world.nova.aggregates[1]['hosts'].remove('h3')
    world.wire.refuse = lambda method, url, body: (
        409 if 'add_host' in body else None
    )
    return 'h3'


def rename_root(world):
    """Somebody gives the provider of a host another name, in Placement."""
    world.nova.aggregates[1]['hosts'].remove('h3')
    world.direct.send(
        'PUT', f'/resource_providers/{uuid(1, "h3")}', {'name': 'odd'}
    )
    return 'odd'


def refuse_the_lock(world):
    del world.nova.aggregates[1]['metadata'][names.TRAIT_KEY]
    world.wire.refuse = lambda method, url, body: (
        403 if 'set_metadata' in body else None
    )
    return 'freepool'


def refuse_a_provider(world):
    lose_provider(world, 'h3')
    world.wire.refuse = lambda method, url, body: (
        500 if method == 'POST' and url.endswith('_providers') else None
    )
    return 'h3'


def break_a_record(world):
    name = '5e28e52b-941e-48c3-a2d8-50afd1bf722f'
    world.nova.flavors[name] = {
        **next(iter(world.nova.flavors.values())),
        'id': name,
        'name': names.flavor(name),
        'description': '{"isolate-aggregates-reservation": 1, ',
    }
    world.nova.access[name] = set()
    return name


@pytest.mark.usefixtures('three_hosts')
@pytest.mark.parametrize(
    'harm',
    [
        refuse_to_join,
        rename_root,
        refuse_the_lock,
        refuse_a_provider,
        break_a_record,
    ],
)
def test_a_round_starts_and_ends_all_others(world, harm):
    ending = reserve(world)
    starting = reserve(world, start=NOW + HOUR)
    reservations.end(world.store, ending, NOW)
    kept = reserve(world)
    culprit = harm(world)
    for then in (NOW + HOUR, END):
        found = []
        statuses = reservations.reconcile_all(
            world.store, then, on_unreadable=found.append
        )
        assert {one.reservation.id for one in statuses} == {kept, starting}
        said = ' '.join(map(str, found))
        assert culprit in said
        if then < END:
            assert all(PROJECT in world.nova.access[n] for n in (starting,))
    assert not world.slots()


@pytest.fixture
def command(world, run, operated):
    """Run a reservation command with --yes; return status and document."""

    def typed(*words):
        result = reservation_world.typed(
            run, *agreed(('reservation', *words, '-f', 'json'))
        )
        assert 'Traceback' not in result.err
        return result.code, json.loads(result.out or 'null'), result.err

    return typed


@pytest.mark.usefixtures('three_hosts')
@pytest.mark.parametrize(
    'harm',
    [
        refuse_to_join,
        rename_root,
        refuse_the_lock,
        refuse_a_provider,
        break_a_record,
    ],
)
def test_no_command_is_stopped(world, command, harm):
    """Those about all name the part; those about one do what they are for."""
    create = 'create', '--project', PROJECT, '--vcpus', '4', '--ram', '1024'
    kept, ended, new = (
        f'{number}d17d41a-830d-47b2-91c7-4f9fc0ae611e' for number in '123'
    )
    for name in (kept, ended):
        assert command(*create, '--id', name)[0] == 0
    culprit = harm(world)

    def listed(*words):
        """Return the ids that a command about all tells."""
        code, document, said = command(*words)
        assert culprit in said + json.dumps(document), words
        return code, {one['id'] for one in document['reservations']}

    both = {kept, ended}
    # Of hosts it warns only.
    assert listed('list') == (int(harm is break_a_record), both)
    code, document, said = command('host', 'list')
    assert {'h1', 'h2'} <= {host['name'] for host in document['hosts']}
    assert harm is break_a_record or culprit in said + json.dumps(document)
    code, document, said = command('history', 'list')
    assert {one['id'] for one in document['reservations']} == both
    # A bill would lack it.
    assert code == (culprit in said) == (harm is break_a_record)
    code, document, _ = command('calendar', 'list', '--end', '1d')
    assert {'h1', 'h2'} <= {host['host'] for host in document['hosts']}

    assert command('show', kept)[1]['id'] == kept
    assert command('set', kept, '--amount', '2')[1]['amount'] == 2
    assert command('set', kept, '--name', 'x')[1]['name'] == 'x'
    assert command(*create, '--id', new)[1]['slots'] == 1
    assert command('end', ended)[1]['state'] == 'ended'
    assert command('repair', kept)[1]['reservations'][0]['slots'] == 2
    there = {kept, new}
    assert listed('repair') == (3, there)
    assert listed('reconcile') == (3, there)
    assert ended not in world.nova.flavors


GONE = '0' * 32
KEPT, ENDED, NEW = (
    f'{number}d17d41a-830d-47b2-91c7-4f9fc0ae611e' for number in '123'
)


def lose_a_project(world, command):
    """One of the projects that a reservation is shared with is deleted."""
    world.wire.refuse = lambda method, url, body: (
        400 if 'addTenantAccess' in body and GONE in body else None
    )
    _, document, said = command(
        *('set', KEPT, '--share', GONE, '--share', FRIEND)
    )
    assert GONE in said + json.dumps(document['problems'])
    assert world.nova.access[KEPT] == {PROJECT, FRIEND}
    return GONE


def keep_a_server(world, command):
    """Nova does not delete a server of a reservation that has ended."""
    [host, *_] = {host for host, name in world.slots() if name == KEPT}
    assert world.boot('s0', names.host_of(host), KEPT, NEEDS)
    stuck = uuid(3, 's0')
    world.wire.refuse = lambda method, url, body: (
        500 if method == 'DELETE' and stuck in url else None
    )
    code, document, said = command('end', KEPT)
    assert (code, document['state']) == (3, 'ending')
    assert stuck in said + json.dumps(document['problems'])
    return stuck


@pytest.mark.usefixtures('three_hosts')
@pytest.mark.parametrize('harm', [lose_a_project, keep_a_server])
def test_no_command_is_stopped_by_one_reservation(world, command, harm):
    """Each names what fails of that one, and does what it is for."""
    create = 'create', '--project', PROJECT, '--vcpus', '4', '--ram', '1024'
    for name in (KEPT, ENDED):
        assert command(*create, '--id', name)[0] == 0
    culprit = harm(world, command)

    def listed(*words):
        code, document, said = command(*words)
        # Those that only read do not try again to delete a server.
        acts = words[0] in ('reconcile', 'repair')
        if acts or (harm is lose_a_project and words[0] == 'list'):
            assert culprit in said + json.dumps(document), words
        return code, {one['id'] for one in document['reservations']}

    both = {KEPT, ENDED}
    assert listed('list') == (0, both)
    assert listed('history', 'list') == (0, both)
    code, document, _ = command('calendar', 'list', '--end', '1d')
    assert {'h1', 'h2'} <= {host['host'] for host in document['hosts']}
    assert {'h1', 'h2'} <= {
        host['name'] for host in command('host', 'list')[1]['hosts']
    }
    code, document, _ = command('show', KEPT)
    assert (code, document['id']) == (0, KEPT)

    assert command(*create, '--id', NEW)[1]['slots'] == 1
    assert command('set', ENDED, '--amount', '2')[1]['amount'] == 2
    assert command('set', ENDED, '--name', 'x')[1]['name'] == 'x'
    assert command('repair', ENDED)[1]['reservations'][0]['slots'] == 2
    assert command('end', ENDED)[1]['state'] == 'ended'
    there = {KEPT, NEW}
    assert listed('repair') == (3, there)
    assert listed('reconcile') == (3, there)
    assert ENDED not in world.nova.flavors
    assert PROJECT in world.nova.access[NEW]
    # What is mended is no longer named.
    world.wire.refuse = None
    for _ in range(2):
        code, document, said = command('reconcile')
    assert (code, culprit in said) == (0, False)
    problems = [one['problems'] for one in document['reservations']]
    assert not any(problems), problems


@pytest.mark.usefixtures('three_hosts')
def test_a_deleted_project_keeps_no_other_out(world):
    name = reserve(world, start=NOW + HOUR, shared=['0' * 32, FRIEND])
    world.wire.refuse = lambda method, url, body: (
        400 if 'addTenantAccess' in body and '0' * 32 in body else None
    )
    [status] = reservations.reconcile_all(world.store, NOW + HOUR)
    assert world.nova.access[name] == {PROJECT, FRIEND}
    assert any('0' * 32 in problem for problem in status.problems)
    assert status.reservation.has_access
    # It stays named as long as it is not mended.
    [status] = reservations.reconcile_all(world.store, NOW + HOUR)
    assert any('0' * 32 in problem for problem in status.problems)


@pytest.mark.usefixtures('three_hosts')
def test_a_server_that_cannot_be_deleted_keeps_its_own_slot_only(world):
    name = reserve(world, amount=6)
    for number, host in enumerate(('h1', 'h2', 'h3')):
        assert world.boot(f's{number}', host, name, NEEDS)
    stuck = uuid(3, 's0')
    world.wire.refuse = lambda method, url, body: (
        500 if method == 'DELETE' and stuck in url else None
    )
    reservations.reconcile_all(world.store, END)
    [status] = reservations.reconcile_all(world.store, END)
    assert [*world.nova.servers] == [stuck]
    assert world.slots() == {('blazar_h1', name): (2, 0)}
    assert any(stuck in problem for problem in status.problems)
    world.wire.refuse = None
    for _ in range(2):
        reservations.reconcile_all(world.store, END)
    assert not world.slots()
    assert name not in world.nova.flavors


@pytest.mark.usefixtures('two_hosts')
def test_all_reservation_providers_are_restored(world):
    name = reserve(world, amount=4)
    lose_provider(world, 'h1')
    lose_provider(world, 'h2')
    found = []
    reservations.list_reservations(world.store, NOW, found.append)
    assert {problem.host for problem in found} == {'h1', 'h2'}
    reservations.reconcile_all(world.store, NOW)
    [status] = reservations.reconcile_all(world.store, NOW)
    assert not status.problems
    assert world.slots() == {
        ('blazar_h1', name): (2, 2),
        ('blazar_h2', name): (2, 2),
    }


@pytest.mark.usefixtures('two_hosts')
def test_a_host_whose_disabling_was_killed_is_named(world):
    def kill(method, url):
        if method == 'DELETE' and '/resource_providers/' in url:
            raise KeyboardInterrupt

    world.wire.meddle = kill
    with pytest.raises(KeyboardInterrupt):
        reservations.disable_host(world.store, 'h2')
    world.wire.meddle = None
    for _ in range(2):
        found = []
        reservations.reconcile_all(
            world.store, NOW, on_unreadable=found.append
        )
        [problem] = found
        assert isinstance(problem, errors.ReservationHostError)
        assert problem.host == 'h2'
        assert 'disabling' in problem.problem
    reservations.disable_host(world.store, 'h2')
    found = []
    reservations.reconcile_all(world.store, NOW, on_unreadable=found.append)
    assert not found


@pytest.mark.usefixtures('two_hosts')
def test_remnants_that_stay_keep_no_other(world, caplog):
    """Revisions of records that are gone, and archives that are too old."""
    world.set_pool()['metadata'][names.HISTORY_KEY] = '1'
    gone = [reserve(world) for _ in range(2)]
    revisions = {
        key: flavor
        for key, flavor in world.nova.flavors.items()
        if names.revision_of(key)
    }
    for name in gone:
        reservations.end(world.store, name, NOW)
    reservations.reconcile_all(world.store, NOW)
    archives = sorted(world.archives())
    assert len(archives) == 2
    # Written late, by commands that were slow.
    world.nova.flavors.update(revisions)
    world.nova.access.update({key: set() for key in revisions})
    strays = sorted(revisions)
    assert len(strays) == 2
    stuck = archives[0], strays[0]
    world.wire.refuse = lambda method, url, body: (
        500 if method == 'DELETE' and url.endswith(stuck) else None
    )
    reservations.reconcile_all(world.store, NOW + 72 * HOUR)
    assert sorted(world.nova.flavors.keys() & {*archives, *strays}) == sorted(
        stuck
    )
    assert all(name in caplog.text for name in stuck)


@pytest.mark.usefixtures('two_hosts')
def test_a_server_that_cannot_be_evacuated_keeps_no_other(world):
    name = reserve(world, amount=2)
    [host] = {host for host, _ in world.slots()}
    host = names.host_of(host)
    for server in ('s0', 's1'):
        assert world.boot(server, host, name, NEEDS)
    world.fail_host(host)
    asked = []

    def refuse(method, url, body):
        if 'evacuate' in body:
            asked.append(url)
            return 400 if uuid(3, 's0') in url else 200
        return None

    world.wire.refuse = refuse
    status = reservations.move(world.store, name, NOW, [host], evacuate=True)
    assert len(asked) == 2
    assert any(uuid(3, 's0') in problem for problem in status.problems)
    assert not any(uuid(3, 's1') in problem for problem in status.problems)
