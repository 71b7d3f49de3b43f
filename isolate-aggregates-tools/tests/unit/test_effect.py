# SPDX-License-Identifier: Apache-2.0
"""What a change does, known before it is made."""

import dataclasses
import json

from audit_clouds import LICENSED, LOCK, PREFIXES, configuration, server
import jsonschema
from published_schemas import schema_of
import pytest

from isolate_aggregates_tools.audit.servers import OutOfPlace
from isolate_aggregates_tools.cloud import changes
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.compute.servers import Servers
from isolate_aggregates_tools.documents import content, schema
from isolate_aggregates_tools.effect import documents, effect, shown
from isolate_aggregates_tools.effect.effect import AccessChange, UserChange
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_image,
    make_provider,
    make_snapshot,
    make_tree,
)

SCHEMA = schema(documents.Effect, 'An effect')
SMALL = make_flavor('small', vcpus=1, ram=512, disk=0)
KEYED = make_flavor('keyed', vcpus=1, ram=512, disk=0, extra_specs=LOCK)


def sizes(cpus):
    return {'VCPU': cpus, 'MEMORY_MB': 8192}


def cloud(*servers, metadata=(), images=(), **more):
    """Return a cloud with an aggregate on one of two hosts."""
    snapshot = make_snapshot(
        [make_aggregate('win', dict(metadata), hosts=['h1'])],
        [
            make_compute_node(
                'h1',
                inventories=sizes(4),
                traits=[LICENSED],
            ),
            make_compute_node('h2', inventories=sizes(2)),
        ],
        flavors=[SMALL, KEYED],
        images=images,
        **more,
    )
    return dataclasses.replace(
        snapshot, servers=Servers(servers, {i.id: i for i in images}, True)
    )


def placed(name, host, flavor, **more):
    """Return a server with the flavor as Nova keeps it."""
    flavor = dataclasses.replace(flavor, id='')
    return server(name, host, flavor, **{'image_id': PLAIN.id, **more})


PLAIN = make_image('plain')


def of(before, *made, conf=None):
    """Return the effect of changes; its document is valid."""
    after = before
    for change in made:
        after = change(after)
    result = effect(before, after, conf or configuration())
    jsonschema.validate(content(shown.document(result)), SCHEMA)
    return result


def tag(snapshot, **metadata):
    """Return the change of the metadata of the aggregate."""
    [aggregate] = snapshot.aggregates
    return changes.values(aggregate, metadata)


def lock(snapshot):
    return tag(snapshot, **LOCK)


def names(some):
    return [each.server.name for each in some]


def test_nothing_changes_if_nothing_is_changed():
    before = cloud(placed('a', 'h1', SMALL), images=[PLAIN])
    result = of(before, tag(before, colour='blue'))
    assert not result
    assert shown.rows(result) == []
    assert shown.summary(result).startswith('Nothing changes')


def test_servers_without_the_key_of_a_new_lock_are_out_of_place():
    before = cloud(
        placed('a', 'h1', SMALL),
        placed('b', 'h2', SMALL),
        placed('c', 'h1', KEYED),
        images=[PLAIN],
    )
    result = of(before, lock(before))
    assert names(result.displaced) == ['a']
    assert result.placed == ()
    [row, *_] = shown.rows(result)
    assert str(row).startswith(
        'server a (id-of-a) of project demo on h1: in place -> out of place, '
    )
    assert 'locked by trait' in row.why
    assert shown.summary(result).startswith('Effect: 1 server out of place, ')


def test_servers_come_into_place_when_a_lock_goes():
    before = cloud(
        placed('a', 'h1', SMALL), images=[PLAIN], metadata=LOCK.items()
    )
    result = of(before, tag(before, **dict.fromkeys(LOCK)))
    assert names(result.placed) == ['a']
    assert result.displaced == ()


