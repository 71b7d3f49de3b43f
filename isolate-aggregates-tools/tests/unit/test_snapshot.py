# SPDX-License-Identifier: Apache-2.0
"""A snapshot answers for a cloud: which flavor, which image, which host."""

import weakref

from cases import cases
import pytest

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import ComputeHost, Flavor, Image
from isolate_aggregates_tools import errors
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import ComputeService
from isolate_aggregates_tools.placement.provider import Inventory, Provider

CLOUD = Snapshot(
    origin='cloud.yaml',
    aggregates=(Aggregate('uuid-a', 'a', {'trait:CUSTOM_A': 'required'}),),
    providers=(
        Provider('uuid-cn1', 'cn1', host='cn1'),
        Provider('uuid-numa', 'numa', parent='uuid-cn1'),
        Provider('uuid-node1', 'node1', host='ironic'),
        Provider('uuid-node2', 'node2', host='ironic'),
        Provider('uuid-swap', 'swap', host='cn1-of-old'),
        Provider('uuid-old', 'cn1-of-old', host='swap'),
        Provider('uuid-disk', 'disk'),
    ),
    flavors=(
        Flavor('small', 'large'),
        Flavor('large', '2'),
    ),
    images=(
        Image('debian', 'id-1'),
        Image('debian', 'id-2'),
        Image('id-1', 'id-3'),
    ),
)


@cases(
    ('argument', 'name'),
    {
        'by name': ('small', 'small'),
        'by id': ('2', 'large'),
        'an id takes precedence over a name': ('large', 'small'),
    },
)
def test_a_flavor_is_found_by_id_then_by_name(argument, name):
    assert CLOUD.flavor(argument).name == name


@cases(
    ('argument', 'id_'),
    {
        'by id, though its name is not alone': ('id-2', 'id-2'),
        'an id takes precedence over a name': ('id-1', 'id-1'),
    },
)
def test_an_image_is_found_by_id_then_by_name(argument, id_):
    assert CLOUD.image(argument).id == id_


def test_an_ambiguous_image_name_is_refused_with_the_ids():
    with pytest.raises(tools_errors.NotUnique) as caught:
        CLOUD.image('debian')
    assert str(caught.value) == (
        "The image name 'debian' is not unique; name one of id-1, id-2 "
        'instead.'
    )


@pytest.mark.parametrize('kind', ['flavor', 'image'])
def test_an_unknown_name_is_refused(kind):
    with pytest.raises(errors.NotFound) as caught:
        getattr(CLOUD, kind)('SMALL')
    assert str(caught.value) == (
        f"There is no {kind} with the name or id 'SMALL' in cloud.yaml."
    )


@cases(
    ('name', 'providers'),
    {
        'a compute service': ('cn1', ['uuid-cn1']),
        'one with two nodes': ('ironic', ['uuid-node1', 'uuid-node2']),
        'one node of it': ('node2', ['uuid-node2']),
        'a service takes precedence over a node': ('swap', ['uuid-old']),
        'a child is no host': ('numa', []),
        'a provider without service is no host': ('disk', []),
        'part of a name': ('cn', []),
        'unknown': ('nowhere', []),
    },
)
def test_a_host_is_found_by_service_then_by_node(name, providers):
    host = CLOUD.requested_host(name)
    assert (host.name, host.providers) == (name, tuple(providers))


def test_for_an_unknown_host_a_similar_name_is_suggested():
    assert CLOUD.requested_host('cn') == ComputeHost(
        'cn', suggestion=' (did you mean cn1?)'
    )
    assert CLOUD.requested_host('nowhere') == ComputeHost('nowhere')


def test_the_index_has_the_host_aggregates():
    assert list(CLOUD.index) == list(CLOUD.aggregates)
    assert CLOUD.index.with_key('trait:CUSTOM_A') == CLOUD.aggregates


def test_an_index_does_not_keep_its_snapshot():
    service = ComputeService('host-1', is_up=False)
    snapshot = Snapshot('test', services=(service,))
    index = snapshot.index
    kept = weakref.ref(snapshot)
    del snapshot
    assert kept() is None
    assert [drops.objection('host-1') for drops in index.drops] == [
        'its compute service is down'
    ]


def test_a_provider_with_the_sharing_trait_shares():
    shares = Provider(
        'u', 'p', traits=frozenset(['MISC_SHARES_VIA_AGGREGATE'])
    )
    assert shares.is_sharing
    assert not Provider('u', 'p', traits=frozenset(['CUSTOM_A'])).is_sharing


def test_an_inventory_has_the_defaults_of_placement():
    """Literal, as the API reference gives them."""
    assert vars(Inventory(total=8)) == {
        'total': 8,
        'reserved': 0,
        'min_unit': 1,
        'max_unit': 2147483647,
        'step_size': 1,
        'allocation_ratio': 1.0,
    }
