# SPDX-License-Identifier: Apache-2.0
"""The reasons for each host, and the counts over all hosts.

Requests are written as the query string that they come to.
"""

import dataclasses

from cases import cases
from mirrors import mirrored
import pytest

from isolate_aggregates import exception
from isolate_aggregates.filters.aggregate_instance_extra_specs import (
    AggregateInstanceExtraSpecs,
)
from isolate_aggregates.filters.constraints import (
    Destination,
    Forbid,
    Refuse,
    Require,
)
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.filters.reservation_prefix import ReservationPrefix
from isolate_aggregates_tools.explain import explain
from isolate_aggregates_tools.explain.conclusions import Concluded
from isolate_aggregates_tools.placement.group import (
    RequestGroup,
    ResourceRequest,
)
from isolate_aggregates_tools.placement.provider import Inventory
from isolate_aggregates_tools.request import resources
from isolate_aggregates_tools.request.constraints import (
    ForbidRootTrait,
    InTree,
)
from isolate_aggregates_tools.simulator import query
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_provider,
    make_request,
    make_snapshot,
    make_tree,
)

SHARES = ['MISC_SHARES_VIA_AGGREGATE']
VCPU_8 = 'resources=VCPU:8'
DISK_8 = 'resources=DISK_GB:8'

LEASE = make_aggregate('lease-1')
OTHER_LEASE = make_aggregate('lease-2')


def explained(providers, request, *constraints):
    """Explain a query, with what a filter concluded."""
    if isinstance(request, str):
        request = query.candidates(query.parameters(request))
    destination = Destination()
    for constraint in constraints:
        destination.add(constraint, 'a_filter')
    snapshot = dataclasses.replace(
        make_snapshot([LEASE, OTHER_LEASE], providers),
        traits=frozenset({'CUSTOM_A', 'CUSTOM_B', 'CUSTOM_GPU'}),
    )
    return explain(snapshot, request, destination)


def reasons(explanation):
    """Return the reasons by host."""
    return {
        verdict.host: [reason.text for reason in verdict.reasons]
        for verdict in explanation.verdicts
    }


def labels(explanation):
    """Return what to drop, for each way to do so."""
    return [[c.label for c in remedy] for remedy in explanation.remedies]


def node(name='host', vcpus=64, **more):
    """Return a compute node that has only VCPU."""
    return make_compute_node(name, inventories={'VCPU': vcpus}, **more)


def numa(name, used=0, **more):
    """Return a NUMA node with 16 VCPU."""
    usages = {'VCPU': used}
    inventories = {'VCPU': 16}
    return make_provider(name, inventories=inventories, usages=usages, **more)


def tree(*children, **more):
    """Return a host with its disk at the root."""
    more.setdefault('inventories', {'DISK_GB': 100})
    return make_tree(make_compute_node('host', **more), *children)


# What the filters conclude


FILTERS = Pipeline(
    {
        **mirrored('compute_status', 'requested_host'),
        'reservation_prefix': ReservationPrefix(
            ('reservation:',), ('reservation:',)
        ),
        'isolate_aggregates': IsolateAggregates(),
    }
)
WINDOWS = {'trait:CUSTOM_LICENSED_WINDOWS': 'required'}
RESERVED = {'reservation:4d17': 'true'}
CLOUD = make_snapshot(
    [
        make_aggregate('win-hosts', WINDOWS, ['win-1', 'both']),
        make_aggregate('lease-4d17', RESERVED, ['reserved-1', 'both']),
    ],
    [
        make_compute_node('win-1'),
        make_compute_node('both'),
        make_compute_node('reserved-1'),
        make_compute_node('off', traits=['COMPUTE_STATUS_DISABLED']),
        make_compute_node('plain-1'),
    ],
)


def concluded(request):
    """Explain a request for the cloud with all filters."""
    return explain(
        CLOUD,
        resources.resource_request(request),
        FILTERS.evaluate(request, CLOUD.index),
    )


def excluding(explanation):
    """Return the filters that exclude each host."""
    return {
        verdict.host: [
            requirement.conclusion.filter_name
            for cause in verdict.causes
            for requirement in cause
            if isinstance(requirement, Concluded)
        ]
        for verdict in explanation.verdicts
    }


def test_each_filter_that_keeps_a_request_from_a_host_is_named():
    conclusions = concluded(make_request())
    assert excluding(conclusions) == {
        'both': ['reservation_prefix', 'isolate_aggregates'],
        'off': ['compute_status'],
        'plain-1': [],
        'reserved-1': ['reservation_prefix'],
        'win-1': ['isolate_aggregates'],
    }


