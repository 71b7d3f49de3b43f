# SPDX-License-Identifier: Apache-2.0
"""Answers for altered clouds are those of a cloud that is read anew."""

import dataclasses
import pathlib
import random
import types

from audit_clouds import LICENSED, LOCK, configuration
import pytest
import yaml

from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools.answers import deciding
from isolate_aggregates_tools.answers.requests import Requests
from isolate_aggregates_tools.cloud import changes
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.expectations import mutations
from isolate_aggregates_tools.expectations.answers import (
    Answers,
    Context,
    names_trait,
)
from isolate_aggregates_tools.mirrored import chain
from isolate_aggregates_tools.placement.group import (
    RequestGroup,
    ResourceRequest,
)
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_image,
    make_provider,
    make_snapshot,
    make_tree,
)

EXAMPLES = sorted(
    (pathlib.Path(__file__).parents[3] / 'examples').glob('*.yaml')
)


def answers_of(snapshot, conf):
    """Return the answers of a cloud, with nothing remembered."""
    context = Context(
        conf,
        chain.as_in_nova(conf),
        Pipeline(loading.load(conf)),
        Requests(SnapshotCloud(snapshot), conf),
    )
    return Answers(snapshot, context)


TRAITS = ['CUSTOM_A', 'CUSTOM_B']
# What metadata of aggregates can say, and what flavors and images can ask for.
TAGS = {
    'trait:CUSTOM_A': 'required',
    'trait:CUSTOM_B': 'required',
    'reservation:1': 'true',
    'filter_tenant_id': 'p1',
    'colour': 'blue',
    'rack': '7',
}
SPECS = {
    'trait:CUSTOM_A': 'required',
    'trait:CUSTOM_B': 'forbidden',
    'resources2:CUSTOM_GOLD': '1',
    'trait2:CUSTOM_B': 'required',
    'reservation:1': 'true',
    'aggregate_instance_extra_specs:colour': 'blue',
    'hw:cpu_policy': 'dedicated',
}
GOLD = {'resources2:CUSTOM_GOLD': '1', 'trait2:CUSTOM_B': 'required'}
PROPERTIES = {
    'trait:CUSTOM_A': 'required',
    'reservation:1': 'true',
    'os_distro': 'x',
}


def some(chance, values):
    """Return some of the pairs of a mapping."""
    return {k: v for k, v in values.items() if chance.random() < 0.25}


def random_cloud(seed):
    """Return a small cloud with trees, locks, and sometimes shared storage."""
    chance = random.Random(seed)
    hosts = [f'h{number}' for number in range(4)]
    providers = []
    for host in hosts:
        child = {
            'name': f'{host}-child',
            'inventories': {'CUSTOM_GOLD': chance.randrange(1, 4)},
            'traits': [t for t in TRAITS if chance.random() < 0.6],
        }
        traits = [t for t in TRAITS if chance.random() < 0.6]
        if chance.random() < 0.2:
            traits.append('COMPUTE_STATUS_DISABLED')
        cpus = chance.choice(['VCPU', 'VCPU', 'PCPU'])
        providers.append(
            {
                'name': host,
                'inventories': {cpus: 4, 'MEMORY_MB': 4096, 'DISK_GB': 40},
                'usages': {cpus: chance.randrange(3)},
                'traits': traits,
                'children': [child] if chance.random() < 0.6 else [],
            }
        )
    if seed % 5 == 0:
        providers.append(
            {
                'name': 'storage',
                'host': None,
                'inventories': {'CUSTOM_GOLD': 5},
                'traits': ['MISC_SHARES_VIA_AGGREGATE', 'CUSTOM_B'],
                'aggregates': ['a0'],
            }
        )
    return {
        'version': 1,
        'settings': {
            'scheduler': {
                'enable_isolated_aggregate_filtering': True,
                'placement_req_required_member_prefix': ['reservation:'],
                'placement_req_default_forbidden_member_prefix': [
                    'reservation:'
                ],
            },
            'filter_scheduler': {
                'enabled_filters': [
                    'AggregateInstanceExtraSpecsFilter',
                    'AggregateMultiTenancyIsolation',
                ]
            },
            'isolate_aggregates': {
                'request_filters': [
                    'isolate_aggregates',
                    'reservation_prefix',
                    'isolate_tenants',
                ],
                'trait_sources': ['flavor', 'image'],
            },
        },
        'aggregates': [
            {
                'name': f'a{number}',
                'metadata': some(chance, TAGS),
                'hosts': [h for h in hosts if chance.random() < 0.6],
            }
            for number in range(3)
        ],
        'providers': providers,
        'flavors': [
            {
                'name': f'f{number}',
                'vcpus': 1 + number % 2,
                'ram': 512,
                'disk': 1,
                'extra_specs': specs,
            }
            for number, specs in enumerate(
                ({}, GOLD, some(chance, SPECS), some(chance, SPECS))
            )
        ],
        'images': [
            {'name': f'i{number}', 'properties': some(chance, PROPERTIES)}
            for number in range(2)
        ],
    }


