# SPDX-License-Identifier: Apache-2.0
"""The commands that plans of Terraform stand for."""

import dataclasses
from importlib import metadata
import json
import pathlib
import tempfile

from audit_clouds import configuration
from hypothesis import given
from hypothesis import strategies as st
import pytest
from thorough import examples

from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.effect.formats import read
from isolate_aggregates_tools.repairs import commands, outcome
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_snapshot,
)

FILES = pathlib.Path(__file__).parent / 'changes'
WIN = make_aggregate(
    'win',
    {'rack': 'r1', 'trait:CUSTOM_LICENSED': 'required'},
    ['h1', 'h2'],
    id=7,
)
OLD = make_aggregate('old', {}, ['h5'], id=8)
WIDE = make_aggregate('wide', {'keep': 'it'}, ['h5'], id=10)
CLOUD = make_snapshot(
    [WIN, OLD, WIDE],
    [make_compute_node(f'h{number}') for number in range(1, 6)],
    flavors=[
        Flavor('win.small', 'f-win', 2, 2048, 20,
               extra_specs={'hw:cpu_policy': 'shared'}),
        Flavor('large', 'f-large', 2, 2048, 20),
    ],
    images=[
        Image('windows', 'i-win', {'os_distro': 'windows', 'stores': 'ceph'},
              visibility='private'),
    ],
    origin='cloud.yaml',
)  # fmt: skip


def lines(planned):
    return [' '.join(command) for command in planned.commands]


def after(planned, cloud=CLOUD):
    """Return the cloud after the commands."""
    filters = Pipeline(loading.load(configuration()))
    *_, last = outcome.outcomes(cloud, planned.commands, filters)
    return last


def aggregates(cloud):
    return {
        a.name: (dict(a.metadata), sorted(a.hosts)) for a in cloud.aggregates
    }


def test_a_terraform_plan_is_read_as_its_provider_carries_it_out():
    planned = read(FILES / 'plan.json', CLOUD)
    assert lines(planned) == [
        'openstack aggregate set --zone=az1 7',
        'openstack aggregate remove host 7 h1',
        'openstack aggregate add host 7 h3',
        'openstack aggregate set --property rack=r2 7',
        'openstack aggregate unset --property trait:CUSTOM_LICENSED 7',
        'openstack aggregate set --property trait:CUSTOM_WINDOWS=required 7',
        'openstack aggregate create gpu',
        'openstack aggregate add host gpu h4',
        'openstack aggregate set --property trait:CUSTOM_GPU=required gpu',
        'openstack aggregate remove host 8 h5',
        'openstack aggregate delete 8',
        'openstack flavor set --property trait:CUSTOM_WINDOWS=required f-win',
        'openstack flavor delete f-large',
        'openstack flavor create --vcpus 2 --ram 8192 --disk 20 large',
        'openstack flavor set --property trait:CUSTOM_GPU=required large',
        'openstack image set --property trait:CUSTOM_WINDOWS=required i-win',
        'openstack image set --public i-win',
    ]
    assert planned.unread == ()


def test_the_result_of_a_plan_is_what_it_plans():
    cloud = after(read(FILES / 'plan.json', CLOUD))
    assert aggregates(cloud) == {
        'win': (
            {
                'availability_zone': 'az1',
                'rack': 'r2',
                'trait:CUSTOM_WINDOWS': 'required',
            },
            ['h2', 'h3'],
        ),
        'wide': ({'keep': 'it'}, ['h5']),
        'gpu': ({'trait:CUSTOM_GPU': 'required'}, ['h4']),
    }
    assert cloud.aggregates[0].availability_zone == 'az1'
    assert {f.name: (f.ram, dict(f.extra_specs)) for f in cloud.flavors} == {
        'win.small': (
            2048,
            {'hw:cpu_policy': 'shared', 'trait:CUSTOM_WINDOWS': 'required'},
        ),
        'large': (8192, {'trait:CUSTOM_GPU': 'required'}),
    }
    [image] = cloud.images
    assert image.visibility == 'public'
    assert image.properties['trait:CUSTOM_WINDOWS'] == 'required'


# Terraform.

