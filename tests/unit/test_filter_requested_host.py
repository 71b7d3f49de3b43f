# SPDX-License-Identifier: Apache-2.0
"""The mirrored filters requested_host and compute_status."""

import pytest

from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.constraints import (
    ForbidRootTrait,
    InTree,
    Refuse,
)
from isolate_aggregates.filters.mirrored import compute_status, requested_host
from isolate_aggregates.request import ComputeHost, Flavor, Request


def conclusions(host):
    request = Request(Flavor('f'), requested_host=host)
    return list(requested_host.RequestedHost()(request, AggregateIndex()))


def test_no_host_means_no_constraint():
    assert conclusions(None) == []


def test_a_host_is_its_provider_tree():
    found = conclusions(ComputeHost('cn1', ('uuid-1',)))
    assert found == [InTree('uuid-1', requested_host.Requested('cn1'))]


def test_an_unknown_host_is_refused_by_name():
    found = conclusions(ComputeHost('cn9'))
    assert found == [Refuse(requested_host.UnknownHost('cn9'))]


def test_a_host_with_several_nodes_is_refused_as_in_tree_takes_one():
    found = conclusions(ComputeHost('ironic', ('uuid-1', 'uuid-2')))
    assert found == [Refuse(requested_host.SeveralNodes('ironic', 2))]


def test_disabled_compute_services_take_no_servers():
    filtered = compute_status.ComputeStatus()
    assert list(filtered(Request(Flavor('f')), AggregateIndex())) == [
        ForbidRootTrait(
            'COMPUTE_STATUS_DISABLED', compute_status.DisabledService()
        )
    ]


@pytest.mark.parametrize(
    ('cause', 'sentence'),
    [
        (requested_host.Requested('cn1'), 'host cn1 was requested'),
        (
            requested_host.UnknownHost('cn9'),
            'there is no compute host named cn9',
        ),
        (
            requested_host.SeveralNodes('ironic', 2),
            'host ironic has 2 compute nodes; request one of them by its node '
            'name',
        ),
        (
            compute_status.DisabledService(),
            'hosts with a disabled compute service take no servers',
        ),
    ],
)
def test_a_cause_says_why(cause, sentence):
    assert str(cause) == sentence
