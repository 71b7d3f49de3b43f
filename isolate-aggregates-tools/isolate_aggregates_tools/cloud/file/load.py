# SPDX-License-Identifier: Apache-2.0
"""Loads a snapshot into an empty Placement."""

from collections.abc import Callable, Collection, Iterator, Mapping
import contextlib
import dataclasses
import itertools

from isolate_aggregates import exception
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import placement_rows
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.placement import generations
from isolate_aggregates_tools.placement.client import PlacementClient
from isolate_aggregates_tools.placement.provider import (
    MAX_INT,
    Inventory,
    Provider,
)
from isolate_aggregates_tools.placement.providers import GENERATION

_CUSTOM = 'CUSTOM_'
# The largest number that Placement accepts as an allocation ratio.
_MAX_RATIO = 3.40282e38
# Accepts any usage, even one that exceeds the inventory of the live cloud.
_BOTTOMLESS = Inventory(total=MAX_INT)


def into_placement(snapshot: Snapshot, placement: PlacementClient) -> None:
    """Create all providers of a snapshot in an empty embedded Placement.

    From the first provider on that Placement may reject, the API is used: it
    tells what is wrong.

    :raises CloudFileError: if Placement rejects an object, for example a
        standard trait that it does not have.
    """
    providers = snapshot.providers
    traits = {trait for p in providers for trait in p.traits}
    traits |= snapshot.traits
    for trait in sorted(t for t in traits if t.startswith(_CUSTOM)):
        with _naming(snapshot, f'trait {trait}'):
            placement.send('PUT', f'/traits/{trait}')
    classes = {rc for p in providers for rc in p.inventories}
    classes |= snapshot.resource_classes
    for resource_class in sorted(c for c in classes if c.startswith(_CUSTOM)):
        with _naming(snapshot, f'resource class {resource_class}'):
            placement.send('PUT', f'/resource_classes/{resource_class}')
    valid = tuple(itertools.takewhile(_is_valid_in(placement), providers))
    placement_rows.insert(valid)
    for provider in providers[len(valid) :]:
        with _naming(snapshot, f'provider {provider.name}'):
            _load_provider(provider, placement)


def _is_valid_in(placement: PlacementClient) -> Callable[[Provider], bool]:
    """Return a check for what a cloud file may have that Placement rejects."""
    traits = set(placement.get('/traits')['traits'])
    classes = {
        each['name']
        for each in placement.get('/resource_classes')['resource_classes']
    }

    def is_valid(provider: Provider) -> bool:
        return (
            provider.traits <= traits
            and provider.usages.keys()
            <= provider.inventories.keys()
            <= classes
            and all(
                inventory.reserved <= inventory.total
                and inventory.allocation_ratio <= _MAX_RATIO
                for inventory in provider.inventories.values()
            )
        )

    return is_valid


@contextlib.contextmanager
def _naming(snapshot: Snapshot, what: str) -> Iterator[None]:
    """Add the rejected object of the snapshot to the error."""
    try:
        yield
    except exception.ServiceError as exc:
        raise tools_errors.CloudFileError(
            snapshot.origin, [f'{what}: Placement {exc.problem.rstrip(".")}']
        ) from exc


def _load_provider(provider: Provider, placement: PlacementClient) -> None:
    at = placement.send(
        'POST',
        '/resource_providers',
        {
            'uuid': provider.uuid,
            'name': provider.name,
            'parent_provider_uuid': provider.parent,
        },
    )['generation']

    def put(part: str, value: Collection[object]) -> None:
        nonlocal at
        answer = generations.replace(placement, provider.uuid, part, value, at)
        at = answer[GENERATION]

    if provider.traits:
        put('traits', sorted(provider.traits))
    if provider.aggregates:
        put('aggregates', sorted(provider.aggregates))
    if provider.usages:
        # The usage may exceed max_unit or the capacity. Placement allows an
        # inventory to shrink below its usage.
        inventories = dict.fromkeys(provider.inventories, _BOTTOMLESS)
        put('inventories', _inventories(inventories))
        placement.send(
            'PUT',
            f'/allocations/{placement_rows.consumer(provider)}',
            {
                'allocations': {
                    provider.uuid: {'resources': dict(provider.usages)}
                },
                'project_id': placement_rows.OWNER,
                'user_id': placement_rows.OWNER,
                'consumer_generation': None,
            },
        )
        path = f'/resource_providers/{provider.uuid}'
        at = placement.get(path)['generation']
    if provider.inventories:
        put('inventories', _inventories(provider.inventories))


def _inventories(
    inventories: Mapping[str, Inventory],
) -> dict[str, dict[str, object]]:
    return {
        resource_class: dataclasses.asdict(inventory)
        for resource_class, inventory in inventories.items()
    }