def test_a_host_outside_the_reservation_is_excluded_by_its_filter():
    conclusions = concluded(make_request(make_flavor(extra_specs=RESERVED)))
    assert excluding(conclusions) == {
        'both': ['isolate_aggregates'],
        'off': ['compute_status', 'reservation_prefix'],
        'plain-1': ['reservation_prefix'],
        'reserved-1': [],
        'win-1': ['reservation_prefix', 'isolate_aggregates'],
    }
    assert reasons(conclusions)['plain-1'] == [
        'not in aggregate lease-4d17: the request names reservation:4d17'
    ]


def test_other_hosts_than_the_requested_one_are_not_in_its_tree():
    host = CLOUD.requested_host('plain-1')
    texts = reasons(concluded(make_request(requested_host=host)))
    assert texts['plain-1'] == []
    assert texts['reserved-1'][0] == (
        "not in the requested host's tree: host plain-1 was requested"
    )


def test_a_refusal_is_the_reason_of_every_host():
    host = CLOUD.requested_host('nowhere')
    found = excluding(concluded(make_request(requested_host=host)))
    assert found['plain-1'] == ['requested_host']
    assert found['off'] == ['compute_status', 'requested_host']


def test_a_disabled_compute_service_is_reported():
    texts = reasons(concluded(make_request()))
    assert texts['off'] == ['compute service disabled']


# One requirement of the request


@cases(
    ('providers', 'query', 'message'),
    {
        'a required trait': (
            [node()],
            f'{VCPU_8}&required=HW_CPU_X86_AVX512F',
            'has no trait HW_CPU_X86_AVX512F',
        ),
        'one of several traits': (
            [node()],
            f'{VCPU_8}&required=in:HW_CPU_X86_AVX2,HW_CPU_X86_AVX512F',
            'has none of traits HW_CPU_X86_AVX2, HW_CPU_X86_AVX512F',
        ),
        'a forbidden trait': (
            [node(traits=['CUSTOM_GPU'])],
            f'{VCPU_8}&required=!CUSTOM_GPU',
            'has forbidden trait CUSTOM_GPU',
        ),
        'a trait required of the root': (
            [node()],
            f'{VCPU_8}&root_required=CUSTOM_GPU',
            'root provider has no trait CUSTOM_GPU',
        ),
        'a trait forbidden to the root': (
            [node(traits=['CUSTOM_GPU'])],
            f'{VCPU_8}&root_required=!CUSTOM_GPU',
            'root provider has forbidden trait CUSTOM_GPU',
        ),
        'an aggregate': (
            [node()],
            f'{VCPU_8}&member_of={LEASE.uuid}',
            'not in aggregate lease-1',
        ),
        'one of several aggregates': (
            [node()],
            f'{VCPU_8}&member_of=in:{LEASE.uuid},{OTHER_LEASE.uuid}',
            'not in aggregates lease-1, lease-2',
        ),
        'a forbidden aggregate': (
            [node(aggregates=[LEASE])],
            f'{VCPU_8}&member_of=!in:{LEASE.uuid}',
            'in aggregate lease-1',
        ),
        'the tree of an unknown provider': (
            [node()],
            f'{VCPU_8}&in_tree={LEASE.uuid}',
            "not in the requested host's tree",
        ),
        'a resource class that it does not have': (
            [node()],
            'resources=VGPU:1',
            'VGPU: has none',
        ),
        'a group': (
            [node()],
            'resources_GPU=VGPU:1',
            'group _GPU: VGPU: has none',
        ),
        'group_policy': (
            [node()],
            'resources1=VCPU:1&resources2=VCPU:1&group_policy=isolate',
            'group_policy isolate: groups 1, 2 find no separate providers',
        ),
        'several constraints on several groups': (
            [tree(numa('numa0'), numa('numa1'), inventories={})],
            'resources1=VCPU:9&resources2=VCPU:9&same_subtree=1,2'
            '&group_policy=isolate',
            'cannot be met together: group_policy isolate; '
            'same_subtree of groups 1, 2',
        ),
        'same_subtree': (
            [
                tree(
                    numa('numa0'),
                    make_provider('gpu', inventories={'VGPU': 1}),
                )
            ],
            'resources1=VCPU:1&resources2=VGPU:1&same_subtree=1,2'
            '&group_policy=none',
            'groups 1, 2 find no providers in a single subtree',
        ),
    },
)
def test_the_unmet_constraint_of_a_host_is_named(providers, query, message):
    assert reasons(explained(providers, query)) == {'host': [message]}


