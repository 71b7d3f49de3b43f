# SPDX-License-Identifier: Apache-2.0
"""Taking the snapshot of a live cloud: all of it, or an error."""

from cases import cases
from http_fakes import PLACEMENT, connection
from mocked_placement import placement_with
import pytest

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.cloud.live import snapshots
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.client import ComputeNode, NovaClient
from isolate_aggregates_tools.placement.provider import Inventory, Provider

NODE = '00000000-0000-4000-8000-000000000001'
NUMA = '00000000-0000-4000-8000-000000000002'
SHARE = '00000000-0000-4000-8000-000000000003'
GROUP = '00000000-0000-4000-8000-00000000000a'

CLOUD = (
    Provider(
        SHARE,
        'a-share',
        traits=frozenset({'MISC_SHARES_VIA_AGGREGATE'}),
        aggregates=frozenset({GROUP}),
    ),
    Provider(
        NODE,
        'node-1',
        host='host-1',
        traits=frozenset({'HW_NIC_SRIOV'}),
        aggregates=frozenset({GROUP}),
    ),
    Provider(
        NUMA,
        'node-1_NUMA0',
        parent=NODE,
        inventories={'VCPU': Inventory(16, 2, 1, 8, 1, 4.0)},
        usages={'VCPU': 3},
        traits=frozenset({'CUSTOM_NUMA'}),
    ),
)


@pytest.fixture
def placement(http):
    """A Placement with a compute node, its NUMA node and a share."""
    return placement_with(http, *CLOUD)


@pytest.fixture
def reader(http, nova):
    """Nova, with the node under another name than its compute service."""
    nova.nodes = [ComputeNode(NODE, 'node-1', 'host-1')]
    nova.answer(http)
    return NovaClient(connection())


def test_providers_are_saved_complete_with_parents_first(
    http, reader, placement
):
    children_first = placement.resource_providers()[::-1]
    http.get(
        f'{PLACEMENT}/resource_providers',
        json={'resource_providers': children_first},
    )
    assert snapshots.take_providers(reader, placement) == CLOUD


def test_data_of_candidates_is_not_requested_again(http, reader, placement):
    numa = snapshots.take_providers(reader, placement)[-1]
    assert (numa.usages, numa.traits) == ({'VCPU': 3}, {'CUSTOM_NUMA'})
    paths = {request.path for request in http.request_history}
    assert f'/resource_providers/{NUMA}/inventories' in paths
    assert f'/resource_providers/{NUMA}/usages' not in paths
    assert f'/resource_providers/{NUMA}/traits' not in paths


def test_a_provider_that_changes_during_the_read_is_read_again(
    http, reader, placement
):
    [_, node, _] = placement.resource_providers()
    http.get(
        f'{PLACEMENT}/resource_providers',
        [
            {'json': {'resource_providers': [{**node, 'generation': number}]}}
            for number in (1, 2)
        ],
    )
    http.get(
        f'{PLACEMENT}/allocation_candidates',
        json={'allocation_requests': [], 'provider_summaries': {}},
    )
    traits = http.get(
        f'{PLACEMENT}/resource_providers/{NODE}/traits',
        [
            {'json': {'traits': traits, 'resource_provider_generation': 1}}
            for traits in ([], ['CUSTOM_NEW'])
        ],
    )
    [provider] = snapshots.take_providers(reader, placement)
    assert provider.traits == {'CUSTOM_NEW'}
    assert traits.call_count == 2


def test_with_an_old_nova_compute_nodes_are_roots_that_do_not_share(
    http, nova, reader, placement
):
    nova.newest = '2.52'
    providers = snapshots.take_providers(reader, placement)
    assert {p.name: p.host for p in providers} == {
        'a-share': None,
        'node-1': 'node-1',
        'node-1_NUMA0': None,
    }


def test_a_provider_without_its_parent_is_an_error_not_left_out(
    http, reader, placement
):
    http.get(
        f'{PLACEMENT}/resource_providers',
        json={'resource_providers': placement.resource_providers()[2:]},
    )
    with pytest.raises(exception.ServiceError) as caught:
        snapshots.take_providers(reader, placement)
    assert str(caught.value) == (
        'Placement lists resource providers without their parents: '
        'node-1_NUMA0; use credentials with the admin role.'
    )


@cases(
    ('answer', 'said'),
    {
        'it was just deleted': (
            {'status_code': 404, 'text': 'No such provider.'},
            f'answered GET /resource_providers/{NUMA}/inventories with 404: '
            'No such provider.',
        ),
        'no total': (
            {'json': {'inventories': {'VCPU': {'reserved': 0}}}},
            f'answered /resource_providers/{NUMA}/inventories with JSON that '
            'lacks expected data: TypeError("Inventory.__init__() missing 1 '
            "required positional argument: 'total'\"); is this the right "
            'endpoint?',
        ),
        'nothing': (
            {'json': {}},
            f'answered /resource_providers/{NUMA}/inventories with JSON that '
            "lacks expected data: KeyError('inventories'); is this the right "
            'endpoint?',
        ),
    },
)
def test_an_incomplete_provider_is_an_error(
    http, reader, placement, answer, said
):
    http.get(f'{PLACEMENT}/resource_providers/{NUMA}/inventories', **answer)
    with pytest.raises(exception.ServiceError) as caught:
        snapshots.take_providers(reader, placement)
    assert str(caught.value) == f'Placement at {PLACEMENT} {said}'


def test_any_live_cloud_reads_back_the_same(tmp_path):
    snapshot = Snapshot(
        origin='live cloud',
        aggregates=(
            Aggregate(
                GROUP,
                'Höhle: 🦇 #1',
                {'reservation:ä b': '', 'yes': 'no', '1': '0x10'},
                frozenset({'host 1'}),
                1,
                'null',
            ),
        ),
        flavors=(Flavor('a/b ?', '007', extra_specs={'k': 'true'}),),
        images=(
            Image('', 'id-1', {'k': '1e3'}),
            Image('twice', 'id-2'),
            Image('twice', 'id-3', owner='1'),
        ),
        settings={('scheduler', 'max_placement_results'): 7},
    )
    path = tmp_path / 'saved.yaml'
    cloud_file.save(snapshot, path)
    again = cloud_file.load(path)
    assert again.aggregates == snapshot.aggregates
    assert again.flavors == snapshot.flavors
    assert again.images == snapshot.images
    assert again.settings == snapshot.settings
