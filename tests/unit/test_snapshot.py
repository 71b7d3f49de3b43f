# SPDX-License-Identifier: Apache-2.0
"""A snapshot answers for a cloud: which flavor, which image, which host."""

import weakref

import pytest

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import ComputeHost, Flavor, Image
from isolate_aggregates.tools import errors
from isolate_aggregates.tools import errors as tools_errors
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.compute.servers import ComputeService
from isolate_aggregates.tools.placement.provider import Inventory, Provider

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


@pytest.mark.parametrize(
    ('argument', 'name'),
    [
        pytest.param('small', 'small', id='by name'),
        pytest.param('2', 'large', id='by id'),
        pytest.param(
            'large', 'small', id='an id takes precedence over a name'
        ),
    ],
)
def test_a_flavor_is_found_by_id_then_by_name(argument, name):
    assert CLOUD.flavor(argument).name == name


@pytest.mark.parametrize(
    ('argument', 'id_'),
    [
        pytest.param('id-2', 'id-2', id='by id, though its name is not alone'),
        pytest.param('id-1', 'id-1', id='an id takes precedence over a name'),
    ],
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


@pytest.mark.parametrize(
    ('name', 'providers'),
    [
        pytest.param('cn1', ['uuid-cn1'], id='a compute service'),
        pytest.param(
            'ironic', ['uuid-node1', 'uuid-node2'], id='one with two nodes'
        ),
        pytest.param('node2', ['uuid-node2'], id='one node of it'),
        pytest.param(
            'swap', ['uuid-old'], id='a service takes precedence over a node'
        ),
        pytest.param('numa', [], id='a child is no host'),
        pytest.param('disk', [], id='a provider without service is no host'),
        pytest.param('cn', [], id='part of a name'),
        pytest.param('nowhere', [], id='unknown'),
    ],
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