AGGREGATE = 'openstack_compute_aggregate_v2'
FLAVOR = 'openstack_compute_flavor_v2'
IMAGE = 'openstack_images_image_v2'


def change(actions, before, after, unknown=(), kind=AGGREGATE):
    return {
        'address': f'{kind}.x',
        'mode': 'managed',
        'type': kind,
        'change': {
            'actions': actions,
            'before': before,
            'after': after,
            'after_unknown': dict(unknown),
        },
    }


@pytest.fixture
def plan(tmp_path):
    """Return the changes of a plan with some resource changes."""

    def read_plan(*changes, cloud=CLOUD, **more):
        path = tmp_path / 'plan.json'
        document = {'format_version': '1.2', 'resource_changes': changes}
        path.write_text(json.dumps(document | more))
        return read(path, cloud)

    return read_plan


def win(**changes):
    hosts, metadata = sorted(WIN.hosts), dict(WIN.metadata)
    return {
        'id': '7', 'name': 'win', 'hosts': hosts, 'metadata': metadata,
        **changes,
    }  # fmt: skip


def test_values_that_terraform_does_not_know_are_named_and_stay(plan):
    planned = plan(
        change(
            ['update'],
            win(),
            win(hosts=['h3'], metadata={'rack': None}),
            {'hosts': [False, True], 'metadata': {'rack': True}},
        )
    )
    # The host that is not known may be h1 or h2.
    assert lines(planned) == [
        'openstack aggregate add host 7 h3',
        'openstack aggregate unset --property trait:CUSTOM_LICENSED 7',
    ]
    assert planned.unread == (
        f'{AGGREGATE}.x: a part of hosts is known only after the apply.',
        f'{AGGREGATE}.x: metadata rack is known only after the apply.',
    )


def test_attributes_that_are_not_known_at_all_stay(plan):
    planned = plan(
        change(
            ['update'],
            win(zone='a'),
            {'id': '7', 'name': 'win'},
            {'hosts': True, 'metadata': True, 'zone': True},
        )
    )
    assert planned.commands == ()
    assert planned.unread == tuple(
        f'{AGGREGATE}.x: {name} is known only after the apply.'
        for name in ('zone', 'hosts', 'metadata')
    )


@pytest.mark.parametrize(
    ('planned_change', 'sentence'),
    [
        (
            change(['create'], None, {}, {'name': True}),
            'the aggregate is left out, because its name is known only after '
            'the apply',
        ),
        (
            change(['create'], None, {'name': 'win'}),
            'aggregate win is left out, because it exists already in '
            'cloud.yaml',
        ),
        (
            change(['update'], win(id='1', name='no'), win(id='1')),
            'aggregate no is not in cloud.yaml, so its change is left out',
        ),
        (
            change(['delete'], win(id='1', name='no'), None),
            'aggregate no is not in cloud.yaml, so its change is left out',
        ),
        (
            change(
                ['create'], None, {'name': 'f', 'ram': 1, 'disk': 1},
                {'vcpus': True}, FLAVOR,
            ),
            'flavor f is left out, because vcpus is known only after the '
            'apply',
        ),
        (
            change(
                ['create', 'delete'], {'name': 'large'}, {'name': 'large'},
                kind=FLAVOR,
            ),
            'the change is left out, because the new one would be created '
            'before the old one with the same name is deleted, which Nova '
            'refuses',
        ),
        (
            change(
                ['update'], win(), win(metadata={**WIN.metadata, 'a=b': 'c'})
            ),
            'metadata a=b is left out, because the openstack client takes '
            '"=" as the end of a key',
        ),
    ],
    ids=[
        'no name', 'exists', 'update', 'delete', 'no size', 'same name',
        'key with =',
    ],
)  # fmt: skip
def test_a_change_that_cannot_be_told_is_left_out_and_named(
    plan, planned_change, sentence
):
    planned = plan(planned_change)
    assert planned.commands == ()
    [unknown] = planned.unread
    kind = planned_change['type']
    text = sentence.replace('metadata a=b', "metadata 'a=b'")
    assert unknown == f'{kind}.x: {text}.'


