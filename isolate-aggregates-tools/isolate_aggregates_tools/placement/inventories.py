# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the inventories and usages of resource providers.

All inventories of a provider are replaced together, with the generation at
which they were read. Placement rejects an outdated generation. See `Update
resource provider inventories
<https://docs.openstack.org/api-ref/placement/#update-resource-provider-inventories>`_.
Providers are named by their uuids.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

from isolate_aggregates_tools.placement import generations
from isolate_aggregates_tools.placement.client import PlacementClient
from isolate_aggregates_tools.placement.providers import GENERATION


@dataclasses.dataclass(frozen=True)
class Inventories:
    """The inventories of a provider at one generation.

    :param by_class: The inventories in Placement's format, by resource class.
    """

    generation: int
    by_class: Mapping[str, Mapping[str, Any]]


def capacity(inventory: Mapping[str, Any]) -> int:
    """Return the capacity of an inventory."""
    return int(
        (inventory['total'] - inventory.get('reserved', 0))
        * inventory.get('allocation_ratio', 1.0)
    )


def read(placement: PlacementClient, provider: str) -> Inventories:
    """Return the inventories of a resource provider."""
    return placement.read(
        f'/resource_providers/{provider}/inventories',
        lambda document: Inventories(
            int(document[GENERATION]),
            {
                name: {**inventory, 'total': inventory['total']}
                for name, inventory in document['inventories'].items()
            },
        ),
    )


def write(
    placement: PlacementClient, provider: str, inventories: Inventories
) -> int:
    """Replace the inventories of a resource provider.

    :returns: The new generation.
    :raises ServiceConflict: if another client has changed the provider since,
        or an inventory to be deleted is in use.
    """
    response = generations.replace(
        placement,
        provider,
        'inventories',
        inventories.by_class,
        inventories.generation,
    )
    return int(response[GENERATION])


def usages(
    placement: PlacementClient, provider: str
) -> tuple[int, Mapping[str, int]]:
    """Return the usages of a resource provider.

    :returns: The generation, and the amounts by resource class.
    """
    return placement.read(
        f'/resource_providers/{provider}/usages',
        lambda document: (
            int(document[GENERATION]),
            dict(document['usages']),
        ),
    )


def consumers(
    placement: PlacementClient, provider: str
) -> Mapping[str, Mapping[str, int]]:
    """Return the consumers of a resource provider: servers and migrations.

    :returns: The amounts by resource class, by uuid of the consumer.
    """
    return placement.read(
        f'/resource_providers/{provider}/allocations',
        lambda document: {
            consumer: dict(allocation['resources'])
            for consumer, allocation in document['allocations'].items()
        },
    )


def classes(placement: PlacementClient) -> list[str]:
    """Return the names of all resource classes."""
    return placement.read(
        '/resource_classes',
        lambda document: [
            str(resource_class['name'])
            for resource_class in document['resource_classes']
        ],
    )


def create_class(placement: PlacementClient, name: str) -> None:
    """Create a custom resource class, unless it exists."""
    placement.send('PUT', f'/resource_classes/{name}')


def delete_class(placement: PlacementClient, name: str) -> None:
    """Delete a custom resource class, if it exists."""
    placement.send('DELETE', f'/resource_classes/{name}', accept=(204, 404))


def create_provider(
    placement: PlacementClient, name: str, uuid: str, parent: str
) -> None:
    """Create a child resource provider, unless it exists."""
    placement.send(
        'POST',
        '/resource_providers',
        {'name': name, 'uuid': uuid, 'parent_provider_uuid': parent},
        accept=(200, 201, 409),
    )


def delete_provider(placement: PlacementClient, provider: str) -> None:
    """Delete a resource provider, if it exists.

    :raises ServiceConflict: if it has allocations or children.
    """
    placement.send(
        'DELETE', f'/resource_providers/{provider}', accept=(204, 404)
    )