@cases(
    ('inventory', 'used', 'said'),
    {
        'used': (Inventory(64), 61, 'free 3 (64 total x 1.0 - 61 used)'),
        'a ratio that is a whole number': (
            Inventory(1, allocation_ratio=4),
            0,
            'free 4 (1 total x 4.0 - 0 used)',
        ),
        'reserved, and a fraction': (
            Inventory(4, 1, allocation_ratio=1.5),
            1,
            'free 3 ((4 total - 1 reserved) x 1.5 rounded down - 1 used)',
        ),
        'a product that floating point does not hit': (
            Inventory(10, allocation_ratio=1.1),
            5,
            'free 6 (10 total x 1.1 - 5 used)',
        ),
        'a ratio as a database of single precision tells it': (
            Inventory(4, allocation_ratio=16.000000476837158),
            63,
            'free 1 (4 total x 16.0 - 63 used)',
        ),
        'more reserved than there is': (
            Inventory(64, 70),
            0,
            'free 0 ((64 total - 70 reserved) x 1.0 - 0 used)',
        ),
        'more used than there is': (
            Inventory(8),
            20,
            'free 0 (8 total x 1.0 - 20 used)',
        ),
        'max': (Inventory(64, max_unit=4), 0, 'max_unit 4'),
        'min': (Inventory(64, min_unit=16), 0, 'min_unit 16'),
        'step': (Inventory(64, step_size=3), 0, 'step_size 3'),
        'all at once': (
            Inventory(64, max_unit=4, step_size=3),
            60,
            'max_unit 4, step_size 3, free 4 (64 total x 1.0 - 60 used)',
        ),
    },
)
def test_a_requested_amount_is_compared_with_the_free_amount(
    inventory, used, said
):
    host = node(vcpus=inventory, usages={'VCPU': used})
    explanation = explained([host], VCPU_8)
    assert reasons(explanation) == {'host': [f'VCPU: requested 8, {said}']}


def test_all_constraints_that_exclude_a_host_are_named():
    request = f'{VCPU_8}&required=HW_CPU_X86_AVX2,!CUSTOM_GPU'
    explanation = explained(
        [node(vcpus=4, traits=['CUSTOM_GPU'])],
        request,
        Require((LEASE,), 'reserved'),
        ForbidRootTrait('CUSTOM_GPU', 'for others'),
    )
    assert reasons(explanation) == {
        'host': [
            'not in aggregate lease-1: reserved',
            'has trait CUSTOM_GPU: for others',
            'has no trait HW_CPU_X86_AVX2',
            'has forbidden trait CUSTOM_GPU',
            'VCPU: requested 8, free 4 (4 total x 1.0 - 0 used)',
        ]
    }


def test_many_aggregates_are_not_all_named():
    leases = [make_aggregate(f'lease-{number}') for number in range(7)]
    destination = Destination()
    destination.add(Require(tuple(leases), 'reserved'), 'a_filter')
    request = query.candidates(query.parameters(VCPU_8))
    snapshot = make_snapshot(leases, [node()])
    assert reasons(explain(snapshot, request, destination)) == {
        'host': [
            'not in aggregates lease-0, lease-1, lease-2, lease-3, lease-4 '
            'and 2 more: reserved'
        ]
    }


def test_an_aggregate_without_a_name_is_shown_by_its_uuid():
    unknown = '00000000-0000-4000-8000-000000000001'
    explanation = explained([node()], f'{VCPU_8}&member_of={unknown}')
    assert reasons(explanation) == {'host': [f'not in aggregate {unknown}']}


# Trees of providers


