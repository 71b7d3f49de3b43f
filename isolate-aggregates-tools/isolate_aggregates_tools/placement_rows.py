# SPDX-License-Identifier: Apache-2.0
"""Writes providers into the tables of the embedded Placement.

Its API takes some milliseconds for each of several calls per provider; rows
take microseconds. It checks what it is given, which the tables do not.
"""

from collections.abc import Mapping, Sequence
import uuid

from isolate_aggregates_tools.placement.provider import Provider

# The project and user of all allocations.
OWNER = str(uuid.UUID(int=0))


def consumer(provider: Provider) -> str:
    """Return the uuid of the consumer of all usage of a provider."""
    return str(uuid.uuid5(uuid.UUID(provider.uuid), 'usage'))


def _writes(provider: Provider) -> int:
    """Return the generation of a provider that the API has filled."""
    parts = provider.traits, provider.aggregates, provider.inventories
    return sum(map(bool, parts)) + 2 * any(provider.usages.values())


def insert(providers: Sequence[Provider]) -> None:
    """Add providers to the embedded Placement, which has none.

    :param providers: The providers; parents before children. Placement knows
        their traits and resource classes.
    """
    # Imported late: it is optional.
    from placement import db_api
    from placement.db.sqlalchemy import models
    import sqlalchemy

    # The ids of this transaction: everything is new but the names.
    ids = {p.uuid: number for number, p in enumerate(providers, 1)}
    roots: dict[str, int] = {}
    for p in providers:
        roots[p.uuid] = ids[p.uuid] if p.parent is None else roots[p.parent]
    aggregates = sorted({a for p in providers for a in p.aggregates})
    numbers = {uuid: number for number, uuid in enumerate(aggregates, 1)}
    used = [p for p in providers if any(p.usages.values())]

    engine = db_api.placement_context_manager.writer.get_engine()
    with engine.begin() as connection:

        def ids_of(model: type) -> Mapping[str, int]:
            table = model.__table__  # type: ignore[attr-defined]
            columns = sqlalchemy.select(table.c.name, table.c.id)
            return dict(connection.execute(columns).tuples().all())

        def add(model: type, rows: Sequence[Mapping[str, object]]) -> None:
            if rows:
                connection.execute(sqlalchemy.insert(model), rows)

        classes = ids_of(models.ResourceClass)
        traits = ids_of(models.Trait)
        add(
            models.ResourceProvider,
            [
                {
                    'id': ids[p.uuid],
                    'uuid': p.uuid,
                    'name': p.name,
                    'generation': _writes(p),
                    'root_provider_id': roots[p.uuid],
                    'parent_provider_id': p.parent and ids[p.parent],
                }
                for p in providers
            ],
        )
        add(
            models.Inventory,
            [
                {
                    'resource_provider_id': ids[p.uuid],
                    'resource_class_id': classes[resource_class],
                    **vars(inventory),
                }
                for p in providers
                for resource_class, inventory in p.inventories.items()
            ],
        )
        add(
            models.ResourceProviderTrait,
            [
                {'resource_provider_id': ids[p.uuid], 'trait_id': traits[t]}
                for p in providers
                for t in p.traits
            ],
        )
        add(
            models.PlacementAggregate,
            [{'id': number, 'uuid': a} for a, number in numbers.items()],
        )
        add(
            models.ResourceProviderAggregate,
            [
                {
                    'resource_provider_id': ids[p.uuid],
                    'aggregate_id': numbers[a],
                }
                for p in providers
                for a in p.aggregates
            ],
        )
        if used:
            owner = {'id': 1, 'external_id': OWNER}
            add(models.Project, [owner])
            add(models.User, [owner])
        add(
            models.Consumer,
            [
                {
                    'uuid': consumer(p),
                    'generation': 1,
                    'project_id': 1,
                    'user_id': 1,
                }
                for p in used
            ],
        )
        add(
            models.Allocation,
            [
                {
                    'resource_provider_id': ids[p.uuid],
                    'resource_class_id': classes[resource_class],
                    'consumer_id': consumer(p),
                    'used': amount,
                }
                for p in used
                for resource_class, amount in p.usages.items()
                if amount
            ],
        )