def test_a_server_that_is_out_of_place_anyway_is_not_named():
    before = cloud(
        placed('a', 'h1', SMALL), images=[PLAIN], metadata=LOCK.items()
    )
    # Now its flavor needs a trait that the host does not have, instead.
    result = of(
        before,
        tag(before, **dict.fromkeys(LOCK)),
        changes.new_trait('CUSTOM_OTHER'),
        changes.values(SMALL, {'trait:CUSTOM_OTHER': 'required'}),
    )
    assert (result.displaced, result.placed) == ((), ())


@pytest.mark.parametrize(
    ('metadata', 'change', 'doubtful'),
    [
        ({}, LOCK, ['a']),
        (LOCK, {'x': 'y'}, []),
        (LOCK, dict.fromkeys(LOCK), []),
    ],
    ids=['only after', 'before too', 'only before'],
)
def test_a_server_is_doubtful_if_it_was_not_before(metadata, change, doubtful):
    before = cloud(
        placed('a', 'h1', SMALL, image_id='gone'), metadata=metadata.items()
    )
    result = of(before, tag(before, **change))
    assert names(result.doubtful) == doubtful
    assert (result.displaced, result.placed) == ((), ())


def test_servers_are_shown_by_host_with_the_reasons():
    servers = [placed('b', 'h1', SMALL), placed('a', 'h2', SMALL)]
    reasons = ('it is locked', 'it is full')
    result = dataclasses.replace(
        of(cloud()),
        displaced=tuple(
            OutOfPlace(each, kind, reasons, '')
            for each in reversed(servers)
            for kind in ('server-misplaced', 'server-changed')
        ),
    )
    assert [(row.what.split()[1], row.why) for row in shown.rows(result)] == [
        ('b', 'a new server like it: it is locked; it is full'),
        ('a', 'a new server like it: it is locked; it is full'),
        ('b', 'it is locked; it is full'),
        ('a', 'it is locked; it is full'),
    ]


@pytest.mark.parametrize(
    ('lengths', 'is_some'), [((1, 2), True), ((2, 2), False)]
)
def test_a_query_of_another_length_is_an_effect(lengths, is_some):
    result = dataclasses.replace(of(cloud()), longest_query=lengths)
    assert bool(result) is is_some
    assert len(shown.rows(result)) == is_some


@pytest.mark.parametrize(
    ('vcpus', 'hosts', 'changed'),
    [
        # As many hosts with less room, and fewer hosts with the same room.
        (2, ('h1', 'h2'), {'small': ((2, 2), (6, 3))}),
        (1, ('h1',), {'small': ((2, 1), (4, 4))}),
        (1, ('h1', 'h2'), {}),
    ],
)
def test_other_hosts_or_other_room_are_a_change(vcpus, hosts, changed):
    before = cloud()
    if len(hosts) == 1:
        full = make_compute_node(
            'h2', inventories=sizes(2), usages={'VCPU': 2}
        )
        before = dataclasses.replace(
            before, providers=(before.providers[0], full)
        )
    result = of(
        before,
        lambda s: dataclasses.replace(
            s,
            flavors=(dataclasses.replace(SMALL, vcpus=vcpus), KEYED),
            providers=tuple(p for p in s.providers if p.host in hosts),
        ),
    )
    assert {
        each.flavor: (each.hosts, each.slots)
        for each in result.flavors
        if each.flavor
    } == changed


def test_a_renamed_flavor_and_image_have_their_new_names():
    key = make_image('key', LOCK)
    before = cloud(images=[key], metadata=LOCK.items())
    result = of(
        before,
        lambda s: dataclasses.replace(
            s,
            flavors=(dataclasses.replace(SMALL, name='tiny'), KEYED),
            images=(dataclasses.replace(key, name='new'),),
            providers=(),
        ),
    )
    assert {(each.flavor, each.image) for each in result.flavors} >= {
        ('tiny', None),
        ('tiny', 'new'),
    }
    gone = of(before, lambda s: dataclasses.replace(s, images=()))
    assert {(each.image, each.hosts[1]) for each in gone.flavors} == {
        ('key', 0)
    }