@cases(
    ('providers', 'query', 'message'),
    {
        'no provider has the room': (
            [tree(numa('numa0', 13), numa('numa1', 12))],
            VCPU_8,
            'VCPU: numa0: requested 8, free 3 (16 total x 1.0 - 13 used); '
            'numa1: requested 8, free 4 (16 total x 1.0 - 12 used)',
        ),
        'all have as little room': (
            [tree(numa('numa0', 13), numa('numa1', 13))],
            VCPU_8,
            'VCPU: numa0, numa1: requested 8, free 3 (16 total x 1.0 - 13 '
            'used)',
        ),
        'the root alone has any': (
            [tree(numa('numa0'), usages={'DISK_GB': 99})],
            DISK_8,
            'DISK_GB: requested 8, free 1 (100 total x 1.0 - 99 used)',
        ),
        'no provider has the trait': (
            [tree(numa('numa0'), numa('numa1'))],
            f'{VCPU_8}&required=HW_NUMA_ROOT',
            'has no trait HW_NUMA_ROOT',
        ),
        'the trait is where nothing is asked from': (
            [tree(numa('numa0'), traits=['CUSTOM_A'])],
            f'{VCPU_8}&required=CUSTOM_A',
            'trait CUSTOM_A is only on host, where none of the requested '
            'resources are',
        ),
        'all that could give have the forbidden trait': (
            [tree(numa('numa0', traits=['CUSTOM_A']))],
            f'{VCPU_8}&required=!CUSTOM_A',
            'has forbidden trait CUSTOM_A',
        ),
        'only they could give one of the resource classes': (
            [tree(numa('numa0', traits=['CUSTOM_A']))],
            'resources=VCPU:8,DISK_GB:8&required=!CUSTOM_A',
            'numa0: has forbidden trait CUSTOM_A',
        ),
        'one has the room and another the trait': (
            [
                tree(
                    numa('numa0', 13, traits=['CUSTOM_A']),
                    numa('numa1'),
                )
            ],
            'resources_NUMA=VCPU:8&required_NUMA=CUSTOM_A',
            'group _NUMA: no single provider meets everything: numa0: VCPU: '
            'requested 8, free 3 (16 total x 1.0 - 13 used); numa1: has no '
            'trait CUSTOM_A',
        ),
        'the same without a suffix': (
            [
                tree(
                    numa('numa0', 13, traits=['CUSTOM_A']),
                    numa('numa1'),
                    numa('numa2'),
                    # Neither: nothing to learn from it.
                    numa('numa3', 16),
                )
            ],
            f'{VCPU_8}&required=CUSTOM_A',
            'no provider of VCPU meets everything: numa0: VCPU: requested 8, '
            'free 3 (16 total x 1.0 - 13 used); numa1, numa2: has no trait '
            'CUSTOM_A',
        ),
        'each has one of two traits': (
            [
                tree(
                    numa('numa0', traits=['CUSTOM_A']),
                    numa('numa1', traits=['CUSTOM_B']),
                )
            ],
            'resources_NUMA=VCPU:8&required_NUMA=CUSTOM_A,CUSTOM_B',
            'group _NUMA: no single provider meets everything: numa0: has no '
            'trait CUSTOM_B; numa1: has no trait CUSTOM_A',
        ),
        'a trait without requested resources': (
            [
                tree(
                    numa('numa0', traits=['CUSTOM_A']),
                    usages={'DISK_GB': 99},
                    traits=['CUSTOM_B'],
                ),
            ],
            'resources=VCPU:8&required=CUSTOM_A,CUSTOM_B',
            'trait CUSTOM_B is only on host, where none of the requested '
            'resources are',
        ),
        'the provider with the trait is full': (
            [
                make_tree(
                    make_compute_node(
                        'host', inventories={'VCPU': 16, 'MEMORY_MB': 64}
                    ),
                    make_provider(
                        'numa0',
                        inventories={'VCPU': 4, 'MEMORY_MB': 4},
                        traits=['CUSTOM_A'],
                    ),
                )
            ],
            'resources=VCPU:8,MEMORY_MB:8&required=CUSTOM_A',
            'no providers of MEMORY_MB, VCPU together meet everything: host: '
            'has no trait CUSTOM_A; numa0: MEMORY_MB: requested 8, free 4 (4 '
            'total x 1.0 - 0 used), VCPU: requested 8, free 4 (4 total x 1.0 '
            '- 0 used)',
        ),
        'one provider has to give all of a group': (
            [
                make_tree(
                    make_compute_node('host', inventories={'MEMORY_MB': 64}),
                    numa('numa0'),
                )
            ],
            'resources1=VCPU:8,MEMORY_MB:8',
            'group 1: no single provider meets everything: host: has no VCPU; '
            'numa0: has no MEMORY_MB',
        ),
        'two groups ask for the same': (
            [tree(numa('numa0', 4))],
            'resources1=VCPU:8&resources2=VCPU:8&group_policy=none',
            'cannot be met together: group 1: requests VCPU 8; group 2: '
            'requests VCPU 8; VCPU: numa0: free 12 (16 total x 1.0 - 4 used)',
        ),
        'two groups ask for the same of a host without a tree': (
            [node(vcpus=12)],
            'resources1=VCPU:8&resources2=VCPU:8&group_policy=none',
            'cannot be met together: group 1: requests VCPU 8; group 2: '
            'requests VCPU 8; VCPU: free 12 (12 total x 1.0 - 0 used)',
        ),
    },
)
def test_in_a_tree_the_providers_are_named(providers, query, message):
    assert reasons(explained(providers, query)) == {'host': [message]}


