# SPDX-License-Identifier: Apache-2.0
"""The limits of an examination, on a real Placement."""

import contextlib
import uuid

import placement_rows
import pytest

from isolate_aggregates import examination
from isolate_aggregates.examination import Question, examine
from isolate_aggregates.placement import PlacementReader
from isolate_aggregates_tools.embedded import EmbeddedPlacement
from isolate_aggregates_tools.placement.provider import Inventory, Provider

NODE = Question('no_candidates', ('resources=CUSTOM_NODE%3A1&limit=1000',))


@pytest.fixture(scope='module')
def placement():
    with contextlib.closing(EmbeddedPlacement()) as embedded:
        yield PlacementReader(embedded.open())


def host(number, **inventories):
    """Return a host of whose inventories nothing is left."""
    return Provider(
        str(uuid.UUID(int=number + 1)),
        f'host{number}',
        host=f'host{number}',
        inventories={name: Inventory(n) for name, n in inventories.items()},
        usages=inventories,
    )


def examined(placement):
    return examine(
        placement, NODE, lambda choice: 'aggregates', lambda own: []
    )


@pytest.mark.parametrize('others', [9, 10])
def test_it_is_said_how_many_inventories_were_read(placement, others):
    """A node that is taken is found among the first ten hosts only."""
    placement_rows.load(
        [
            *(host(number, VCPU=4) for number in range(others)),
            host(others, CUSTOM_NODE=1),
        ]
    )
    found = examined(placement)
    assert found['cause'] == 'full'
    assert found['detail']['short'] == ['CUSTOM_NODE:1']
    if others < examination._TREES:
        assert 'examined' not in found
        assert 'everywhere' not in found['detail']
    else:
        assert found['detail']['everywhere']
        assert found['examined'] == (
            'in part: of 11 hosts that it may use, the inventories of 10 were '
            'read'
        )


@pytest.mark.parametrize(
    ('limit', 'value', 'asked'), [('_REQUESTS', 3, 3), ('_SECONDS', -1, 0)]
)
def test_it_ends_where_it_would_take_too_long(
    placement, monkeypatch, limit, value, asked
):
    monkeypatch.setattr(examination, limit, value)
    placement_rows.load([host(number, VCPU=4) for number in range(9)])
    found = examined(placement)
    assert found.pop('examination')['queries'] == asked
    assert found == {'examined': 'no: it would take too long'}