def test_a_zone_that_the_provider_does_not_remove_stays(plan):
    cloud = make_snapshot(
        [dataclasses.replace(WIN, availability_zone='az1')],
        [make_compute_node('h1'), make_compute_node('h2')],
    )
    planned = plan(
        change(['update'], win(zone='az1'), win(zone='')), cloud=cloud
    )
    assert (planned.commands, planned.unread) == ((), ())
    assert planned.kept == (
        f'{AGGREGATE}.x: the provider does not remove an availability zone, '
        'so aggregate win stays in az1.',
    )


def test_an_aggregate_with_hosts_of_others_is_not_deleted(plan):
    planned = plan(change(['delete'], win(hosts=['h1']), None))
    assert lines(planned) == ['openstack aggregate remove host 7 h1']
    [unknown] = planned.unread
    assert unknown.endswith('and the plan does not remove h2.')


def test_only_what_the_plan_changes_is_changed(plan):
    # h9 has joined since the plan was made.
    cloud = make_snapshot(
        [dataclasses.replace(WIN, hosts=WIN.hosts | {'h9'})],
        [make_compute_node(f'h{number}') for number in (1, 2, 9)],
    )
    planned = plan(
        change(['update'], win(), win(name='windows', hosts=['h1'])),
        cloud=cloud,
    )
    assert lines(planned) == [
        'openstack aggregate remove host 7 h2',
        'openstack aggregate set --name=windows 7',
    ]
    [aggregate] = after(planned, cloud).aggregates
    assert (aggregate.name, sorted(aggregate.hosts)) == (
        'windows',
        ['h1', 'h9'],
    )


@pytest.mark.parametrize('is_public', [True, False, None])
def test_a_flavor_is_as_private_as_its_plan_says(plan, is_public):
    flavor = {'name': 'f', 'vcpus': 1, 'ram': 1, 'disk': 1}
    planned = plan(
        change(
            ['create'], None, flavor | {'is_public': is_public}, kind=FLAVOR
        )
    )
    [command] = planned.commands
    # The provider makes private flavors by default.
    assert ('--private' in command) is not bool(is_public)
    [*_, made] = after(planned).flavors
    assert made.is_public is bool(is_public)


def test_an_image_is_created_with_its_properties(plan):
    image = {
        'name': 'new', 'image_id': 'i-new', 'disk_format': 'raw',
        'min_disk_gb': 5, 'min_ram_mb': 64, 'visibility': 'public',
        'properties': {'trait:CUSTOM_A': 'required'},
    }  # fmt: skip
    planned = plan(change(['create'], None, image, kind=IMAGE))
    assert after(planned).images[-1] == Image(
        'new',
        'i-new',
        {'trait:CUSTOM_A': 'required'},
        visibility='public',
        disk_format='raw',
        min_disk=5,
        min_ram=64,
    )
    removed = plan(change(['delete'], {**image, 'id': 'i-win'}, None,
                          kind=IMAGE))  # fmt: skip
    assert after(removed).images == ()


@pytest.mark.parametrize(
    ('before', 'after', 'kind', 'is_left_out'),
    [
        ({'name': 'large'}, {'name': 'large'}, FLAVOR, True),
        ({'name': 'large'}, {'name': 'other'}, FLAVOR, False),
        ({'name': 'windows'}, {'name': 'windows'}, IMAGE, False),
    ],
)
def test_only_images_may_have_equal_names_for_a_moment(
    plan, before, after, kind, is_left_out
):
    planned = plan(change(['create', 'delete'], before, after, kind=kind))
    assert len(planned.commands) == (0 if is_left_out else 2)
    # What is left out does not end the plan.
    other = change(['update'], win(), win(metadata={'rack': 'r2'}))
    more = plan(change(['create', 'delete'], before, after, kind=kind), other)
    assert lines(more)[-2:] == lines(plan(other))


@pytest.mark.parametrize('key', ['id', 'flavor_id'])
def test_a_flavor_is_found_by_its_id(plan, key):
    before = {'name': 'renamed', key: 'f-large'}
    planned = plan(change(['delete'], before, None, kind=FLAVOR))
    assert lines(planned) == ['openstack flavor delete f-large']