@pytest.mark.parametrize(
    ('query', 'above'), [(VCPU_8, []), ('resources=VCPU:32', ['VCPU: '])]
)
def test_a_compute_node_that_was_moved_below_another_is_no_root(query, above):
    trees = make_tree(
        make_compute_node('host', inventories={'VCPU': 16}),
        make_compute_node('moved', inventories={'VCPU': 16}),
    )
    explanation = explained([trees], query)
    texts = reasons(explanation)
    assert texts['moved'] == [
        'its compute node is below resource provider host, but Nova expects '
        'it to be the root of its tree'
    ]
    assert [text[:6] for text in texts['host']] == above
    assert [len(remedy) for remedy in explanation.remedies] == [1] * len(above)


def test_providers_that_lack_a_trait_together_are_explained():
    # The trait is with the memory, but that is too little.
    cloud = make_tree(
        make_compute_node(
            'host', inventories={'MEMORY_MB': 4}, traits=['CUSTOM_A']
        ),
        numa('numa0'),
        make_provider('memory', inventories={'MEMORY_MB': 64}),
    )
    explanation = explained(
        [cloud], 'resources=VCPU:8,MEMORY_MB:8&required=CUSTOM_A'
    )
    assert reasons(explanation) == {
        'host': [
            'no provider of MEMORY_MB meets everything: host: MEMORY_MB: '
            'requested 8, free 4 (4 total x 1.0 - 0 used); memory: has no '
            'trait CUSTOM_A'
        ]
    }


@cases(
    ('constraint', 'said'),
    {
        'forbidden': (
            Forbid((LEASE,), 'locked'),
            'no provider of VCPU meets everything: numa0: VCPU: requested 8, '
            'free 3 (16 total x 1.0 - 13 used); numa1: in aggregate lease-1, '
            'locked',
        ),
        'required': (
            Require((LEASE,), 'reserved'),
            'host: not in aggregate lease-1: reserved',
        ),
    },
)
def test_a_provider_below_the_root_may_be_in_an_aggregate(constraint, said):
    cloud = tree(numa('numa0', 13), numa('numa1', aggregates=[LEASE]))
    explanation = explained([cloud], 'resources=VCPU:8,DISK_GB:8', constraint)
    assert reasons(explanation) == {'host': [said]}


def test_each_provider_is_named_with_the_aggregate_it_is_in():
    cloud = tree(
        numa('numa0', aggregates=[LEASE]),
        numa('numa1', aggregates=[OTHER_LEASE]),
    )
    forbidden = Forbid((LEASE, OTHER_LEASE), 'locked')
    explanation = explained([cloud], VCPU_8, forbidden)
    assert reasons(explanation) == {
        'host': [
            'numa0: in aggregate lease-1, locked; '
            'numa1: in aggregate lease-2, locked'
        ]
    }


def test_aggregates_of_the_root_do_not_count_in_a_suffixed_group():
    cloud = tree(numa('numa0'), aggregates=[LEASE])
    query = f'resources1=VCPU:8&member_of1={LEASE.uuid}'
    assert reasons(explained([cloud], query)) == {
        'host': ['group 1: not in aggregate lease-1']
    }


def test_the_aggregate_of_the_root_is_that_of_its_tree():
    cloud = tree(numa('numa0', aggregates=[OTHER_LEASE]), aggregates=[LEASE])
    forbidden = Forbid((LEASE, OTHER_LEASE), 'locked')
    explanation = explained([cloud], VCPU_8, forbidden)
    assert reasons(explanation) == {'host': ['in aggregate lease-1, locked']}


def test_several_providers_can_have_the_traits_together():
    cloud = tree(
        numa('numa0', traits=['CUSTOM_A']),
        numa('numa1'),
        traits=['CUSTOM_B'],
    )
    query = 'resources=VCPU:8,DISK_GB:8&required=CUSTOM_A,CUSTOM_B'
    assert reasons(explained([cloud], query)) == {'host': []}


# Providers that share


def shared(used=0, **more):
    """Return a host and the storage that it uses."""
    return [
        node(aggregates=[LEASE], **more),
        make_provider(
            'storage',
            inventories={'DISK_GB': 100},
            usages={'DISK_GB': used},
            traits=SHARES,
            aggregates=[LEASE],
        ),
    ]


