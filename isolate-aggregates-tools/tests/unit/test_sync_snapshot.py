# SPDX-License-Identifier: Apache-2.0
"""What sync reads before it plans: all of it, or an error."""

from http_fakes import PLACEMENT, connection
from mocked_placement import placement_with
import pytest

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates_tools.cloud.file import document
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates_tools.compute.client import ComputeNode, NovaClient
from isolate_aggregates_tools.operate.sync.snapshot import read
from isolate_aggregates_tools.placement.provider import Inventory, Provider

NODE, NUMA, SHARE, IRONIC = (
    f'00000000-0000-4000-8000-00000000000{number}' for number in range(1, 5)
)
SHARES = 'MISC_SHARES_VIA_AGGREGATE'
MARK = 'CUSTOM_ISOLATE_SYNC_CUSTOM_X'
PEERS = '00000000-0000-4000-8000-00000000000a'
GROUP = Aggregate(
    '00000000-0000-4000-8000-00000000000b',
    'a',
    hosts=frozenset({'host-1'}),
    id=1,
)

NODE_1 = Provider(
    NODE,
    'node-1',
    host='host-1',
    traits=frozenset({'CUSTOM_X', MARK}),
    aggregates=frozenset({PEERS}),
)
IRONIC_1 = Provider(
    IRONIC,
    'ironic-1',
    host='ironic',
    traits=frozenset({'CUSTOM_Y'}),
    aggregates=frozenset({PEERS}),
)


@pytest.fixture
def placement(http):
    """A Placement with two compute nodes, only one of them with capacity."""
    return placement_with(
        http,
        NODE_1,
        Provider(
            NUMA,
            'node-1_NUMA0',
            parent=NODE,
            inventories={'VCPU': Inventory(8)},
        ),
        Provider(
            SHARE,
            'share',
            traits=frozenset({SHARES}),
            aggregates=frozenset({PEERS}),
        ),
        IRONIC_1,
    )


@pytest.fixture
def live_cloud(http, nova, placement, conf):
    """A cloud with two compute nodes."""
    nova.aggregates = [GROUP]
    nova.nodes = [
        ComputeNode(NODE, 'node-1', 'host-1'),
        ComputeNode(IRONIC, 'ironic-1', 'ironic'),
    ]
    nova.answer(http)
    live_cloud = LiveCloud(conf, connection)
    live_cloud.nova = NovaClient(connection())
    live_cloud.placement = placement
    return live_cloud


def test_compute_nodes_are_read_with_traits_and_aggregates(live_cloud):
    snapshot = read(live_cloud)
    assert list(snapshot.index) == [GROUP]
    assert snapshot.nodes == (IRONIC_1, NODE_1)
    assert [other.name for other in snapshot.others] == ['share']
    assert {'CUSTOM_X', 'CUSTOM_Y', MARK} <= snapshot.traits
    assert snapshot.problems == ()


def test_only_necessary_requests_are_sent(http, live_cloud):
    read(live_cloud)
    asked = sorted(
        request.path
        for request in http.request_history
        if request.url.startswith(PLACEMENT)
    )
    assert asked == [
        '/allocation_candidates',
        # All, the sharing ones, and the members of two aggregates.
        *4 * ['/resource_providers'],
        f'/resource_providers/{SHARE}/aggregates',
        f'/resource_providers/{SHARE}/traits',
        f'/resource_providers/{IRONIC}/traits',
        # Those that mark rollups, and those that exist afterwards.
        *2 * ['/traits'],
    ]


def test_with_many_aggregates_those_of_each_provider_are_read(
    http, nova, live_cloud
):
    nova.aggregates = [
        Aggregate(f'00000000-0000-4000-8000-0000000001{number}', f'a{number}')
        for number in range(10, 13)
    ]
    nova.answer(http)
    assert read(live_cloud).nodes == (IRONIC_1, NODE_1)
    paths = [request.path for request in http.request_history]
    for provider in (NODE, SHARE, IRONIC):
        assert f'/resource_providers/{provider}/aggregates' in paths


def test_with_an_old_nova_compute_nodes_are_roots_that_do_not_share(
    nova, live_cloud
):
    nova.newest = '2.52'
    snapshot = read(live_cloud)
    assert {n.name: n.host for n in snapshot.nodes} == {
        'node-1': 'node-1',
        'ironic-1': 'ironic-1',
    }
    assert snapshot.problems == ()


@pytest.mark.parametrize('is_full', [False, True])
def test_a_marked_provider_without_a_compute_node_is_kept_and_reported(
    http, nova, live_cloud, is_full
):
    nova.nodes = nova.nodes[1:]
    if is_full:
        http.get(
            f'{PLACEMENT}/allocation_candidates',
            json={'allocation_requests': [], 'provider_summaries': {}},
        )
    snapshot = read(live_cloud)
    assert [n.name for n in snapshot.nodes] == ['ironic-1']
    assert snapshot.problems == (
        'resource provider node-1: has traits that sync added, but Nova lists '
        'no compute node for it, so they stay; check that its cell can be '
        'reached, or delete the provider if the host is gone',
    )


def test_a_provider_deleted_after_listing_is_omitted(http, live_cloud):
    url = f'{PLACEMENT}/resource_providers/{IRONIC}/traits'
    http.get(url, status_code=404, json={})
    snapshot = read(live_cloud)
    assert [n.name for n in snapshot.nodes] == ['node-1']


def test_a_sharing_provider_deleted_after_listing_is_omitted(http, live_cloud):
    for what in ('traits', 'aggregates'):
        url = f'{PLACEMENT}/resource_providers/{SHARE}/{what}'
        http.get(url, status_code=404, json={})
    assert not read(live_cloud).others


@pytest.mark.parametrize(
    'path',
    [
        '/resource_providers',
        '/allocation_candidates',
        '/traits',
        f'/resource_providers/{SHARE}/aggregates',
        f'/resource_providers/{IRONIC}/traits',
    ],
)
@pytest.mark.parametrize(
    'answer', [{'status_code': 500}, {'json': {}}], ids=['500', 'nothing']
)
def test_a_failed_request_is_not_an_empty_list(http, live_cloud, path, answer):
    http.get(f'{PLACEMENT}{path}', **answer)
    with pytest.raises(exception.ServiceError, match=path):
        read(live_cloud)


def test_a_snapshot_has_its_compute_nodes_and_its_traits():
    snapshot = document.to_snapshot(
        {
            'aggregates': [{'name': 'a', 'hosts': ['h1']}],
            'providers': [
                {'name': 'h1', 'traits': ['CUSTOM_X']},
                {'name': 'share', 'traits': [SHARES, 'CUSTOM_Z']},
                {'name': 'gone', 'host': None, 'traits': [MARK]},
            ],
        },
        'test',
    )
    state = read(SnapshotCloud(snapshot))
    assert [a.name for a in state.index] == ['a']
    assert [n.name for n in state.nodes] == ['h1']
    assert {'CUSTOM_X', 'CUSTOM_Z', 'HW_NIC_SRIOV'} <= state.traits
    assert 'CUSTOM_Y' not in state.traits
    [problem] = state.problems
    assert problem.startswith('resource provider gone: has traits that sync')