def test_unknown_servers_are_not_called_in_place():
    before = dataclasses.replace(cloud(), servers=None)
    result = of(before, lock(before))
    assert not result.servers_known
    assert shown.document(result).servers is None
    assert shown.summary(result).endswith('The servers are not known.')


def test_flavors_have_hosts_and_room_before_and_after():
    before = cloud()
    result = of(before, lock(before))
    by_flavor = {each.flavor: each for each in result.flavors}
    assert set(by_flavor) == {'', 'small'}
    small = by_flavor['small']
    assert (small.gained, small.lost) == (frozenset(), {'h1'})
    assert (small.hosts, small.slots) == ((2, 1), (6, 2))
    assert not small.is_stranded
    rows = {row.what: row for row in shown.rows(result)}
    assert rows['flavor small'].before == '2 hosts, room for 6'
    assert rows['flavor small'].after == '1 host, room for 2'
    document = content(shown.document(result))
    assert {each['flavor']: each['slots'] for each in document['flavors']} == {
        'small': {'before': 6, 'after': 2},
        None: {'before': 6, 'after': 2},
    }


@pytest.mark.parametrize(
    ('hosts', 'is_stranded'),
    [((1, 0), True), ((1, 1), False), ((0, 0), False), ((0, 1), False)],
)
def test_who_had_a_host_and_has_none_is_stranded(hosts, is_stranded):
    change = AccessChange('f', 'i', frozenset(), frozenset(), hosts, (0, 0))
    assert change.is_stranded is is_stranded
    result = dataclasses.replace(of(cloud()), flavors=(change,))
    assert bool(result.stranded_flavors) is is_stranded
    assert bool(result.stranded_images) is is_stranded


def test_a_flavor_with_a_host_by_some_image_is_not_stranded():
    changes = tuple(
        AccessChange('f', image, frozenset(), frozenset(), hosts, (0, 0))
        for image, hosts in ((None, (1, 0)), ('a', (0, 1)), ('b', (2, 0)))
    )
    result = dataclasses.replace(of(cloud()), flavors=changes)
    assert result.stranded_flavors == ()
    assert result.stranded_images == ('b',)


@pytest.mark.parametrize(
    ('most', 'more'),
    [
        (None, []),
        (3, []),
        (2, ['  and 1 more, which -f json shows']),
    ],
)
def test_only_some_lines_are_shown(most, more):
    result = dataclasses.replace(
        of(cloud()),
        users=tuple(
            UserChange(name, None, frozenset()) for name in ('a', 'b', 'c')
        ),
    )
    head, *lines = shown.lines(result, most)
    assert head == 'Effect: small changes.'
    assert lines == [
        *(
            f'  who may use flavor {name}: all projects -> no project'
            for name in 'abc'[:most]
        ),
        *more,
    ]


def test_who_is_let_in_comes_before_who_loses():
    before = cloud(metadata=LOCK.items())
    result = of(
        before,
        lambda s: changes.hosts(s.aggregates[0], lambda _: frozenset({'h2'}))(
            s
        ),
    )
    whys = [row.why for row in shown.rows(result)]
    assert whys[0] == 'gains h1, loses h2'


def test_the_change_of_the_most_hosts_comes_first():
    changes = [
        AccessChange(
            name, None, frozenset(gained), frozenset(lost), (9, now), (0, 0)
        )
        for name, gained, lost, now in (
            ('gains', 'abc', 'd', 9),
            ('only-loses', '', 'abcdef', 9),
            ('stranded', '', 'a', 0),
            ('loses', 'ab', 'cde', 9),
            ('room', '', '', 9),
        )
    ]
    order = sorted(changes, key=shown._badness)
    assert [each.flavor for each in order] == [
        *('loses', 'gains', 'stranded', 'only-loses', 'room')
    ]