@cases(
    ('providers', 'query', 'message'),
    {
        'it is full': (
            shared(used=99),
            'resources=VCPU:8,DISK_GB:8',
            'DISK_GB: storage: requested 8, free 1 (100 total x 1.0 - 99 '
            'used)',
        ),
        'the host is full, and it is not to blame': (
            shared(vcpus=4),
            'resources=VCPU:8,DISK_GB:8',
            'VCPU: requested 8, free 4 (4 total x 1.0 - 0 used)',
        ),
        'it would give everything': (
            shared(),
            DISK_8,
            'DISK_GB: only storage has enough, and the host itself would '
            'provide nothing',
        ),
        'it has the trait': (
            shared(),
            f'{DISK_8}&required={SHARES[0]}',
            'trait MISC_SHARES_VIA_AGGREGATE is only on storage, and the host '
            'itself would provide nothing',
        ),
        'it has the trait, but nothing to give': (
            shared(),
            f'{VCPU_8}&required={SHARES[0]}',
            'trait MISC_SHARES_VIA_AGGREGATE is only on storage, where none '
            'of the requested resources are',
        ),
    },
)
def test_the_provider_of_shared_resources_is_named(providers, query, message):
    assert reasons(explained(providers, query))['host'][0] == message


def test_shared_resources_are_outside_a_requested_tree():
    host, storage = shared()
    in_tree = InTree(host.uuid, 'host host was requested')
    explanation = explained(
        [host, storage], 'resources=VCPU:8,DISK_GB:8', in_tree
    )
    assert reasons(explanation) == {
        'host': [
            'no provider of DISK_GB meets everything: storage: not in the '
            "requested host's tree: host host was requested"
        ]
    }


def test_a_suffixed_group_can_use_shared_resources():
    explanation = explained(shared(), f'{VCPU_8}&resources1=DISK_GB:8')
    assert reasons(explanation) == {'host': []}


def test_a_sharing_provider_is_not_a_host():
    explanation = explained(shared(), 'resources=VCPU:8,DISK_GB:8')
    assert [v.host for v in explanation.verdicts] == ['host']
    assert explanation.verdicts[0].is_candidate


# Requirements that contradict each other


def test_two_required_trees_exclude_all_hosts():
    one, two, three = node('one'), node('two'), node('three')
    explanation = explained(
        [one, two, three],
        VCPU_8,
        InTree(one.uuid, 'first'),
        InTree(two.uuid, 'second'),
    )
    first = "not in the requested host's tree: first"
    second = "not in the requested host's tree: second"
    assert reasons(explanation) == {
        'one': [second],
        'three': [first, second],
        'two': [first],
    }
    assert labels(explanation) == [['a_filter: first'], ['a_filter: second']]


def test_one_tree_required_by_two_uuids_is_refused():
    cloud = tree(numa('numa0'))
    explanation = explained(
        [cloud],
        VCPU_8,
        InTree(cloud[0].uuid, 'first'),
        InTree(cloud[1].uuid, 'second'),
    )
    assert reasons(explanation) == {
        'host': ['cannot be met together: a_filter: first; a_filter: second']
    }


def test_a_repeated_constraint_must_be_dropped_twice():
    forbidden = Forbid((LEASE,), 'locked')
    explanation = explained(
        [node(aggregates=[LEASE])], VCPU_8, forbidden, forbidden
    )
    assert reasons(explanation) == {
        'host': ['in aggregate lease-1, locked'] * 2
    }
    assert labels(explanation) == [['a_filter: aggregate lease-1: locked'] * 2]


# The summary


THREE = [
    node('small', vcpus=4),
    node('small-gpu', vcpus=4, traits=['CUSTOM_GPU']),
    node('gpu', traits=['CUSTOM_GPU']),
]


def counts(explanation):
    """Return how many hosts each cause excludes, and how many only it."""
    return {
        ' and '.join(requirement.label for requirement in count.cause): (
            len(count.excludes),
            len(count.only),
        )
        for count in explanation.counts
    }


def test_hosts_are_counted_by_constraint_and_by_it_alone():
    explanation = explained(
        [*THREE, node('fits')], f'{VCPU_8}&required=!CUSTOM_GPU'
    )
    assert counts(explanation) == {
        'forbids trait CUSTOM_GPU': (2, 1),
        'requests VCPU 8': (2, 1),
    }
    assert explanation.remedies == ()


@pytest.mark.parametrize(
    ('query', 'label'),
    [
        ('required=CUSTOM_A', 'requires trait CUSTOM_A'),
        (
            'required=in:CUSTOM_A,CUSTOM_B',
            'requires one of traits CUSTOM_A, CUSTOM_B',
        ),
        (f'member_of={LEASE.uuid}', f'in one of {LEASE.uuid}'),
        (f'member_of=!in:{LEASE.uuid}', f'not in {LEASE.uuid}'),
        (f'in_tree={LEASE.uuid}', f'in the tree of provider {LEASE.uuid}'),
        ('root_required=CUSTOM_A', 'root provider: requires trait CUSTOM_A'),
        ('root_required=!CUSTOM_A', 'root provider: forbids trait CUSTOM_A'),
        ('required1=CUSTOM_A', 'group 1: requires trait CUSTOM_A'),
        ('resources1=VGPU:2', 'group 1: requests VGPU 2'),
    ],
)
def test_constraints_are_named_by_their_content(query, label):
    explanation = explained([node()], f'{VCPU_8}&resources1=VGPU:1&{query}')
    assert label in counts(explanation)