@pytest.mark.parametrize(
    ('before', 'after', 'expected'),
    [
        ('private', 'public', ['openstack image set --public i-win']),
        # Somebody has made it so already.
        ('public', 'private', []),
        # The plan does not change it, whatever it is.
        ('public', 'public', []),
        ('public', '', []),
    ],
)
def test_only_a_visibility_that_differs_is_set(plan, before, after, expected):
    image = {'name': 'windows', 'id': 'i-win'}
    planned = plan(
        change(
            ['update'],
            {**image, 'visibility': before},
            {**image, 'visibility': after},
            kind=IMAGE,
        )
    )
    assert lines(planned) == expected


@pytest.mark.parametrize(
    ('before', 'after', 'expected'),
    [
        ('', 'az2', ['openstack aggregate set --zone=az2 7']),
        ('', 'az1', []),
        # The plan does not change it, whatever it is.
        ('az2', 'az2', []),
        ('', '', []),
    ],
)
def test_only_a_zone_that_differs_is_set(plan, before, after, expected):
    cloud = make_snapshot(
        [dataclasses.replace(WIN, availability_zone='az1')],
        [make_compute_node('h1'), make_compute_node('h2')],
    )
    planned = plan(
        change(['update'], win(zone=before), win(zone=after)), cloud=cloud
    )
    assert (lines(planned), planned.unread) == (expected, ())


def test_a_plan_for_two_regions_is_said_to_be_one(plan):
    two = [
        change(['update'], win(region=name), win(region=name))
        for name in ('east', 'west')
    ]
    assert plan(*two).unread == (
        'The plan changes the regions east, west, but all changes are '
        'applied to the same cloud here; set region_name.',
    )


def test_what_a_plan_looks_up_does_not_end_it(plan):
    found = {**change(['read'], None, win()), 'mode': 'data'}
    changed = change(['update'], win(), win(metadata={'rack': 'r2'}))
    assert plan(found, changed) == plan(changed)
    assert plan(changed).commands


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (b'{', ' is not JSON: line 1, column 2: Expecting property name '
               'enclosed in double quotes'),
        (b'\xff\xfe{', ' is not UTF-8 text: invalid start byte at byte 0'),
        (b'[' * 100_000, ' has lists or mappings that are nested too deeply'),
        (b'[]', ' must be a mapping, not a list'),
        (b'{}', ' is not a Terraform plan, because it has no format_version; '
                'write it with "terraform show -json PLAN"'),
        (b'{"format_version": 1}', ': format_version must be text, not an '
                                   'integer'),
        (b'{"format_version": "2.0"}', ": format_version must be 1.x, not "
                                       "'2.0'"),
        (b'{"format_version": "1.0", "values": {}}',
         ' is a Terraform state, not a plan; write the plan with "terraform '
         'plan -out PLAN" and "terraform show -json PLAN"'),
        (b'{"format_version": "1.0", "planned_values": {}, "errored": true}',
         ' is incomplete, because "terraform plan" failed'),
        (b'{"format_version": "1.0", "resource_changes": {}}',
         ': resource_changes must be a list, not a mapping'),
        (b'{"format_version": "1.0", "resource_changes": [3]}',
         ': resource_changes[0] must be a mapping, not an integer'),
        (b'{"format_version": "1.0", "resource_changes": [{}]}',
         ': resource_changes[0].type is missing or empty'),
    ],
)  # fmt: skip
def test_a_file_that_is_no_plan_is_refused_in_one_sentence(
    tmp_path, content, message
):
    path = tmp_path / 'plan.json'
    path.write_bytes(content)
    with pytest.raises(tools_errors.ChangesFileError) as caught:
        read(path, CLOUD)
    assert str(caught.value) == f'{path}{message}.'