def test_a_flavor_without_any_host_left_is_named():
    before = cloud(metadata=LOCK.items())
    result = of(
        before,
        changes.values(KEYED, {'trait:CUSTOM_NOWHERE': 'required'}),
        changes.new_trait('CUSTOM_NOWHERE'),
    )
    assert result.stranded_flavors == ('keyed',)
    assert 'traits-nowhere' in {f.kind for f in result.new_findings} or (
        result.new_findings
    )
    assert content(shown.document(result).nowhere) == {
        'flavors': ['keyed'],
        'images': [],
    }


def test_images_that_open_the_lock_are_judged_with_the_flavors():
    key = make_image('key', LOCK)
    before = cloud(images=[key], metadata=LOCK.items())
    result = of(before, changes.values(key, {'trait:CUSTOM_GONE': 'required'}))
    assert result.stranded_images == ('key',)


def test_projects_that_a_tag_names_gain_or_lose_hosts():
    conf = configuration(
        limit_tenants_to_placement_aggregate=True,
        request_filters=['isolate_aggregates', 'isolate_tenants'],
    )
    before = cloud(metadata={'filter_tenant_id': 'p1'}.items())
    result = of(before, tag(before, filter_tenant_id='p2'), conf=conf)
    assert {
        each.project: (each.gained, each.lost) for each in result.projects
    } == {'p1': ({'h2'}, {'h1'}), 'p2': ({'h1'}, {'h2'})}


def test_reservations_and_locks_whose_hosts_change_are_named():
    conf = configuration(**{key: ['lease:'] for key in PREFIXES})
    before = cloud()
    result = of(before, tag(before, **{'lease:7': '1'}), conf=conf)
    assert [(r.lock, r.gained) for r in result.reservations] == [
        ('lease:7', {'h1'})
    ]
    assert [each.lock for each in result.locks] == ['lease:']


def test_findings_appear_and_go():
    before = cloud()
    result = of(
        before,
        lock(before),
        lambda s: changes.hosts(s.aggregates[0], lambda _: frozenset({'h2'}))(
            s
        ),
    )
    assert 'trait-missing' in {each.kind for each in result.new_findings}
    after = lock(before)(before)
    after = changes.hosts(after.aggregates[0], lambda _: frozenset({'h2'}))(
        after
    )
    back = of(after, lambda _: before)
    assert {f.kind for f in back.old_findings} == {
        f.kind for f in result.new_findings
    }


def test_the_longest_query_grows_with_a_lock():
    before = cloud()
    result = of(before, lock(before))
    assert result.longest_query[1] > result.longest_query[0] > 0


@pytest.mark.parametrize(
    ('limit', 'said'),
    [
        (None, ''),
        (0, ''),
        (200, ''),
        (199, 'max_query_length is 199; longer ones are shortened'),
    ],
)
def test_the_limit_is_named_if_the_longest_query_is_longer(limit, said):
    before = cloud()
    result = dataclasses.replace(
        of(before, lock(before)),
        longest_query=(100, 200),
        max_query_length=limit,
    )
    [row] = [row for row in shown.rows(result) if 'query' in row.what]
    assert (row.before, row.after, row.why) == ('100 bytes', '200 bytes', said)
    assert content(shown.document(result))['longest_query'] == {
        'before': 100,
        'after': 200,
        'limit': limit or None,
    }


def test_a_flavor_that_is_new_or_gone_is_compared_with_nothing():
    before = cloud()
    more = make_flavor('more', vcpus=1, ram=1, disk=0)
    result = of(
        before,
        lambda s: dataclasses.replace(s, flavors=(*s.flavors[1:], more)),
    )
    hosts = {each.flavor: each.hosts for each in result.flavors}
    assert hosts == {'small': (2, 0), 'more': (0, 2)}


def test_a_flavor_with_another_name_is_the_same_flavor():
    before = cloud()
    renamed = dataclasses.replace(SMALL, name='tiny')
    result = of(
        before,
        lambda s: dataclasses.replace(s, flavors=(renamed, *s.flavors[1:])),
    )
    assert not result.flavors


