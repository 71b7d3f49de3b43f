# SPDX-License-Identifier: Apache-2.0
"""nova-scheduler's own ``select_destinations`` over a simulated Placement.

The request filters, the query, the handling of forced and requested hosts,
and the host filters are real. There are no databases, messages or weighers,
and each claim succeeds, so a request takes only some milliseconds.
"""

import contextlib
import dataclasses

from keystoneauth1 import exceptions as ks_exceptions
from nova import objects
import nova.conf
from nova.scheduler import filters as nova_filters
from nova.scheduler import host_manager, manager
from nova.scheduler.client import report
from oslo_config import fixture as config_fixture
import server_requests
from server_requests import CELL
import uninstalling

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import options as tools_options
from isolate_aggregates.nova import host_filter


@contextlib.contextmanager
def isolating(hosts, filters):
    """Configure Nova with filters, and enough alternates for all hosts."""
    objects.register_all()
    with config_fixture.Config(nova.conf.CONF) as fixture:
        tools_options.register_opts(fixture.conf)
        fixture.config(
            enable_isolated_aggregate_filtering=True,
            placement_req_required_member_prefix=['reservation:'],
            placement_req_default_forbidden_member_prefix=['reservation:'],
            max_attempts=len(hosts) + 1,
            group='scheduler',
        )
        fixture.config(
            request_filters=filters,
            reservation_key_sources=['hint'],
            group=ia_conf.GROUP,
        )
        yield fixture.conf
        uninstalling.uninstall()


@dataclasses.dataclass(frozen=True)
class Node:
    """A compute node; its service has the same name."""

    name: str
    uuid: str


class _Hosts(host_manager.HostManager):
    """Nova's host manager, with its hosts in memory."""

    def __init__(self, nodes):
        self.nodes = {node.uuid: node for node in nodes}
        self.filter_handler = nova_filters.HostFilterHandler()
        self.enabled_filters = [host_filter.IsolatedAggregatesFilter()]

    def get_compute_nodes_by_host_or_node(
        self, context, host, node, cell=None
    ):
        return [
            objects.ComputeNode(
                host=one.name, hypervisor_hostname=one.name, uuid=one.uuid
            )
            for one in self.nodes.values()
            if host in (None, one.name) and node in (None, one.name)
        ]

    def get_host_states_by_uuids(self, context, uuids, spec):
        if uuids is None:
            # For a rebuild, Nova does not query Placement.
            uuids = self.nodes
        # Placement also summarizes providers below the compute nodes.
        for uuid in filter(self.nodes.get, uuids):
            node = self.nodes[uuid]
            state = host_manager.HostState(node.name, node.name, CELL)
            state.uuid = uuid
            yield state

    def get_weighed_hosts(self, hosts, spec):
        return [_Weighed(host) for host in hosts]


@dataclasses.dataclass
class _Weighed:
    obj: host_manager.HostState
    weight: float = 0.0


class _Client(report.SchedulerReportClient):
    """Nova's client, which claims whatever is asked for."""

    def claim_resources(self, *args, **kwargs):
        return True

    def delete_allocation_for_instance(self, *args, **kwargs):
        return True


class Scheduler(manager.SchedulerManager):
    """Nova's scheduler manager.

    :param nodes: The compute nodes.
    :param placement: The adapter for Placement.
    """

    placement_client = None
    host_manager = None

    def __init__(self, nodes, placement):
        self.host_manager = _Hosts(nodes)
        self.placement_client = _Client(placement)

    def _select_destinations(self, context, *args):
        return self._schedule(context, *args)

    @staticmethod
    def _consume_selected_host(host, spec, instance_uuid=None):
        """Consume nothing, so that hosts have room for all servers."""

    def hosts_for(self, spec):
        """Return the names of all hosts that could serve a request."""
        try:
            return server_requests.hosts_for(self, spec)
        except ks_exceptions.ClientException:
            # Placement cannot be reached.
            return set()
