# SPDX-License-Identifier: Apache-2.0
"""Nova's own client reads the mocked Placement as it reads a real one."""

import contextlib
from unittest import mock

from mocked_answers import in_order
from nova import context, exception, objects
from nova.scheduler import utils
from nova.scheduler.client import report
from small_clouds import NESTED, RACK

from isolate_aggregates import testing
from isolate_aggregates.tools import placement_rows
from isolate_aggregates.tools.cloud.file import load
from isolate_aggregates.tools.embedded import EmbeddedPlacement
from isolate_aggregates.tools.placement.client import PlacementClient

UUIDS = {provider.name: provider.uuid for provider in NESTED.providers}
CONSUMER = placement_rows.consumer(NESTED.providers[1])
CONTEXT = context.RequestContext('user', 'project', is_admin=True)


def resources(**amounts):
    """Return what Nova asks candidates with."""
    request = utils.ResourceRequest()
    for resource_class, amount in amounts.items():
        request.get_request_group(None).add_resource(resource_class, amount)
    return request


def whole_tree(client):
    """Return a provider tree, by names."""
    tree = client.get_provider_tree_and_ensure_root(
        CONTEXT, UUIDS['cn3'], name='cn3'
    )
    return {
        name: {
            'inventory': tree.data(name).inventory,
            'traits': tree.data(name).traits,
            'aggregates': tree.data(name).aggregates,
        }
        for name in ('cn3', 'numa0', 'nic', 'numa1', 'disks')
    }


def allocations_of_tree(client):
    """Return the consumers of a provider tree that Nova has cached."""
    whole_tree(client)
    return client.get_allocations_for_provider_tree(CONTEXT, 'cn3')


def refused(read):
    """Have the exception of what cannot be read."""

    def name(client):
        try:
            return f'read: {read(client)}'
        except exception.NovaException as exc:
            return type(exc).__name__

    return name


# All that the client reads. What it looks up itself before it writes is not
# in this list.
READS = {
    'candidates': lambda client: client.get_allocation_candidates(
        CONTEXT, resources(VCPU=2, DISK_GB=10)
    )[0],
    'summaries': lambda client: client.get_allocation_candidates(
        CONTEXT, resources(VCPU=2, DISK_GB=10)
    )[1],
    'no candidates': lambda client: client.get_allocation_candidates(
        CONTEXT, resources(VCPU=99)
    ),
    'aggregates': lambda client: client._get_provider_aggregates(
        CONTEXT, UUIDS['cn4']
    )._asdict(),
    'traits': lambda client: client.get_provider_traits(
        CONTEXT, UUIDS['numa1']
    )._asdict(),
    'traits of none': refused(
        lambda client: client.get_provider_traits(CONTEXT, CONSUMER)
    ),
    'name': lambda client: client.get_resource_provider_name(
        CONTEXT, UUIDS['nic']
    ),
    'name of none': refused(
        lambda client: client.get_resource_provider_name(CONTEXT, CONSUMER)
    ),
    'provider': lambda client: client._get_resource_provider(
        CONTEXT, UUIDS['numa0']
    ),
    'provider that is none': lambda client: client._get_resource_provider(
        CONTEXT, CONSUMER
    ),
    'provider by name': lambda client: client.get_provider_by_name(
        CONTEXT, 'numa1'
    ),
    'provider by no name': refused(
        lambda client: client.get_provider_by_name(CONTEXT, 'nobody')
    ),
    'sharing providers': lambda client: client._get_sharing_providers(
        CONTEXT, [RACK.uuid]
    ),
    'providers in tree': lambda client: client.get_providers_in_tree(
        CONTEXT, UUIDS['numa1']
    ),
    'inventories': lambda client: client._get_inventory(CONTEXT, UUIDS['cn4']),
    'whole tree': whole_tree,
    'allocations of consumer': lambda client: (
        client.get_allocations_for_consumer(CONTEXT, CONSUMER)
    ),
    'consumer': lambda client: client.get_allocs_for_consumer(
        CONTEXT, CONSUMER
    ),
    'consumer that is none': lambda client: client.get_allocs_for_consumer(
        CONTEXT, UUIDS['cn3']
    ),
    'allocations of provider': lambda client: (
        client.get_allocations_for_resource_provider(CONTEXT, UUIDS['numa0'])
    ),
    'allocations of tree': allocations_of_tree,
    'usages for limits': lambda client: client.get_usages_counts_for_limits(
        CONTEXT, placement_rows.OWNER
    ),
    'usages for quota': lambda client: client.get_usages_counts_for_quota(
        CONTEXT, placement_rows.OWNER, placement_rows.OWNER
    ),
    'usages of nobody': lambda client: client.get_usages_counts_for_quota(
        CONTEXT, 'nobody'
    ),
    'traits that exist': lambda client: client._ensure_traits(
        CONTEXT, ['CUSTOM_A', 'HW_CPU_X86_AVX']
    ),
}


@contextlib.contextmanager
def embedded():
    """A real Placement with the nested cloud."""
    placement = EmbeddedPlacement()
    with contextlib.closing(placement):
        client = placement.open()
        load.into_placement(NESTED, PlacementClient(client))
        yield client


@contextlib.contextmanager
def mocked():
    """A mocked one with the same."""
    with testing.PlacementFixture(NESTED) as placement:
        yield placement.adapter


def read(placement):
    """Return all that Nova's client reads."""
    with placement as client:
        # Nova checks the status itself.
        client.raise_exc = False
        return {
            name: in_order(read(report.SchedulerReportClient(client)))
            for name, read in READS.items()
        }


def test_novas_client_reads_the_same_from_both_placements():
    objects.register_all()
    with mock.patch.object(report.SchedulerReportClient, 'put') as put:
        expected = read(embedded())
        answers = read(mocked())
    put.assert_not_called()
    assert answers == expected
    assert len(answers['candidates']) == 3
    assert answers['whole tree']['numa1']['traits'] == [
        'CUSTOM_A', 'CUSTOM_B', 'HW_CPU_X86_AVX',
    ]  # fmt: skip
    assert answers['usages for limits'] == {'VCPU': 1}
    assert answers['name of none'] == 'ResourceProviderNotFound'
