# SPDX-License-Identifier: Apache-2.0
"""Our isolate_aggregates forbids what Nova's in-tree filter forbids.

``tests/databases`` has other databases than SQLite.
"""

import itertools

from hypothesis import given
from hypothesis import strategies as st
from nova import context as nova_context
from nova import objects
import nova.conf
from nova.db.api import api as api_db
from nova.db.api import models
from nova.scheduler import request_filter
import nova_flavors
from oslo_config import fixture as config_fixture
from oslo_db.sqlalchemy import enginefacade
import pytest
import sqlalchemy
from thorough import examples

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools.request import Request

TRAITS = ['CUSTOM_A', 'CUSTOM_B', 'HW_GPU', 'custom_a', 'CUSTOM_A_B', 'Ä', '%']

keys = st.one_of(
    st.sampled_from([f'trait:{trait}' for trait in TRAITS]),
    st.sampled_from(
        [
            'TRAIT:CUSTOM_A',
            'Trait:HW_GPU',
            'traits:CUSTOM_A',
            'trait',
            'trait:',
            'xtrait:CUSTOM_A',
            'availability_zone',
            'trait_CUSTOM_A',
        ]
    ),
)
# Without "Required", which is a lock to us, but not in Nova on SQLite.
values = st.sampled_from(
    ['required', 'required', ' required', '', 'forbidden']
)
clouds = st.lists(st.dictionaries(keys, values, max_size=4), max_size=12)
asked = st.sets(st.sampled_from(TRAITS))


@pytest.fixture(scope='module')
def engine():
    """Nova's API database on SQLite, in memory."""
    objects.register_all()
    database = enginefacade.transaction_context()
    database.configure(connection='sqlite://')
    engine = database.writer.get_engine()
    models.BASE.metadata.create_all(engine)
    restore = api_db.context_manager.patch_factory(database)
    yield engine
    restore()
    engine.dispose()


def store_each(engine, metadatas):
    """Make aggregates with this metadata the only ones; return them."""
    aggregates = [
        Aggregate(
            uuid=f'{number:08d}-0000-4000-8000-000000000000',
            name=f'aggregate-{number}',
            id=number,
            metadata=metadata,
        )
        for number, metadata in enumerate(metadatas, start=1)
    ]
    store(engine, aggregates)
    return aggregates


def store(engine, aggregates):
    """Make these the only aggregates in Nova's database."""
    with engine.begin() as connection:
        for table in (models.AggregateMetadata, models.Aggregate):
            connection.execute(sqlalchemy.delete(table))
        for aggregate in aggregates:
            connection.execute(
                sqlalchemy.insert(models.Aggregate).values(
                    id=aggregate.id, uuid=aggregate.uuid, name=aggregate.name
                )
            )
            for key, value in aggregate.metadata.items():
                connection.execute(
                    sqlalchemy.insert(models.AggregateMetadata).values(
                        aggregate_id=aggregate.id, key=key, value=value
                    )
                )


def forbidden_in_tree(traits):
    """Return what Nova's own query forbids for a request with these traits."""
    found = objects.AggregateList.get_non_matching_by_metadata_keys(
        nova_context.get_admin_context(),
        [f'trait:{trait}' for trait in traits],
        'trait:',
        value='required',
    )
    return {aggregate.uuid for aggregate in found}


@examples(100)
@given(clouds, asked, asked)
def test_the_in_tree_filter_forbids_the_same_aggregates(
    engine, metadatas, of_flavor, of_image
):
    aggregates = store_each(engine, metadatas)
    request = Request(
        Flavor(
            'f', extra_specs={f'trait_X:{t}': 'required' for t in of_flavor}
        ),
        Image('i', properties={f'trait:{t}': 'required' for t in of_image}),
    )
    constraints = IsolateAggregates()(request, AggregateIndex(aggregates))

    ours = {uuid for found in constraints for uuid in found.uuids}
    assert ours == forbidden_in_tree(of_flavor | of_image)


def test_every_small_cloud_is_isolated_the_same_way(engine):
    """Each way to lock three aggregates with two traits, and each request.

    What follows from it for hosts is in ``test_every_small_cloud.py`` of
    ``tests/unit``.
    """
    asked = 0
    some = [(), ('CUSTOM_X',), ('CUSTOM_Y',), ('CUSTOM_X', 'CUSTOM_Y')]
    with config_fixture.Config(nova.conf.CONF) as fixture:
        fixture.config(
            enable_isolated_aggregate_filtering=True, group='scheduler'
        )
        for tags in itertools.product(some, repeat=3):
            cloud = [
                Aggregate(
                    uuid=f'{number:08d}-0000-4000-8000-000000000000',
                    name=f'aggregate-{number}',
                    id=number,
                    metadata={
                        f'trait:{trait}': 'required' for trait in traits
                    },
                )
                for number, traits in enumerate(tags, start=1)
            ]
            store(engine, cloud)
            for traits in some:
                specs = {f'trait:{trait}': 'required' for trait in traits}
                request = Request(Flavor('f', extra_specs=specs))
                constraints = IsolateAggregates()(
                    request, AggregateIndex(cloud)
                )
                ours = {uuid for one in constraints for uuid in one.uuids}
                assert ours == left_by_in_tree(specs)
                asked += 1
    assert asked == 4**3 * 4


def left_by_in_tree(extra_specs):
    """What Nova's own filter leaves on a request spec."""
    spec = objects.RequestSpec(
        flavor=nova_flavors.small(extra_specs),
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
        is_bfv=False,
        requested_resources=[],
    )  # fmt: skip
    request_filter.isolate_aggregates(nova_context.get_admin_context(), spec)
    if 'requested_destination' not in spec:
        return set()
    return set(spec.requested_destination.forbidden_aggregates)