def requests(answers, projects):
    """Yield all requests that the objects of a cloud can make."""
    for flavor in answers.snapshot.flavors:
        for project in projects:
            for image in (None, *answers.snapshot.images):
                yield answers.request(flavor, image, project)


def check_all_mutations(snapshot, conf):
    """Compare all answers for each altered cloud; return their number."""
    clouds.apply_settings(conf, snapshot)
    answers = answers_of(snapshot, conf)
    projects = [None, *sorted(answers.named_projects)]
    # Fill what is remembered.
    for request in requests(answers, projects):
        answers.hosts(request)
        answers.room(request)
    number = differences = 0
    for mutation in mutations.mutations_of(answers, snapshot.images):
        altered = mutation.alter()
        anew = answers_of(altered.snapshot, conf)
        assert altered.locks_by_host == anew.locks_by_host
        assert altered.compute_hosts == anew.compute_hosts
        for old, fast, slow in zip(
            *(requests(one, projects) for one in (answers, altered, anew)),
            strict=True,
        ):
            assert altered.hosts(fast) == anew.hosts(slow), mutation
            assert altered.room(fast) == anew.room(slow), mutation
            differences += altered.hosts(fast) != answers.hosts(old)
        number += 1
    return number, differences


@pytest.mark.parametrize('path', EXAMPLES, ids=lambda path: path.stem)
def test_each_answer_for_an_example_is_that_of_a_cloud_read_anew(conf, path):
    with deciding.silent():
        check_all_mutations(cloud_file.load(path), conf)


def test_each_answer_is_that_of_a_cloud_read_anew(conf, tmp_path):
    numbers = differences = 0
    for seed in range(15):
        path = tmp_path / f'cloud-{seed}.yaml'
        path.write_text(yaml.safe_dump(random_cloud(seed)), 'utf-8')
        with deciding.silent():
            number, different = check_all_mutations(
                cloud_file.load(path), conf
            )
        numbers += number
        differences += different
    assert numbers > 300
    assert differences > 250


def test_a_host_that_shares_with_others_affects_them(conf, write_cloud):
    path = write_cloud("""
        aggregates:
        - {name: shared, hosts: [h1, h2]}
        providers:
        - name: h1
          inventories: {VCPU: 4}
          children:
          - name: storage
            inventories: {CUSTOM_GOLD: 4}
            traits: [CUSTOM_B, MISC_SHARES_VIA_AGGREGATE]
            aggregates: [shared]
        - {name: h2, inventories: {VCPU: 4}}
        flavors:
        - name: gold
          vcpus: 1
          extra_specs:
            resources:MEMORY_MB: '0'
            resources2:CUSTOM_GOLD: '1'
            trait2:CUSTOM_B: required
    """)
    snapshot = cloud_file.load(path)
    answers = answers_of(snapshot, conf)
    request = answers.request(*snapshot.flavors)
    assert answers.hosts(request) == {'h1', 'h2'}
    numbers = [
        len(mutation.alter().hosts(request))
        for mutation in mutations.mutations_of(answers, ())
        if mutation.subject == 'provider storage'
    ]
    # Without B no host has it; a provider that does not share has it for h1.
    assert numbers == [0, 1]


