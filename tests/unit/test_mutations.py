# SPDX-License-Identifier: Apache-2.0
"""Answers for altered clouds are those of a cloud that is read anew."""

import pathlib
import random

import pytest
import yaml

from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.tools.answers import deciding
from isolate_aggregates.tools.answers.requests import Requests
from isolate_aggregates.tools.cli import base
from isolate_aggregates.tools.cloud.file import cloud_file
from isolate_aggregates.tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates.tools.expectations import mutations
from isolate_aggregates.tools.expectations.answers import Answers, Context
from isolate_aggregates.tools.mirrored import chain

EXAMPLES = sorted(
    (pathlib.Path(__file__).parents[2] / 'examples').glob('*.yaml')
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
    base.apply_settings(conf, snapshot)
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