@pytest.mark.parametrize(
    ('planned_change', 'message'),
    [
        (change(['explode'], None, None),
         'change.actions has unknown actions: explode'),
        (change([], None, None), 'change.actions has unknown actions: none'),
        (change(['update'], None, win()),
         'change.before is missing, but the action is update'),
        (change(['create'], None, None),
         'change.after is missing, but the action is create'),
        (change(['create'], None, {'name': 'n', 'hosts': 'h1'}),
         "change.after.hosts must be a list, not text"),
        (change(['create'], None, {'name': 'n', 'ram': True}, kind=FLAVOR),
         'change.after.ram must be an integer, not true or false'),
        (change(['update'], {'name': 'windows'}, {'visibility': 'secret'},
                kind=IMAGE),
         'change.after.visibility must be one of public, private, community, '
         "shared, not 'secret'"),
    ],
)  # fmt: skip
def test_the_place_of_a_mistake_in_a_plan_is_named(
    plan, tmp_path, planned_change, message
):
    with pytest.raises(tools_errors.ChangesFileError) as caught:
        plan(planned_change)
    assert str(caught.value) == (
        f'{tmp_path / "plan.json"}: resource_changes[0].{message}.'
    )


def test_a_file_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(tools_errors.ChangesFileError) as caught:
        read(tmp_path / 'none', CLOUD)
    assert str(caught.value) == (
        f'{tmp_path / "none"} cannot be read: No such file or directory.'
    )


# The openstack client.

CLIENT = {
    entry.name: entry
    for group in ('openstack.compute.v2', 'openstack.image.v2')
    for entry in metadata.entry_points(group=group)
}


def test_the_openstack_client_accepts_each_command():
    pytest.importorskip('openstackclient')
    for _, *words in read(FILES / 'plan.json', CLOUD).commands:
        [(count, entry)] = [
            (count, CLIENT[name])
            for count in (2, 3)
            if (name := '_'.join(words[:count])) in CLIENT
        ]
        parser = entry.load()(None, None).get_parser('openstack')
        parser.parse_args(words[count:])


# Files with mistakes.

VALUES = st.sampled_from(
    ['null', 'true', '0', '-1', '2.5', '""', '"x"', '"{{ x }}"', '[]',
     '["h1"]', '[null]', '{}', '{"a": "b"}', '{"a": null}', '[["x"]]',
     '{"": {}}']
).map(json.loads)  # fmt: skip


def places(value, path=()):
    yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value if isinstance(value, list) else ())
    )
    for key, each in items:
        yield from places(each, (*path, key))


@given(data=st.data())
@examples(50)
def test_a_mistake_anywhere_is_an_error_or_a_plan(data):
    documents = [json.loads((FILES / 'plan.json').read_text())]
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from([*places(documents)][1:]))
        *above, last = path
        part = documents
        for key in above:
            part = part[key]
        part[last] = data.draw(VALUES)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'plan.json'
        path.write_text(json.dumps(documents[0]))
        try:
            planned = read(path, CLOUD)
        except tools_errors.ChangesFileError as error:
            message = str(error)
        else:
            message = f'{path} is valid.'
            if planned.commands:
                after(planned)
                commands.shown(planned.commands)
    assert message.startswith(str(path))
    assert '\n' not in message


# What is not understood is said.


def test_a_plan_without_any_resource_that_is_read_is_an_error(plan):
    with pytest.raises(tools_errors.ChangesFileError, match='no resource'):
        plan(change(['create'], None, {}, kind='null_resource'))


def test_a_resource_of_another_type_is_named_if_it_changes(plan):
    own = change(['no-op'], win(), win())
    access = 'openstack_compute_flavor_access_v2'
    assert plan(own, change(['create'], None, {}, kind=access)).unread == (
        f'{access}.x is of a type that is not read.',
    )
    for quiet in (
        change(['no-op'], {}, {}, kind=access),
        change(['create'], None, {}, kind='openstack_networking_network_v2'),
    ):
        assert plan(own, quiet).unread == ()


def test_a_resource_in_another_region_is_left_out(tmp_path):
    path = tmp_path / 'plan.json'
    west = change(['update'], win(region='west'), win(region='west', hosts=[]))
    path.write_text(
        json.dumps({'format_version': '1.2', 'resource_changes': [west]})
    )
    planned = read(path, CLOUD, 'east')
    assert planned.commands == ()
    assert planned.unread == (
        f'{AGGREGATE}.x is left out, because it is in region west, not in '
        'east.',
    )
    assert read(path, CLOUD, 'west').kept == ()
    assert read(path, CLOUD).kept == (
        'whether cloud.yaml is region west, which the plan changes; set '
        'region_name.',
    )