def test_only_answers_of_the_same_aggregates_are_taken_over(conf):
    first = answers_of(cloud_file.load(EXAMPLES[0]), conf)
    same = Answers(first.snapshot, first.context, first, True)
    assert (same.questions, same.places) == (first.questions, first.places)
    assert same.questions is first.questions
    assert same.places is first.places
    other = Answers(first.snapshot, first.context, first)
    assert other.questions is not first.questions
    assert other.places is not first.places


TENANTS = configuration(
    request_filters=['isolate_aggregates', 'isolate_tenants'],
    limit_tenants_to_placement_aggregate=True,
)
H1 = make_compute_node('h1', traits=[LICENSED])
PLAIN, KEYED = make_flavor('plain'), make_flavor('keyed', LOCK)


def altered(answers, change):
    return Answers(change(answers.snapshot), answers.context, answers)


@pytest.mark.parametrize(
    ('tags', 'change', 'effect'),
    [
        (
            {'filter_tenant_id': 'p1'},
            changes.values(KEYED, dict.fromkeys(LOCK)),
            'flavor keyed in project p1 could no longer use h1',
        ),
        (
            {},
            changes.values(KEYED, dict.fromkeys(LOCK)),
            'flavor keyed could no longer use h1',
        ),
        (
            {},
            changes.values(PLAIN, LOCK),
            'flavor plain could use h1',
        ),
        (
            {},
            changes.values(make_image('key', LOCK), dict.fromkeys(LOCK)),
            'flavor plain with image key could no longer use h1',
        ),
        ({}, lambda snapshot: snapshot, ''),
    ],
)
def test_the_effect_of_a_mutation_is_an_answer_that_differs(
    tags, change, effect
):
    own = make_aggregate('own', {**LOCK, **tags}, ['h1'])
    images = [make_image('key', LOCK)]
    snapshot = make_snapshot(
        [own], [H1], flavors=[PLAIN, KEYED], images=images
    )
    with deciding.silent():
        answers = answers_of(snapshot, TENANTS)
        comparison = mutations._Comparison(answers)
        assert comparison.effect(altered(answers, change)) == effect


def test_each_answer_for_two_hosts_is_that_of_a_cloud_read_anew(conf):
    inventories = {'VCPU': 4, 'MEMORY_MB': 9000}
    nodes = [
        make_compute_node(host, inventories=inventories, traits=traits)
        for host, traits in (
            ('h1', [LICENSED, 'CUSTOM_B']),
            ('h2', [LICENSED]),
        )
    ]
    without = {**LOCK, 'trait:CUSTOM_B': 'forbidden'}
    flavors = [
        make_flavor('keyed', LOCK, disk=0),
        make_flavor('without', without, disk=0),
    ]
    win = make_aggregate('win', LOCK, ['h1', 'h2'])
    group = 'scheduler', 'enable_isolated_aggregate_filtering'
    snapshot = dataclasses.replace(
        make_snapshot([win], nodes, flavors=flavors), settings={group: True}
    )
    with deciding.silent():
        assert check_all_mutations(snapshot, conf) == (11, 12)
        answers = answers_of(snapshot, conf)
    assert answers.packed(None) == 0
    assert answers.usable(None) == frozenset()


def test_images_of_operators_that_matter_are_altered():
    images = [
        make_image('key', LOCK),
        make_image('plain', {'a': 'b'}),
        make_image('asked', {'c': 'd'}),
        make_image('mine', LOCK, owner='p1', visibility='private'),
    ]
    win = make_aggregate('win', LOCK, ['h1'])
    answers = answers_of(
        make_snapshot([win], [H1], flavors=[PLAIN], images=images), TENANTS
    )
    for image in images[2:]:
        answers.request(PLAIN, image)
    comparison = mutations._Comparison(answers)
    assert [image.name for image in comparison.images] == ['key', 'asked']