def test_the_hosts_that_are_counted_are_known():
    explanation = explained(THREE, f'{VCPU_8}&required=!CUSTOM_GPU')
    small, small_gpu, gpu = (provider.uuid for provider in THREE)
    trait, amount = explanation.counts
    assert (trait.excludes, trait.only) == ({small_gpu, gpu}, {gpu})
    assert (amount.excludes, amount.only) == ({small, small_gpu}, {small})


def test_constraints_that_exclude_only_together_are_counted_together():
    cloud = tree(numa('numa0', 13, traits=['CUSTOM_A']), numa('numa1'))
    explanation = explained([cloud], f'{VCPU_8},DISK_GB:1&required=CUSTOM_A')
    assert counts(explanation) == {
        'requires trait CUSTOM_A': (0, 1),
        'requests DISK_GB 1': (0, 0),
        'requests VCPU 8': (0, 1),
        'requires trait CUSTOM_A and requests VCPU 8': (1, 1),
    }
    assert labels(explanation) == [
        ['requires trait CUSTOM_A'],
        ['requests VCPU 8'],
    ]


@pytest.mark.parametrize(
    ('providers', 'remedies'),
    [
        pytest.param(
            [THREE[0], THREE[2]],
            [['forbids trait CUSTOM_GPU'], ['requests VCPU 8']],
            id='any one of two',
        ),
        pytest.param(
            [THREE[1]],
            [['forbids trait CUSTOM_GPU', 'requests VCPU 8']],
            id='both',
        ),
        pytest.param([THREE[1], THREE[2]], [['forbids trait CUSTOM_GPU']]),
        pytest.param([], [], id='no hosts'),
    ],
)
def test_the_smallest_helpful_changes_are_found(providers, remedies):
    explanation = explained(providers, f'{VCPU_8}&required=!CUSTOM_GPU')
    assert labels(explanation) == remedies


def test_a_remedy_can_be_smaller_than_all_reasons_of_a_host():
    # Of the three groups, each asking for 8 of 16, one has to go.
    query = '&'.join(f'resources{number}=VCPU:8' for number in range(3))
    explanation = explained(
        [tree(numa('numa0'))],
        f'{query}&resources=DISK_GB:1&group_policy=none',
    )
    assert labels(explanation) == [
        [f'group {n}: requests VCPU 8'] for n in range(3)
    ]


def test_a_remedy_can_need_several_constraints():
    # Of 12 there is enough for one group.
    query = '&'.join(f'resources{number}=VCPU:8' for number in range(3))
    explanation = explained([node(vcpus=12)], f'{query}&group_policy=none')
    assert labels(explanation) == [
        [f'group {one}: requests VCPU 8', f'group {other}: requests VCPU 8']
        for one, other in [(0, 1), (0, 2), (1, 2)]
    ]


def test_hosts_and_their_nodes_are_sorted_by_name():
    nodes = [node('node-2', host='metal'), node('node-1', host='metal')]
    explanation = explained([*nodes, node('a')], VCPU_8)
    assert [(v.host, v.node) for v in explanation.verdicts] == [
        ('a', 'a'),
        ('metal', 'node-1'),
        ('metal', 'node-2'),
    ]
    assert explanation.verdicts[1].provider == nodes[1].uuid


def test_every_host_is_explained_whatever_the_limit():
    explanation = explained([node('one'), node('two')], f'{VCPU_8}&limit=1')
    assert reasons(explanation) == {'one': [], 'two': []}


def test_a_request_is_not_changed_by_explaining_it():
    request = query.candidates(query.parameters(f'{VCPU_8}&limit=1'))
    before = request.to_querystring()
    explained([node()], request, Require((LEASE,), 'reserved'))
    assert request.to_querystring() == before


# Requests that make no sense


def test_a_query_that_placement_refuses_is_not_explained():
    group = RequestGroup(resources={'VCPU': 1})
    request = ResourceRequest({'': group}, root_required={'CUSTOM_A'})
    with pytest.raises(exception.BadQuery, match='both requires and forbids'):
        explained([node()], request, ForbidRootTrait('CUSTOM_A', 'no'))


