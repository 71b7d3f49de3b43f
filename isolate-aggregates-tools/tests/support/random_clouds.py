# SPDX-License-Identifier: Apache-2.0
"""Random small clouds, and random queries for them.

Whatever there is to choose comes from a list with the plain things first, so
that a failing example shrinks to plain things, and is drawn at once.
"""

import itertools

from hypothesis import strategies as st

from isolate_aggregates_tools.placement.provider import Inventory, Provider

SHARES = 'MISC_SHARES_VIA_AGGREGATE'
CLASSES = ['VCPU', 'MEMORY_MB', 'DISK_GB', 'CUSTOM_GOLD']
TRAITS = ['HW_CPU_X86_AVX2', 'HW_NUMA_ROOT', 'CUSTOM_A', 'CUSTOM_B']
CUSTOM_CLASSES = [name for name in CLASSES if name.startswith('CUSTOM_')]
CUSTOM_TRAITS = [name for name in TRAITS if name.startswith('CUSTOM_')]
SUFFIXES = ['1', '2', '_NET', 'x-Y_9']


def uuid(kind, number):
    return f'{kind:08d}-0000-4000-8000-{number:012d}'


AGGREGATES = [uuid(2, number) for number in range(3)]
NO_AGGREGATE, NO_PROVIDER = uuid(2, 999), uuid(1, 999)


def plainly(plain, odd, times=2):
    """Now and then something odd: of ``times + 1`` times once."""
    odd = list(odd)
    return st.sampled_from([plain] * (times * len(odd)) + odd)


def some(values, least=0, most=2):
    """Some of the values, any number of them as often as any other."""
    return st.one_of(
        [
            st.sampled_from(list(itertools.combinations(values, count)))
            for count in range(least, min(most, len(values)) + 1)
        ]
    )


inventories = plainly(
    Inventory(16),
    [
        Inventory(1),
        Inventory(2),
        Inventory(4),
        Inventory(8, max_unit=1),
        Inventory(8, max_unit=3),
        Inventory(8, min_unit=2),
        Inventory(8, step_size=2),
        Inventory(8, min_unit=3, step_size=3),
        Inventory(4, reserved=4),
        Inventory(4, reserved=2),
        Inventory(4, allocation_ratio=0.1),
        Inventory(4, allocation_ratio=0.33),
        Inventory(3, allocation_ratio=0.7),
        Inventory(1, reserved=0, allocation_ratio=1.5),
        Inventory(3, reserved=1, allocation_ratio=1.3),
        Inventory(1, allocation_ratio=16.0),
        Inventory(9, 4, 2, 4, 2, 1.5),
        Inventory(16, max_unit=1),
        Inventory(16, max_unit=2),
        Inventory(16, max_unit=3),
    ],
    1,
)
usages = plainly(0, [1, 2, 3, 14, 15, 20], 3)


@st.composite
def providers(draw, number, parent, shares):
    classes = draw(
        some(CLASSES[2:], 1) if shares else some(CLASSES, bool(parent), 4)
    )
    return Provider(
        uuid=uuid(1, number),
        name=f'provider-{number}',
        parent=parent,
        inventories={rc: draw(inventories) for rc in classes},
        usages={rc: draw(usages) for rc in classes},
        traits=frozenset([*draw(some(TRAITS, 0, 4)), *[SHARES][:shares]]),
        aggregates=frozenset(draw(some(AGGREGATES, shares))),
    )


@st.composite
def clouds(draw):
    """Up to four trees of up to three levels, some of them sharing."""
    cloud = []
    for _ in range(draw(st.sampled_from([1, 2, 3, 4]))):
        shares = draw(plainly(False, [True]))
        root = draw(providers(len(cloud), None, shares))
        cloud.append(root)
        for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
            shares = draw(plainly(False, [True], 15))
            child = draw(providers(len(cloud), root.uuid, shares))
            cloud.append(child)
            for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
                cloud.append(draw(providers(len(cloud), child.uuid, False)))
    return tuple(cloud)


amounts = st.sampled_from([1, 1, 1, 2, 3, 4])
places = [*AGGREGATES, *AGGREGATES, NO_AGGREGATE]
# What a query may ask for besides resources. Each one asks for few of these,
# often: all at once leave no candidates to compare.
WISHES = [
    'required',
    'one of several',
    'forbidden',
    'member_of',
    'not member_of',
    'in_tree',
    'root_required',
    'same_subtree',
    'no resources',
    'limit',
    'odd',
]


@st.composite
def groups(draw, suffix, uuids, wishes, resourceless=False):
    """The parameters of one request group."""
    wishes = [wish for wish in wishes if draw(st.sampled_from([1, 1, 0]))]
    params = []
    if not resourceless:
        classes = draw(some(CLASSES, 1, 2 if suffix else 3))
        asked = [f'{rc}:{draw(amounts)}' for rc in classes]
        params.append(('resources', ','.join(asked)))
    if resourceless and not {'required', 'member_of'} & {*wishes}:
        wishes.append(draw(st.sampled_from(['required', 'member_of', 'any'])))
    if 'required' in wishes:
        params.append(('required', ','.join(draw(some(TRAITS, 1)))))
    if 'forbidden' in wishes:
        traits = [f'!{trait}' for trait in draw(some(TRAITS, 1))]
        params.append(('required', ','.join(traits)))
    if 'one of several' in wishes:
        for choice in draw(
            st.lists(some(TRAITS, 1, 3), min_size=1, max_size=2)
        ):
            params.append(('required', f'in:{",".join(choice)}'))
    if 'member_of' in wishes:
        for choice in draw(st.lists(some(places, 1), min_size=1, max_size=2)):
            params.append(('member_of', f'in:{",".join(choice)}'))
    if 'not member_of' in wishes:
        choice = draw(some(places, 1))
        params.append(('member_of', f'!in:{",".join(choice)}'))
    if 'in_tree' in wishes:
        choice = draw(st.sampled_from([*uuids, *uuids, NO_PROVIDER]))
        params.append(('in_tree', choice))
    return [(name + suffix, value) for name, value in params]


