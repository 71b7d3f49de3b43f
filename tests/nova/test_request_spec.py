# SPDX-License-Identifier: Apache-2.0
"""Our filter changes Nova's request spec like the in-tree filter."""

import copy

from hypothesis import given
from hypothesis import strategies as st
from nova import context as nova_context
from nova import objects
import nova.conf
from nova.scheduler import request_filter
import nova_flavors
from oslo_config import fixture as config_fixture
import pytest
import test_in_tree
from thorough import examples
import uninstalling

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.nova import registration

engine = test_in_tree.engine

# A trait that Nova derives from settings, and that isolates hosts.
SECURE_BOOT = 'COMPUTE_SECURITY_UEFI_SECURE_BOOT'
TRAITS = [*test_in_tree.TRAITS, SECURE_BOOT]

locks = st.dictionaries(
    st.sampled_from([f'trait:{trait}' for trait in TRAITS])
    | test_in_tree.keys,
    test_in_tree.values,
    max_size=3,
)
clouds = st.lists(locks, max_size=8)
asked = st.sets(st.sampled_from(TRAITS), max_size=4)
UNSET = 'unset'
destinations = st.sampled_from([None, UNSET]) | st.fixed_dictionaries(
    {},
    optional={
        'host': st.just('host1'),
        'aggregates': st.lists(st.sampled_from(['r1', 'r1,r2']), max_size=2),
        'forbidden_aggregates': st.sets(st.sampled_from(['f1', 'f2'])),
    },
)


@st.composite
def request_specs(draw):
    """Return a function that makes a request spec, equal each time."""
    group = st.sampled_from(['', '1', '_PORT'])
    extra_specs = {
        f'trait{draw(group)}:{trait}': draw(
            st.sampled_from(['required', 'required', 'forbidden'])
        )
        for trait in draw(asked)
    }
    if draw(st.booleans()):
        extra_specs['os:secure_boot'] = 'required'
    properties = {f'trait:{trait}': 'required' for trait in draw(asked)}
    of_ports = draw(asked)
    has_image = draw(st.booleans())
    destination = draw(destinations)

    def make():
        spec = objects.RequestSpec.from_components(
            nova_context.get_admin_context(),
            '7b7e6a64-4e59-4d1a-9c0c-1f9c1e8f7d11',
            image={'properties': properties} if has_image else None,
            flavor=nova_flavors.small(dict(extra_specs)),
            numa_topology=None,
            pci_requests=None,
            filter_properties={
                'requested_destination': objects.Destination(
                    **copy.deepcopy(destination)
                )
                if isinstance(destination, dict)
                else None
            },
            instance_group=None,
            availability_zone=None,
            port_resource_requests=[
                objects.RequestGroup(
                    requester_id='port', required_traits=set(of_ports)
                )
            ]
            if of_ports
            else [],
        )
        if destination == UNSET:
            # As read from the database, which does not have it.
            del spec._obj_requested_destination
        return spec

    return make


@pytest.fixture(scope='module')
def isolate_aggregates(engine):
    """Our filter as Nova calls it, reading Nova's database."""
    conf = config_fixture.Config(nova.conf.CONF)
    conf.setUp()
    ia_conf.register_opts(conf.conf)
    conf.config(enable_isolated_aggregate_filtering=True, group='scheduler')
    conf.config(
        request_filters=['isolate_aggregates'],
        aggregate_source='nova',
        group=ia_conf.GROUP,
    )
    yield registration.install()
    uninstalling.uninstall()
    conf.cleanUp()


@examples(60)
@given(clouds, request_specs())
def test_filters_leave_the_request_spec_unchanged(
    engine, isolate_aggregates, metadatas, make_spec
):
    test_in_tree.store_each(engine, metadatas)
    context = nova_context.get_admin_context()
    ours, theirs = make_spec(), make_spec()

    assert isolate_aggregates(context, ours) is True
    assert isolate_aggregates.finish(context, ours) is True
    assert request_filter.isolate_aggregates(context, theirs) is True

    assert in_any_order(ours.obj_to_primitive()) == in_any_order(
        theirs.obj_to_primitive()
    )


def in_any_order(value):
    """Return a value with lists sorted, as sets have no order."""
    if isinstance(value, dict):
        return {key: in_any_order(held) for key, held in value.items()}
    if isinstance(value, (list, tuple)):
        return sorted(map(in_any_order, value), key=repr)
    return value