def test_flavors_are_shown_by_name_with_their_images_by_name():
    images = [
        make_image(name, {f'trait:CUSTOM_{name.upper()}': 'forbidden'})
        for name in ('b', 'a')
    ]
    before = cloud(images=images, traits={'CUSTOM_A', 'CUSTOM_B'})
    result = of(before, lock(before))
    assert [row.what for row in shown.rows(result)][3:6] == [
        'flavor small',
        'flavor small with image a',
        'flavor small with image b',
    ]


@pytest.mark.parametrize(
    ('servers', 'change', 'status'),
    [
        ((), {'colour': 'blue'}, 0),
        ((), LOCK, 6),
        ((placed('a', 'h1', SMALL),), LOCK, 5),
    ],
    ids=['nothing', 'changes', 'out of place'],
)
def test_the_exit_status_tells_what_a_change_does(
    run, tmp_path, servers, change, status
):
    from isolate_aggregates_tools.cloud.file import cloud_file

    path = tmp_path / 'cloud.yaml'
    snapshot = cloud(*servers, images=[PLAIN])
    group = 'scheduler', 'enable_isolated_aggregate_filtering'
    cloud_file.save(
        dataclasses.replace(snapshot, settings={group: True}), path
    )
    [(key, value)] = change.items()
    arguments = ('effect', 'show', '--snapshot', str(path))
    arguments += ('--set', 'win', f'{key}={value}')
    assert run(*arguments, '--detailed-exitcode').code == status
    assert run(*arguments).code == 0


@pytest.mark.parametrize(
    ('arguments', 'code', 'message'),
    [
        ([], 2, 'a change is required, such as --add-host'),
        (['--set', 'win-hosts', 'x'], 2, "'x' is not a valid setting; write"),
        (['--set', 'win', 'a=b'], 1, 'There is no aggregate with the name'),
        (['--add-host', 'rack-1', 'lunix-1'], 1, '(did you mean linux-1?)'),
        (['--remove-host', 'rack-1', 'win-2'], 1, 'in aggregate rack-1'),
        (
            ['--unset', 'win-hosts', 'trait:CUSTOM_LICENSED_WINDOW'],
            1,
            'in aggregate win-hosts (did you mean '
            'trait:CUSTOM_LICENSED_WINDOWS?)',
        ),
        (['--unset', 'win-hosts', ''], 1, 'in aggregate win-hosts'),
        (['--set', 'win-hosts', '=x'], 2, "'=x' is not a valid setting"),
        (['--flavor-unset', 'm1.small', 'a'], 1, 'in flavor m1.small'),
        (['--flavor-unset', 'm1.small', ''], 1, 'in flavor m1.small'),
        (['--flavor-set', 'm1.small', '=x'], 2, "'=x' is not a valid setting"),
        (['--image-unset', 'debian-12', 'a'], 1, 'in image debian-12'),
        (['--image-set', 'debian-12', '=x'], 2, "'=x' is not a valid setting"),
        (['--flavor-set', 'm2', 'a=b'], 1, 'There is no flavor with the name'),
        (['--image-set', 'mac', 'a=b'], 1, 'There is no image with the name'),
    ],
)
def test_a_change_that_cannot_be_made_is_named(run, arguments, code, message):
    result = run(
        'effect',
        'show',
        '--snapshot',
        'examples/windows-licensing.yaml',
        *arguments,
    )
    assert (result.code, result.out) == (code, '')
    assert message in result.err


def test_changes_are_made_in_the_order_of_the_options(run):
    def effect_of(*arguments):
        result = run(
            *(
                'effect',
                'show',
                '--snapshot',
                'examples/windows-licensing.yaml',
            ),
            *('-f', 'json', *arguments),
        )
        document = json.loads(result.out)
        del document['steps'], document['gaps']
        return document

    set_it = ('--set', 'rack-1', 'a=b')
    unset_it = ('--unset', 'rack-1', 'trait:CUSTOM_LICENSED_WINDOWS')
    lock_it = ('--set', 'rack-1', 'trait:CUSTOM_LICENSED_WINDOWS=required')
    nothing = effect_of(*set_it)
    assert effect_of(*lock_it, *unset_it) == nothing
    assert effect_of(*lock_it, *unset_it, *lock_it) != nothing


