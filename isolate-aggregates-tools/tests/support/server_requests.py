# SPDX-License-Identifier: Apache-2.0
"""The requests that reach nova-scheduler over the life of a server."""

import dataclasses
import itertools
import uuid

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from oslo_messaging.rpc import dispatcher

from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.request import Request

TRAITS = ('CUSTOM_A', 'CUSTOM_B')
PROJECTS = ('project-a', 'project-b')
RESERVATION = 'reservation:1'
CELL = 'cccccccc-0000-4000-8000-000000000000'

# Metadata that locks an aggregate.
TAGS = (
    {'trait:CUSTOM_A': 'required'},
    {'trait:CUSTOM_B': 'required'},
    {RESERVATION: 'true', 'blazar:owner': PROJECTS[0]},
    {'filter_tenant_id': PROJECTS[0]},
)

# The request spec of each of Nova's operations.
_ELSEWHERE = {'ignore_hosts': True}
_THERE = {'destination': True}
OPERATIONS = {
    'boot': {},
    'boot several at once': {'number': 2},
    'boot on a forced host': {'force_hosts': True},
    'boot on a forced node': {'force_nodes': True},
    'boot on a requested host': _THERE,
    'resize': _ELSEWHERE,
    'cold migration': _ELSEWHERE,
    'cold migration to a host': _THERE,
    'live migration': _ELSEWHERE,
    'live migration to a host': _THERE,
    'evacuation': _ELSEWHERE,
    'evacuation to a host': _THERE,
    'unshelve': {},
    'unshelve to a host': _THERE,
    'rebuild': {
        'force_hosts': True,
        'force_nodes': True,
        'cell': True,
        'hints': {'_nova_check_type': ['rebuild']},
    },
}


@dataclasses.dataclass(frozen=True)
class Demand:
    """A request to nova-scheduler.

    :param host: The host that it names, leaves or stays on.
    """

    operation: str
    host: str
    traits: tuple[str, ...]
    reservation: str | None
    project: str

    @property
    def extra_specs(self):
        """The keys that the flavor has."""
        return {f'trait:{trait}': 'required' for trait in self.traits}

    @property
    def hints(self):
        """The keys that the user has."""
        return {self.reservation: ['true']} if self.reservation else {}

    def request(self):
        """Return it as request filters see it."""
        return Request(
            Flavor('f', extra_specs=self.extra_specs),
            project_id=self.project,
            scheduler_hints=self.hints,
        )

    def spec(self, cell=None):
        """Return Nova's request spec, a new one each time.

        :param cell: The cell of all servers, if it is read from.
        """
        wanted = OPERATIONS[self.operation]
        destination = None
        if 'destination' in wanted:
            destination = objects.Destination(host=self.host)
        elif 'cell' in wanted:
            destination = objects.Destination(
                cell=cell or objects.CellMapping(id=1, uuid=CELL, name='one')
            )

        def only(name):
            return [self.host] if name in wanted else None

        spec = objects.RequestSpec.from_components(
            nova_context.get_admin_context(),
            'dddddddd-0000-4000-8000-000000000000',
            image={'properties': {}},
            flavor=objects.Flavor(
                name='f', flavorid='f', vcpus=1, memory_mb=64, root_gb=1,
                ephemeral_gb=0, swap=0, extra_specs=self.extra_specs,
                disabled=False, is_public=True, rxtx_factor=1.0,
                vcpu_weight=0, description=None, projects=[],
            ),
            numa_topology=None,
            pci_requests=None,
            filter_properties={
                'scheduler_hints': self.hints | wanted.get('hints', {}),
                'requested_destination': destination,
                'ignore_hosts': only('ignore_hosts'),
                'force_hosts': only('force_hosts'),
                'force_nodes': only('force_nodes'),
            },
            instance_group=None,
            availability_zone=None,
            project_id=self.project,
        )  # fmt: skip
        spec.num_instances = wanted.get('number', 1)
        return spec


def hosts_for(manager, spec):
    """Return the names of all hosts that could serve a request.

    :param manager: The manager of a nova-scheduler, which makes all hosts
        alternates of the one that it chooses.
    """
    try:
        hosts = manager.select_destinations(
            nova_context.get_admin_context(),
            spec_obj=spec,
            # As each conductor does; without, Nova uses no candidates.
            instance_uuids=[
                spec.instance_uuid if number == 0 else str(uuid.uuid4())
                for number in range(spec.num_instances)
            ],
            return_objects=True,
            return_alternates=True,
        )
    except dispatcher.ExpectedException as exc:
        # Nova wraps the exceptions of its conductor.
        if not isinstance(exc.exc_info[1], nova_exception.NoValidHost):
            raise
        return set()
    return {one.service_host for held in hosts for one in held}


def demands(hosts):
    """Return each request there is on some hosts, those without keys more.

    Most locks are there to keep these out.
    """
    return tuple(
        itertools.starmap(
            Demand,
            itertools.product(
                OPERATIONS,
                hosts,
                [(), (), (), TRAITS[:1], TRAITS[1:], TRAITS],
                [None, None, None, RESERVATION],
                PROJECTS,
            ),
        )
    )
