# SPDX-License-Identifier: Apache-2.0
"""Checks hosts by their current memberships, for shortened queries.

Forbidden aggregates that do not fit into a query, and requirements that are
left to host filters, are checked after it: by the memberships of a host in
Nova, and by those in Placement of the providers that serve the request on it.

Nova skips its host filters for ``--availability-zone zone:host``
(``get_filtered_hosts`` in ``nova.scheduler.host_manager``). So these hosts are
checked before a shortened query. If there are several nodes, sharing providers
may serve the request too; the query names the aggregates of these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
import dataclasses
import functools

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
import os_traits

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception, query_limit
from isolate_aggregates.aggregates import Membership
from isolate_aggregates.decision import Decision
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.nova import adapter, database
from isolate_aggregates.nova.candidates import CandidateCheck
from isolate_aggregates.nova.placement import TIMEOUT
from isolate_aggregates.placement import PlacementReader
from isolate_aggregates.query_limit import memberships
from isolate_aggregates.rest.deadline import Deadline

# Nova considers all nodes of a forced host; an Ironic host may have thousands.
_MOST_NODES = 20

# Seconds to wait for all cells together. Nova itself waits for a minute, but
# with a cell that does not answer the request is refused anyway.
_CELL_TIMEOUT = 10.0


class HostCheck:
    """Checks hosts by their current memberships.

    :param limit: The maximum length of a query in bytes; 0 for no limit.
    """

    def __init__(
        self,
        members: Membership,
        placement: Callable[[], PlacementReader],
        limit: int,
    ) -> None:
        self._members = members
        self._placement = placement
        self._limit = limit
        self._deadline = Deadline('Placement', TIMEOUT)

    def memberships(
        self, hosts: Collection[str]
    ) -> Mapping[str, frozenset[str]]:
        """Return the uuids of the aggregates of hosts in Nova."""
        return self._members.aggregates_of(hosts)

    def in_nova(
        self, destination: Destination, nodes: Mapping[str, str]
    ) -> dict[str, Sequence[str]]:
        """Return the reasons against nodes by the memberships in Nova.

        :param nodes: The name of the host of each compute node, by uuid.
        :returns: The reasons by uuid, for some of the nodes.
        """
        hosts = set(nodes.values())
        needs_hosts = (
            destination.required_aggregates or destination.forbidden
        ) and not destination.refusals
        memberships = self._members.aggregates_of(hosts) if needs_hosts else {}
        reasons = {
            host: destination.objections(memberships.get(host, frozenset()))
            for host in hosts
        }
        return {
            node: reasons[host]
            for node, host in nodes.items()
            if reasons[host]
        }

    def candidates(
        self,
        decision: Decision,
        on_failure: Callable[[exception.RequestRefused], None],
    ) -> CandidateCheck | None:
        """Return the check of allocation candidates by what Placement has.

        :param on_failure: Called if Placement does not answer.
        :returns: None if the query has left out nothing.
        """
        replacement = decision.replacement
        if not ((replacement and replacement.left_out) or decision.left_out):
            return None
        return CandidateCheck(
            decision,
            self._placement,
            self._limit,
            self._deadline,
            TIMEOUT,
            on_failure,
        )

    def forced(
        self,
        context: nova_context.RequestContext,
        spec: objects.RequestSpec,
        decision: Decision,
    ) -> Decision:
        """Check the hosts that a request is forced to.

        :param decision: A decision with a shortened query.
        :returns: The decision, whose query leaves out no aggregate that
            matters on these hosts.
        :raises RequestRefused: if the request may not use one of them.
        """
        targets = adapter.forced(spec)
        replacement = decision.replacement
        if targets is None or replacement is None:
            return decision
        nodes = _forced_nodes(context, *targets)
        # A late call must not refer to a request that no longer waits.
        read = functools.partial(
            self._read,
            nodes,
            self._deadline.in_time(
                self._placement, 'the aggregates of a forced host'
            ),
        )
        in_placement, of_sharing = self._deadline.run(read)
        in_nova = self._members.aggregates_of(nodes)
        reasons = [
            f'forced host {host}: {reason}'
            for host in nodes
            for reason in decision.destination.objections(
                in_nova.get(host, frozenset()) | in_placement[host]
            )
        ]
        if reasons:
            raise exception.RequestRefused(reasons)
        named = of_sharing & decision.destination.forbidden_aggregates
        if named <= replacement.forbidden:
            return decision
        if len(named) > len(replacement.forbidden):
            raise exception.QueryNotShortened(
                [
                    'the query to Placement would have to forbid '
                    f'{len(named)} aggregates of the providers that share '
                    'their resources with a forced host, more than fit into '
                    f'[{ia_conf.GROUP}] max_query_length = {self._limit:,}; '
                    'raise it and the limit of the web server in front of '
                    'Placement'
                ]
            )
        # All others have just been checked.
        return dataclasses.replace(
            decision, replacement=query_limit.Replacement(named)
        )

    def _read(
        self,
        nodes: Mapping[str, Collection[str]],
        placement: Callable[[], PlacementReader],
    ) -> tuple[Mapping[str, frozenset[str]], frozenset[str]]:
        """Return the aggregates of all providers of hosts, by host.

        :returns: These, and the aggregates of the providers that share their
            resources with them.
        """
        by_host = {
            host: frozenset[str]().union(
                *(
                    placement().aggregates(provider['uuid'])
                    for root in roots
                    for provider in placement().resource_providers(
                        in_tree=root
                    )
                )
            )
            for host, roots in nodes.items()
        }
        if sum(map(len, nodes.values())) == 1:
            # Nova asks for the tree of the node, which nothing else serves.
            return by_host, frozenset()
        shares = os_traits.MISC_SHARES_VIA_AGGREGATE
        sharing = {
            provider['uuid']
            for some in memberships.parts(
                frozenset().union(*by_host.values()),
                self._limit,
                rest=len(f'&required={shares}'),
            )
            for provider in placement().resource_providers(
                member_of=some, required=[shares]
            )
        }
        return by_host, frozenset().union(
            *(placement().aggregates(provider) for provider in sharing)
        )


def nodes_by_host(
    context: nova_context.RequestContext,
    hosts: Sequence[str],
    nodes: Sequence[str] = (),
) -> dict[str, list[str]]:
    """Return the uuids of the compute nodes, by name of the host.

    :param hosts: The names of the hosts; empty for those that have the nodes.
    :param nodes: The names of the only nodes; empty for all.
    :raises RequestRefused: if a cell cannot be read.
    """

    def read(cell: nova_context.RequestContext) -> list[tuple[str, str]]:
        compute_nodes: list[objects.ComputeNode] = []
        for host in hosts:
            try:
                compute_nodes.extend(
                    objects.ComputeNodeList.get_all_by_host(cell, host)
                )
            except nova_exception.NotFound:
                continue
        for name in () if hosts else nodes:
            try:
                compute_nodes.append(
                    objects.ComputeNode.get_by_nodename(cell, name)
                )
            except nova_exception.NotFound:
                continue
        return [
            (node.host, node.uuid)
            for node in compute_nodes
            if not nodes or node.hypervisor_hostname in nodes
        ]

    admin = context.elevated()
    with database.translated():
        cells = [
            cell
            for cell in objects.CellMappingList.get_all(admin)
            if not cell.is_cell0()
        ]
        answers = nova_context.scatter_gather_cells(
            admin, cells, _CELL_TIMEOUT, read
        ).values()
    if any(map(nova_context.is_cell_failure_sentinel, answers)):
        raise exception.RequestRefused(
            ['the nodes of a host cannot be read from every cell']
        )
    by_host: dict[str, list[str]] = {}
    for host, uuid in (pair for answer in answers for pair in answer):
        by_host.setdefault(host, []).append(uuid)
    return by_host


def _forced_nodes(
    context: nova_context.RequestContext,
    hosts: Sequence[str],
    nodes: Sequence[str],
) -> dict[str, list[str]]:
    """Return the uuids of the compute nodes, by name of the host.

    :raises RequestRefused: if there are none, or too many.
    """
    by_host = nodes_by_host(context, hosts, nodes)
    number = sum(map(len, by_host.values()))
    if len(by_host) < len(hosts) or not number:
        raise exception.RequestRefused(
            ['a forced host or node has no compute node in any cell']
        )
    if number > _MOST_NODES:
        raise exception.RequestRefused(
            [
                f'the forced hosts have {number} nodes, too many to check '
                'each before the query to Placement is shortened'
            ]
        )
    return by_host
