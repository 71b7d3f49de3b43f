# SPDX-License-Identifier: Apache-2.0
"""The filters requested_host and compute_status."""

from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.destination import (
    ForbidRootTrait,
    InTree,
    Refuse,
)
from isolate_aggregates.filters.mirrored.compute_status import ComputeStatus
from isolate_aggregates.filters.mirrored.requested_host import (
    RequestedHostFilter,
)
from isolate_aggregates.request import Flavor, RequestedHost, RequestSpec


def conclusions(host):
    request = RequestSpec(Flavor('f'), requested_host=host)
    return list(RequestedHostFilter()(request, AggregateIndex()))


def test_no_host_means_no_constraint():
    assert conclusions(None) == []


def test_a_host_is_its_provider_tree():
    found = conclusions(RequestedHost('cn1', ('uuid-1',)))
    assert found == [InTree('uuid-1', 'host cn1 was requested')]


def test_an_unknown_host_is_refused_by_name():
    found = conclusions(RequestedHost('cn9'))
    assert found == [Refuse('there is no compute host named cn9')]


def test_a_host_with_several_nodes_is_refused_as_in_tree_takes_one():
    [found] = conclusions(RequestedHost('ironic', ('uuid-1', 'uuid-2')))
    assert found == Refuse(
        'host ironic has 2 compute nodes; request one of them by its node name'
    )


def test_disabled_compute_services_take_no_servers():
    [found] = ComputeStatus()(RequestSpec(Flavor('f')), AggregateIndex())
    assert isinstance(found, ForbidRootTrait)
    assert found.trait == 'COMPUTE_STATUS_DISABLED'
