# SPDX-License-Identifier: Apache-2.0
"""Writes and reads many providers in an embedded Placement at once.

The API takes some milliseconds for each of several calls per provider. Rows
of the service's own tables take microseconds.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from typing import Any
import uuid

from placement import db_api
from placement.db.sqlalchemy import models
import sqlalchemy

from isolate_aggregates.placement.provider import Provider

OWNER = str(uuid.UUID(int=0))
_CLOUD = [
    models.Allocation,
    models.Inventory,
    models.ResourceProviderTrait,
    models.ResourceProviderAggregate,
    models.PlacementAggregate,
    models.ResourceProvider,
]


@dataclasses.dataclass
class ProviderRows:
    """What Placement has of a provider; inventories are total and closed."""

    uuid: str
    parent: str | None
    traits: set[str] = dataclasses.field(default_factory=set)
    aggregates: set[str] = dataclasses.field(default_factory=set)
    inventories: dict[str, tuple[int, int]] = dataclasses.field(
        default_factory=dict
    )


def load(providers: Iterable[Provider]) -> None:
    """Replace all providers of the embedded Placement that is running.

    :param providers: The providers; parents before children.
    """
    engine = db_api.placement_context_manager.writer.get_engine()
    with engine.begin() as connection:
        for model in _CLOUD:
            connection.execute(sqlalchemy.delete(model))
        _insert(connection, tuple(providers))


def read() -> dict[str, ProviderRows]:
    """Return the providers in the running Placement, by name."""
    engine = db_api.placement_context_manager.writer.get_engine()
    with engine.connect() as connection:

        def ask(columns: str, tables: str = '') -> Sequence[Any]:
            return connection.exec_driver_sql(
                f'SELECT p.name, {columns} FROM resource_providers p {tables}'
            ).all()

        found = {
            name: ProviderRows(uuid, parent)
            for name, uuid, parent in ask(
                'p.uuid, parent.uuid',
                'LEFT JOIN resource_providers parent'
                ' ON parent.id = p.parent_provider_id',
            )
        }
        for name, trait in ask(
            't.name',
            'JOIN resource_provider_traits ON resource_provider_id = p.id'
            ' JOIN traits t ON t.id = trait_id',
        ):
            found[name].traits.add(trait)
        for name, aggregate in ask(
            'a.uuid',
            'JOIN resource_provider_aggregates ON resource_provider_id = p.id'
            ' JOIN placement_aggregates a ON a.id = aggregate_id',
        ):
            found[name].aggregates.add(aggregate)
        for name, resource_class, total, closed in ask(
            'c.name, total,'
            ' CASE WHEN min_unit > max_unit THEN total ELSE reserved END',
            'JOIN inventories ON resource_provider_id = p.id'
            ' JOIN resource_classes c ON c.id = resource_class_id',
        ):
            found[name].inventories[resource_class] = (total, closed)
    return found


def custom(table: str) -> list[str]:
    """Return the names of traits or resource classes that are custom."""
    engine = db_api.placement_context_manager.writer.get_engine()
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(
            f"SELECT name FROM {table} WHERE name LIKE 'CUSTOM_%' ORDER BY 1"
        )
        return [name for (name,) in rows]


def _insert(
    connection: sqlalchemy.Connection, providers: tuple[Provider, ...]
) -> None:
    ids = {p.uuid: number for number, p in enumerate(providers, 1)}
    roots: dict[str, int] = {}
    for p in providers:
        roots[p.uuid] = ids[p.uuid] if p.parent is None else roots[p.parent]
    classes = _named(
        connection,
        models.ResourceClass,
        {rc for p in providers for rc in p.inventories},
    )
    traits = _named(
        connection, models.Trait, {t for p in providers for t in p.traits}
    )
    aggregates = {
        aggregate: number
        for number, aggregate in enumerate(
            sorted({a for p in providers for a in p.aggregates}), 1
        )
    }
    rows = {
        models.ResourceProvider: [
            {
                'id': ids[p.uuid],
                'uuid': p.uuid,
                'name': p.name,
                'generation': 1,
                'root_provider_id': roots[p.uuid],
                'parent_provider_id': p.parent and ids[p.parent],
            }
            for p in providers
        ],
        models.Inventory: [
            {
                'resource_provider_id': ids[p.uuid],
                'resource_class_id': classes[rc],
                **vars(inventory),
            }
            for p in providers
            for rc, inventory in p.inventories.items()
        ],
        models.Allocation: [
            {
                'resource_provider_id': ids[p.uuid],
                'resource_class_id': classes[rc],
                'consumer_id': OWNER,
                'used': used,
            }
            for p in providers
            for rc, used in p.usages.items()
            if used
        ],
        models.ResourceProviderTrait: [
            {'resource_provider_id': ids[p.uuid], 'trait_id': traits[trait]}
            for p in providers
            for trait in p.traits
        ],
        models.PlacementAggregate: [
            {'id': number, 'uuid': aggregate}
            for aggregate, number in aggregates.items()
        ],
        models.ResourceProviderAggregate: [
            {
                'resource_provider_id': ids[p.uuid],
                'aggregate_id': aggregates[aggregate],
            }
            for p in providers
            for aggregate in p.aggregates
        ],
    }
    for model, values in rows.items():
        if values:
            connection.execute(sqlalchemy.insert(model), values)


def _named(
    connection: sqlalchemy.Connection, model: type, names: set[str]
) -> Mapping[str, int]:
    """Return the ids of traits or classes, adding those that are new."""
    table = model.__table__
    known = dict(
        connection.execute(sqlalchemy.select(table.c.name, table.c.id)).all()
    )
    new = sorted(names - known.keys())
    if new:
        connection.execute(
            sqlalchemy.insert(table), [{'name': name} for name in new]
        )
        return _named(connection, model, names)
    return known