def test_a_saved_effect_is_read_and_shown_by_the_report(run, tmp_path):
    rack = 'examples/licensed-rack.yaml'
    lock_it = ('--set', 'rack-7', 'trait:CUSTOM_LICENSED=required')
    result = run('effect', 'show', '--snapshot', rack, *lock_it, '-f', 'json')
    saved_path = tmp_path / 'effect.json'
    saved_path.write_text(result.out)
    page = tmp_path / 'page.html'
    result = run(
        *('report', 'save', '--snapshot', rack),
        *('--effect', str(saved_path), '--output', str(page)),
    )
    assert (result.code, result.err) == (0, '')
    assert 'Servers that would be out of place: 3' in page.read_text()


@pytest.mark.parametrize(
    ('text', 'problem'),
    [
        (None, 'cannot be read: No such file or directory.'),
        ('{', 'is not JSON: '),
        ('{}', "is not an effect: its top: 'schema' is a required property."),
    ],
)
def test_a_file_that_is_no_effect_is_named(run, tmp_path, text, problem):
    path = tmp_path / 'effect.json'
    if text:
        path.write_text(text)
    result = run(
        *('report', 'save', '--snapshot', 'examples/licensed-rack.yaml'),
        *('--effect', str(path), '--output', str(tmp_path / 'page.html')),
    )
    assert (result.code, result.out) == (1, '')
    assert result.err.startswith(f'{path} {problem}')


# Availability zones, and what Nova refuses.


def zoned(*servers):
    """Return a cloud of two zones and a host without one."""
    snapshot = make_snapshot(
        [
            make_aggregate('a', hosts=['h1'], availability_zone='a', id=1),
            make_aggregate(
                'b', {'availability_zone': 'b'}, hosts=['h2'], id=2
            ),
            make_aggregate('free', id=3),
        ],
        [make_compute_node(host) for host in ('h1', 'h2', 'h3')],
        flavors=[SMALL],
    )
    return dataclasses.replace(snapshot, servers=Servers(servers, {}, True))


def test_zones_that_get_and_lose_hosts_are_named():
    before = zoned()
    [one, other, _] = before.aggregates
    [change] = commands.remove_hosts(one, ['h1'])
    [addition] = commands.add_hosts(other, ['h1'])
    result = of(before, change.change, addition.change)
    assert [str(row) for row in shown.rows(result)] == [
        'availability zone a: loses h1',
        'availability zone b: gains h1',
    ]


@pytest.mark.parametrize(
    ('options', 'reason'),
    [
        (['--set', 'a', 'availability_zone=c'], 'there are servers on h1'),
        (['--unset', 'a', 'availability_zone'], 'cannot be removed'),
        (['--unset', 'b', 'availability_zone'], 'cannot be removed'),
        (['--add-host', 'b', 'h1'], 'h1 is in availability zone a by'),
        (['--remove-host', 'a', 'h1'], 'its availability zone is a'),
        (['--set', 'free', f'{"k" * 256}=v'], '256 characters'),
        (['--set', 'free', f'k={"v" * 256}'], '256 characters'),
        (['--set', 'free', 'k/l=v'], 'other than letters'),
        (['--flavor-set', SMALL.name, f'k={"v" * 256}'], '256 characters'),
    ],
)
def test_what_nova_refuses_is_named_and_left_out(
    run, tmp_path, options, reason
):
    path = tmp_path / 'cloud.yaml'
    cloud_file.save(zoned(placed('s', 'h1', SMALL)), path)
    result = run(
        'effect', 'show', '--snapshot', str(path), *options, '-f', 'json'
    )
    assert result.code == 7
    document = json.loads(result.out)
    jsonschema.validate(document, schema_of('effect show'))
    [refused] = document['refused']
    assert reason in refused['reason']
    assert document['steps'] == []
    assert document['zones'] == []
    shown_ = run('effect', 'show', '--snapshot', str(path), *options)
    assert 'Nova refuses this step, which is left out: ' in shown_.out


