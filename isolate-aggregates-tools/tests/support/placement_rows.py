# SPDX-License-Identifier: Apache-2.0
"""Replaces and reads all providers of an embedded Placement at once."""

import dataclasses

from placement.db.sqlalchemy import models
import placement_backup
import sqlalchemy

from isolate_aggregates_tools import placement_rows

_CLOUD = [
    models.Allocation,
    models.Consumer,
    models.Project,
    models.User,
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


def load(providers):
    """Replace all providers of the embedded Placement that is running.

    :param providers: The providers; parents before children.
    """
    cloud = tuple(providers)
    with placement_backup.engine().begin() as connection:
        for model in _CLOUD:
            connection.execute(sqlalchemy.delete(model))
        _add(models.Trait, {t for p in cloud for t in p.traits}, connection)
        _add(
            models.ResourceClass,
            {rc for p in cloud for rc in p.inventories},
            connection,
        )
    placement_rows.insert(cloud)


def read(engine=None):
    """Return the providers in a database, by name.

    :param engine: Its engine; None for the embedded Placement's.
    """
    with (engine or placement_backup.engine()).connect() as connection:

        def ask(columns, tables=''):
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


def custom(table, engine=None):
    """Return the names of traits or resource classes that are custom."""
    with (engine or placement_backup.engine()).connect() as connection:
        rows = connection.execute(
            sqlalchemy.text(
                f'SELECT name FROM {table}'
                " WHERE name LIKE 'CUSTOM_%' ORDER BY 1"
            )
        )
        return [name for (name,) in rows]


def _add(model, names, connection):
    """Add the traits or classes that are new."""
    known = connection.scalars(sqlalchemy.select(model.name))
    new = sorted(names.difference(known))
    if new:
        rows = [{'name': name} for name in new]
        connection.execute(sqlalchemy.insert(model), rows)