@pytest.mark.parametrize(
    ('needs', 'gets'),
    [
        ({'min_ram': 512, 'min_disk': 1, 'size': 2**30}, None),
        ({'min_ram': 513}, (513, 1)),
        ({'min_disk': 2}, (512, 2)),
        ({'size': 2**30 + 1}, (512, 2)),
        ({'min_disk': 3, 'size': 2**30 + 1}, (512, 3)),
    ],
)
def test_a_flavor_is_enlarged_for_an_image_that_does_not_fit(needs, gets):
    answers = answers_of(make_snapshot([], []), TENANTS)
    flavor, image = Flavor('f', ram=512, disk=1), Image('i', **needs)
    large = answers.enlarged(flavor, image)
    if gets:
        assert (large.ram, large.disk) == gets
    else:
        assert large is flavor
    assert answers.enlarged(flavor, image) is large


@pytest.mark.parametrize(
    ('query', 'group', 'is_named'),
    [
        ({'root_required': {'A'}}, {}, True),
        ({'root_forbidden': {'A'}}, {}, True),
        ({}, {'required_traits': {'A'}}, True),
        ({}, {'forbidden_traits': {'A'}}, True),
        ({}, {'any_traits': [frozenset('B'), frozenset('CA')]}, True),
        ({'root_required': {'B'}}, {'any_traits': [frozenset('B')]}, False),
    ],
)
def test_a_question_names_a_trait_in_any_part(query, group, is_named):
    groups = {'': RequestGroup(), '_X': RequestGroup(**group)}
    question = types.SimpleNamespace(
        queries=(ResourceRequest(), ResourceRequest(groups, **query))
    )
    assert names_trait(question, 'A') is is_named
    # Shared storage matters to each.
    assert names_trait(question, 'MISC_SHARES_VIA_AGGREGATE')
    assert not names_trait(None, 'A')


def test_hosts_with_slots_are_those_of_their_trees():
    def slots(name, number, resource_class='CUSTOM_RESERVATION_A'):
        inventories = {resource_class: number}
        return make_provider(name, inventories=inventories)

    snapshot = make_snapshot(
        [],
        [
            make_tree(H1, slots('s1', 1)),
            make_tree(make_compute_node('h2'), slots('s2', 2)),
            slots('shared', 1, 'CUSTOM_RESERVATION_B'),
            make_tree(make_compute_node('h3'), slots('s3', 1, 'CUSTOM_GOLD')),
        ],
    )
    assert answers_of(snapshot, TENANTS).slot_hosts == {
        'CUSTOM_RESERVATION_A': {'h1', 'h2'}
    }


def test_the_room_is_that_of_the_hosts_that_filters_of_nova_pass():
    conf = configuration(enabled_filters=['AggregateInstanceExtraSpecsFilter'])
    inventories = {'VCPU': 4, 'MEMORY_MB': 4096}
    nodes = [
        make_compute_node(host, inventories=inventories)
        for host in ('h1', 'h2')
    ]
    key = 'aggregate_instance_extra_specs:colour'
    flavors = [
        make_flavor(colour, {key: colour} if colour else {}, ram=512, disk=0)
        for colour in ('', 'blue', 'red')
    ]
    blue = make_aggregate('blue', {'colour': 'blue'}, ['h1'])
    with deciding.silent():
        answers = answers_of(
            make_snapshot([blue], nodes, flavors=flavors), conf
        )
        rooms = [answers.room(answers.request(flavor)) for flavor in flavors]
    assert rooms == [8, 4, 0]


def test_every_mutation_is_counted_once(conf, tmp_path):
    """Also those of traits that no question names."""
    path = tmp_path / 'cloud.yaml'
    path.write_text(yaml.safe_dump(random_cloud(1)), 'utf-8')
    answers = answers_of(cloud_file.load(path), conf)
    totals = []

    def track(some, total):
        totals.append(total)
        return some

    coverage = mutations.coverage([], answers, track)
    assert coverage.noticed == 0
    assert [coverage.without_effect + len(coverage.gaps)] == totals
