# SPDX-License-Identifier: Apache-2.0
"""What is kept smaller in large clouds answers like the plain way."""

import dataclasses
import itertools
import random

from isolate_aggregates_tools.answers.offers import Offers
from isolate_aggregates_tools.placement.group import (
    RequestGroup,
    ResourceRequest,
)
from isolate_aggregates_tools.placement.provider import Inventory, Provider
from isolate_aggregates_tools.simulator import Simulator
from isolate_aggregates_tools.simulator.index import ProviderIndex
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_snapshot,
)


def test_small_and_large_aggregates_are_united_alike():
    chance = random.Random(3)
    names = [f'a{number}' for number in range(300)]
    index = ProviderIndex(
        Provider(
            f'uuid-{number}',
            f'h{number}',
            host=f'h{number}',
            aggregates=frozenset(chance.sample(names[:-2], 3))
            | ({'large'} if number % 2 else set()),
        )
        for number in range(1100)
    )
    for _ in range(20):
        some = {*chance.sample(names, 5), *chance.choice([(), ('large',)])}
        members = {
            number
            for number, provider in enumerate(index.providers)
            if provider.aggregates & some
        }
        assert {*index.members(index.in_any_aggregate(some))} == members


def test_aggregates_that_are_alike_are_forbidden_together():
    """With trees and shared storage too, and aggregates of Placement alone."""
    chance = random.Random(4)
    for has_trees, has_storage in 40 * [*itertools.product((0, 1), repeat=2)]:
        hosts = [f'h{number}' for number in range(6)]
        aggregates = [
            make_aggregate(
                f'a{number}',
                chance.choice(({'x': '1'}, {'x': '2'})),
                chance.sample(hosts, chance.randint(0, 3)),
                id=number,
            )
            for number in range(1, 14)
        ]
        uuids = [*(each.uuid for each in aggregates), STORAGE]
        nodes = [
            make_compute_node(host, inventories={'VCPU': 4}) for host in hosts
        ]
        pool = Provider(
            POOL,
            'pool',
            inventories={'DISK_GB': Inventory(100)},
            traits=frozenset({'MISC_SHARES_VIA_AGGREGATE'}),
            aggregates=frozenset(chance.sample(uuids, 2)),
        )
        below = [
            Provider(
                node.uuid[:-1] + 'f',
                f'{node.name}_pci',
                node.uuid,
                inventories={'VGPU': Inventory(2), 'DISK_GB': Inventory(9)},
                aggregates=frozenset(
                    chance.sample(uuids, chance.randint(0, 1))
                ),
            )
            for node in nodes
            if has_trees and chance.random() < 0.5
        ]
        snapshot = make_snapshot(aggregates, nodes)
        snapshot = dataclasses.replace(
            snapshot,
            providers=(
                *snapshot.providers, *below, *([pool] if has_storage else ())
            ),
        )  # fmt: skip
        offers = Offers(snapshot)
        plain = Simulator(snapshot.providers)
        for _ in range(10):
            value = chance.choice('12')
            alike = {a.uuid for a in aggregates if a.metadata['x'] == value}
            group = RequestGroup(
                resources={
                    'VCPU': 1,
                    **chance.choice(({}, {'VGPU': 1}, {'DISK_GB': 1})),
                },
                aggregates=chance.choice(
                    (
                        [],
                        [frozenset(chance.sample(uuids, 4))],
                        [frozenset(alike), frozenset(chance.sample(uuids, 6))],
                    )
                ),
                forbidden_aggregates={
                    *chance.choice([alike, [*alike][1:], []]),
                    *chance.sample(uuids, 3),
                },
            )
            groups = {'': group}
            if 'VGPU' in group.resources and chance.random() < 0.5:
                # Then the node need not be where the unsuffixed group is.
                del group.resources['VCPU']
                groups['1'] = RequestGroup('1', {'VCPU': 1})
            query = ResourceRequest(groups)
            found = plain.hosts(query) & plain.index.nodes
            assert offers.nodes([query]) == found


STORAGE = '0c7e4a91-d3f8-4b52-8d15-f3b60a9c72e4'
POOL = 'b3f70c2e-958d-41a6-a641-9a7d20cb5f83'