@pytest.mark.parametrize(
    'query',
    [
        'required=!CUSTOM_NEW',
        'root_required=!CUSTOM_NEW',
        'required=in:CUSTOM_GPU,CUSTOM_NEW',
    ],
)
def test_a_query_with_a_trait_that_does_not_exist_is_not_explained(query):
    cloud = [node(traits=['CUSTOM_GPU'])]
    with pytest.raises(exception.BadQuery) as caught:
        explained(cloud, f'{VCPU_8}&{query}')
    assert str(caught.value) == (
        'Placement would reject the request as invalid (400): there is no '
        'trait CUSTOM_NEW'
    )


@cases(
    'constraints',
    {
        'an aggregate': [Forbid((LEASE,), 'locked')],
        'a tree': [InTree(LEASE.uuid, 'wanted')],
        'an aggregate, and a refusal': [
            Refuse('no'),
            Forbid((LEASE,), 'locked'),
        ],
    },
)
def test_aggregates_need_an_unsuffixed_group(constraints):
    with pytest.raises(exception.BadQuery) as caught:
        explained([node()], 'resources1=VCPU:1', *constraints)
    assert str(caught.value) == (
        'Placement would reject the request as invalid (400): all resources '
        'are in request groups with a suffix, so there is no group to which '
        'required or forbidden aggregates can be added'
    )


def test_root_traits_need_no_unsuffixed_group():
    explanation = explained(
        [node(), node('off', traits=['COMPUTE_STATUS_DISABLED'])],
        'resources1=VCPU:1',
        ForbidRootTrait('COMPUTE_STATUS_DISABLED', 'no'),
    )
    assert excluding(explanation) == {'host': [], 'off': ['a_filter']}


# What Nova drops after Placement


def test_a_dropped_host_is_excluded_beside_what_placement_says():
    ssd = make_aggregate('ssd', {'ssd': 'true'}, ['fast', 'full'])
    cloud = make_snapshot(
        [ssd],
        [
            make_compute_node('fast'),
            make_compute_node('full', usages={'VCPU': 16}),
            make_compute_node('slow'),
            make_compute_node('worst', usages={'VCPU': 16}),
        ],
    )
    name = 'AggregateInstanceExtraSpecsFilter'
    request = make_request(
        make_flavor('f', {'aggregate_instance_extra_specs:ssd': 'true'})
    )
    explanation = explain(
        cloud,
        resources.resource_request(request),
        Pipeline(mirrored(name, enabled_filters=[name])).evaluate(
            request, cloud.index
        ),
    )
    dropped = (
        f'dropped after Placement by {name}: in no aggregate with ssd=true'
    )
    full = 'VCPU: requested 1, free 0 (16 total x 1.0 - 16 used)'
    assert reasons(explanation) == {
        'fast': [],
        'full': [full],
        'slow': [dropped],
        'worst': [dropped, full],
    }
    [of_filter] = [
        n for label, n in counts(explanation).items() if name in label
    ]
    # The other one is full as well.
    assert of_filter == (2, 1)


def test_a_host_filter_repeats_no_reason_of_its_request_filter():
    """Hosts differ in their aggregates, in Nova and in Placement."""
    ssd = make_aggregate('ssd', {'ssd': 'true'}, ['fast', 'late'])
    cloud = make_snapshot(
        [ssd],
        [
            make_compute_node('fast', aggregates=[ssd.uuid]),
            make_compute_node('late'),
            make_compute_node('slow'),
            make_compute_node('left', aggregates=[ssd.uuid]),
        ],
        mirror=False,
    )
    name = 'AggregateInstanceExtraSpecsFilter'
    pipeline = Pipeline(
        {
            'before': AggregateInstanceExtraSpecs(),
            **mirrored(name, enabled_filters=[name]),
        }
    )

    def told(value):
        key = 'aggregate_instance_extra_specs:ssd'
        request = make_request(make_flavor('f', {key: value}))
        concluded = pipeline.evaluate(request, cloud.index)
        return reasons(
            explain(cloud, resources.resource_request(request), concluded)
        )

    outside = 'not in aggregate ssd: flavor f requires ssd=true'
    assert told('true') == {
        'fast': [],
        'late': [outside],
        'left': [
            f'dropped after Placement by {name}: in no aggregate with ssd=true'
        ],
        'slow': [outside],
    }
    refused = (
        'no aggregate has metadata that matches ssd=x, which flavor f requires'
    )
    hosts = ('fast', 'late', 'left', 'slow')
    assert told('x') == {host: [refused] for host in hosts}