# Each is, or may be, something that Placement refuses.
ODD = [
    ('limit', '0'),
    ('limit', 'many'),
    ('limit', '2'),
    ('group_policy', 'isolate'),
    ('group_policy', 'any'),
    ('colour', 'blue'),
    ('resources', ''),
    ('resources1', ''),
    ('resources', 'VCPU'),
    ('resources', 'VCPU:0'),
    ('resources', 'VCPU:-1'),
    ('resources', 'VCPU:one'),
    ('resources', 'VCPU:1:2'),
    ('resources', 'VCPU:1,'),
    ('resources1', 'VCPU: 1 '),
    ('resources1', 'CUSTOM_NOBODY:1'),
    ('resources', 'CUSTOM_NOBODY:1'),
    ('resources_', 'VCPU:1'),
    ('resources.', 'VCPU:1'),
    (f'resources{"x" * 64}', 'VCPU:1'),
    (f'resources{"x" * 65}', 'VCPU:1'),
    ('required', ''),
    ('required', '!'),
    ('required', '!!!CUSTOM_A'),
    ('required', ' CUSTOM_A , !CUSTOM_B '),
    ('required', 'CUSTOM_A,,CUSTOM_B'),
    ('required', 'CUSTOM_NOBODY'),
    ('required1', '!CUSTOM_NOBODY'),
    ('required1', 'in:CUSTOM_A,!CUSTOM_B'),
    ('required1', 'in:'),
    ('required', 'in:CUSTOM_A,CUSTOM_A'),
    ('required', 'CUSTOM_A,!CUSTOM_A'),
    ('required', '!CUSTOM_A,!CUSTOM_B'),
    ('required', 'in:CUSTOM_A,CUSTOM_B'),
    ('member_of', ''),
    ('member_of', 'in:'),
    ('member_of', '!in:'),
    ('member_of', 'here'),
    ('member_of1', f'!{AGGREGATES[0]}'),
    ('member_of1', AGGREGATES[0]),
    ('member_of', AGGREGATES[0].replace('-', '')),
    ('member_of', f'{AGGREGATES[0]},{AGGREGATES[1]}'),
    ('member_of', f'{AGGREGATES[0]},{AGGREGATES[0]}'),
    ('member_of', f'!{AGGREGATES[0]},{AGGREGATES[1]}'),
    ('member_of', f'in:{AGGREGATES[0]},!{AGGREGATES[1]}'),
    ('in_tree', ''),
    ('in_tree', 'here'),
    ('in_tree1', f' {uuid(1, 0)} '),
    ('root_required', ''),
    ('root_required', 'in:CUSTOM_A,CUSTOM_B'),
    ('root_required', 'CUSTOM_A,!CUSTOM_A'),
    ('root_required', 'CUSTOM_NOBODY'),
    ('root_required', '!CUSTOM_NOBODY'),
    ('root_required', '!CUSTOM_B'),
    ('same_subtree', ''),
    ('same_subtree', '1,'),
    ('same_subtree', ',1'),
    ('same_subtree', '1, 2'),
    ('same_subtree', 'nobody'),
]


@st.composite
def candidate_queries(draw, uuids):
    """The parameters of ``GET /allocation_candidates``, in any order."""
    wishes = draw(some(WISHES, 0, 3))
    suffixes = draw(some(SUFFIXES, 0, 3))
    params = []
    if not suffixes or draw(st.booleans()):
        params += draw(groups('', uuids, wishes))
    resourceless = []
    for suffix in suffixes:
        nothing = 'no resources' in wishes and draw(st.booleans())
        asked = draw(groups(suffix, uuids, wishes, nothing))
        if nothing and asked:
            resourceless.append(suffix)
        params += asked
    if suffixes and (resourceless or 'same_subtree' in wishes):
        subtree = {*resourceless, *draw(some(suffixes, 1, 3))}
        params.append(('same_subtree', ','.join(sorted(subtree))))
    if policy := draw(st.sampled_from([*['none', 'isolate'] * 6, None])):
        params.append(('group_policy', policy))
    if 'root_required' in wishes:
        traits = draw(some([*TRAITS, *(f'!{t}' for t in TRAITS)], 1))
        params.append(('root_required', ','.join(traits)))
    if 'limit' in wishes:
        params.append(('limit', str(draw(st.sampled_from([1, 2, 3])))))
    if 'odd' in wishes:
        odd = draw(st.sampled_from(ODD))
        if odd[0] == 'limit':
            # Of two limits Placement checks the last and uses the first.
            params = [pair for pair in params if pair[0] != 'limit']
        params.append(odd)
    return draw(st.permutations(params))


@st.composite
def provider_queries(draw, cloud):
    """The parameters of ``GET /resource_providers``, in any order."""
    uuids = [provider.uuid for provider in cloud]
    names = [provider.name for provider in cloud]
    wishes = draw(some([*WISHES, 'name', 'uuid'], 0, 3))
    params = draw(groups('', uuids, wishes, draw(st.booleans())))
    if 'name' in wishes:
        params.append(('name', draw(st.sampled_from([*names, '', 'nobody']))))
    if 'uuid' in wishes:
        choice = draw(st.sampled_from([*uuids, NO_PROVIDER, 'here']))
        params.append(('uuid', choice))
    if 'odd' in wishes:
        params.append(draw(st.sampled_from(ODD)))
    return draw(st.permutations(params))
