# SPDX-License-Identifier: Apache-2.0
"""Takes a snapshot of a live cloud."""

from collections.abc import Callable, Iterable, Mapping
from concurrent import futures
from typing import Any, TypeVar

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.cloud.glance import GlanceReader
from isolate_aggregates.cloud.nova import ComputeNode, NovaReader
from isolate_aggregates.cloud.snapshot import Inventory, Provider, Snapshot
from isolate_aggregates.placement.client import PlacementClient

# Enough to hide the time on the wire, few enough to be a good guest.
_PARALLEL = 8

_T = TypeVar('_T')


def take(
    aggregates: Iterable[Aggregate],
    nova: NovaReader,
    glance: GlanceReader,
    placement: PlacementClient,
    settings: Mapping[tuple[str, str], object],
) -> Snapshot:
    """Return a snapshot of a live cloud.

    :param aggregates: The host aggregates.
    :param nova: Its Nova.
    :param glance: Its Glance.
    :param placement: Its Placement.
    :param settings: Its scheduler settings, as far as they are known.
    :raises IsolateAggregatesError: if anything can not be read; there is no
        such thing as part of a snapshot.
    """
    nodes = nova.compute_nodes()
    listed = _parents_first(placement.resource_providers())
    with futures.ThreadPoolExecutor(_PARALLEL) as pool:
        providers = tuple(
            pool.map(
                lambda entry: _provider(entry, _host(entry, nodes), placement),
                listed,
            )
        )
    return Snapshot(
        origin='live cloud',
        aggregates=tuple(aggregates),
        providers=providers,
        flavors=tuple(nova.flavors()),
        images=tuple(glance.images()),
        settings=settings,
    )


def _parents_first(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one tree after the other, in the order of a cloud file."""
    children: dict[str | None, list[dict[str, Any]]] = {}
    for entry in listed:
        children.setdefault(entry['parent_provider_uuid'], []).append(entry)
    ordered: list[dict[str, Any]] = []
    waiting = _backwards(children.get(None, []))
    while waiting:
        entry = waiting.pop()
        ordered.append(entry)
        waiting += _backwards(children.get(entry['uuid'], []))
    return ordered


def _backwards(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(entries, key=lambda entry: entry['name'], reverse=True)


def _host(
    entry: Mapping[str, Any], nodes: list[ComputeNode] | None
) -> str | None:
    """Return the compute service whose node a provider is, if it is one."""
    if nodes is None:
        # Such a Nova does not say; then its root providers are its nodes.
        return None if entry['parent_provider_uuid'] else entry['name']
    return next((n.host for n in nodes if n.uuid == entry['uuid']), None)


def _provider(
    entry: Mapping[str, Any], host: str | None, placement: PlacementClient
) -> Provider:
    path = f'/resource_providers/{entry["uuid"]}'

    def read(what: str, pick: Callable[[Any], _T]) -> _T:
        document = placement.get(f'{path}/{what}')
        try:
            return pick(document[what])
        except (LookupError, TypeError, AttributeError) as exc:
            raise exception.ServiceError(
                'Placement',
                None,
                f'answered {path}/{what} with JSON that lacks what it should '
                f'have: {exc!r}.',
            ) from exc

    fields = Inventory.__dataclass_fields__
    return Provider(
        uuid=entry['uuid'],
        name=entry['name'],
        parent=entry['parent_provider_uuid'],
        host=host,
        inventories=read(
            'inventories',
            lambda found: {
                resource_class: Inventory(
                    **{k: v for k, v in amounts.items() if k in fields}
                )
                for resource_class, amounts in found.items()
            },
        ),
        usages=read(
            'usages', lambda found: {rc: n for rc, n in found.items() if n}
        ),
        traits=read('traits', frozenset),
        aggregates=read('aggregates', frozenset),
    )