@pytest.mark.parametrize(
    'options',
    [
        # A host without servers may change its zone.
        ['--remove-host', 'a', 'h1', '--add-host', 'b', 'h1'],
        ['--set', 'b', 'availability_zone=c'],
        ['--add-host', 'free', 'h1'],
        ['--add-host', 'a', 'h3'],
        ['--set', 'free', f'k={"v" * 255}'],
    ],
)
def test_what_nova_accepts_is_a_step(run, tmp_path, options):
    path = tmp_path / 'cloud.yaml'
    cloud_file.save(zoned(), path)
    result = run(
        'effect', 'show', '--snapshot', str(path), *options, '-f', 'json'
    )
    assert result.code == 0
    assert json.loads(result.out)['refused'] == []


def test_unknown_servers_may_be_a_reason_to_refuse(run, tmp_path):
    path = tmp_path / 'cloud.yaml'
    cloud = dataclasses.replace(zoned(), servers=None)
    cloud_file.save(cloud, path)
    result = run(
        *('effect', 'show', '--snapshot', str(path)),
        *('--set', 'b', 'availability_zone=c'),
    )
    assert result.code == 0
    assert 'whether there are servers on the hosts of aggregate b' in (
        ' '.join(result.out.split())
    )


# Who may use a flavor.


def test_who_may_use_a_flavor_is_named():
    before = cloud(images=[PLAIN])
    private = dataclasses.replace(
        SMALL, is_public=False, projects=frozenset({'b', 'a'})
    )
    after = dataclasses.replace(
        before,
        flavors=(
            *(private if f.name == 'small' else f for f in before.flavors),
            dataclasses.replace(private, name='new', id='n'),
        ),
    )
    result = effect(before, after, configuration())
    jsonschema.validate(content(shown.document(result)), SCHEMA)
    rows = [str(r) for r in shown.rows(result) if r.what.startswith('who')]
    assert rows == [
        'who may use flavor small: all projects -> a, b',
        'who may use flavor new: no project -> a, b',
    ]


def test_a_reservation_that_loses_its_guard_is_said():
    """Only the lock of the pool keeps ordinary servers from its host."""
    reservation = '4d17d41a-1b7f-4b5e-9c2e-0a4b8d1e6f31'
    name = reservation.upper().replace('-', '_')
    trait = 'CUSTOM_RESERVATION_HOST'
    slots = make_provider(
        'blazar_h5',
        inventories={f'CUSTOM_RESERVATION_{name}': 2},
        traits=[trait],
    )
    lock = {f'trait:{trait}': 'required'}
    before = make_snapshot(
        [make_aggregate('freepool', lock, hosts=['h5'])],
        [make_tree(make_compute_node('h5'), slots)],
        flavors=[SMALL],
    )
    [pool] = before.aggregates
    [command] = commands.remove_hosts(pool, ['h5'])
    after = command.change(before)
    found = effect(before, after, configuration())
    [finding] = [
        each for each in found.new_findings if each.kind == 'reservation-host'
    ]
    assert finding.subject == 'host h5'
    assert f'has slots of reservation {reservation}' in finding.problem


def test_a_private_flavor_made_anew_is_lost_by_its_projects():
    project = frozenset({'a' * 32})
    old = dataclasses.replace(SMALL, id='1', is_public=False, projects=project)
    new = dataclasses.replace(old, id='2', projects=frozenset())
    before, after = (
        make_snapshot((), [make_compute_node('h1')], flavors=[flavor])
        for flavor in (old, new)
    )
    [change] = effect(before, after, configuration()).users
    assert (change.before, change.after) == (project, frozenset())
