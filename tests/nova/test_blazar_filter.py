# SPDX-License-Identifier: Apache-2.0
"""Our blazar_reservation passes the same hosts as Blazar's filter.

The peer is the real ``BlazarFilter.host_passes`` of blazar-nova.
"""

from types import SimpleNamespace

from blazarnova.scheduler.filters import blazar_filter
from hypothesis import given
from hypothesis import strategies as st
from nova import objects
from oslo_config import cfg
import pytest
from thorough import examples

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.blazar_reservation import BlazarReservation
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.request import Request

PROJECTS = ['p1', 'p2']
NAMES = ['freepool', 'spot', 'r1', 'r2', 'r3']
ZONES = [None, 'nova', 'blazar_r', 'blazar:r', 'BLAZAR_r']

metadatas = st.fixed_dictionaries(
    {},
    optional={
        'blazar:owner': st.sampled_from(PROJECTS),
        'p1': st.sampled_from(['blazar:tenant', '']),
        'p2': st.just('blazar:tenant'),
    },
)
clouds = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(ZONES), metadatas),
    max_size=5,
    unique_by=lambda one: one[0],
).map(
    lambda found: [
        Aggregate(
            uuid=f'uuid-{name}',
            name=name,
            metadata=metadata,
            availability_zone=zone,
        )
        for name, zone, metadata in found
    ]
)
hints = st.none() | st.lists(
    st.sampled_from([*NAMES, 'unknown']), min_size=1, max_size=2, unique=True
)
flavors = st.fixed_dictionaries(
    {},
    optional={
        'aggregate_instance_extra_specs:reservation': st.just('r1'),
        'blazar:preemptible': st.sampled_from(['true', 'false', 'yes']),
    },
)


@pytest.fixture(scope='module', autouse=True)
def nova_objects():
    objects.register_all()
    cfg.CONF([], default_config_files=[], project='nova')


def passes_ours(request_filter, request, aggregates, host):
    """Whether Placement would offer a host in these aggregates."""
    destination = Destination()
    for constraint in request_filter(request, AggregateIndex(aggregates)):
        destination.add(constraint, 'blazar_reservation')
    held = {aggregate.uuid for aggregate in host}
    return (
        not destination.refusals
        and not held & destination.forbidden_aggregates
        and all(held & choice for choice in destination.required_aggregates)
    )


@examples(300)
@given(
    clouds,
    st.sets(st.integers(0, 4)),
    hints,
    flavors,
    st.sampled_from(PROJECTS),
    st.booleans(),
    st.sampled_from(['freepool', 'spot']),
    st.sampled_from(['blazar_', 'n', '']),
)
def test_hosts_pass_as_with_blazars_own_filter(
    aggregates,
    places,
    hint,
    extra_specs,
    project,
    allowed,
    preemptible,
    zone_prefix,
):
    """Except for hosts in two reservations of one hint with different owners.

    Nova allows no host in two availability zones, so there are none.
    """
    host = [a for number, a in enumerate(aggregates) if number in places]
    named = [a for a in host if hint and a.name in hint]
    if len(named) > 1:
        host.remove(named[0])
    group = 'blazar:physical:host'
    cfg.CONF.set_override('allow_preemptibles', allowed, group)
    cfg.CONF.set_override('preemptible_aggregate', preemptible, group)
    cfg.CONF.set_override('blazar_az_prefix', zone_prefix, group)
    theirs = blazar_filter.BlazarFilter().host_passes(
        SimpleNamespace(aggregates=host),
        objects.RequestSpec(
            project_id=project,
            flavor=objects.Flavor(extra_specs=extra_specs),
            scheduler_hints={'reservation': hint} if hint else {},
        ),
    )
    ours = passes_ours(
        BlazarReservation(
            allow_preemptibles=allowed,
            preemptible_aggregate=preemptible,
            zone_prefix=zone_prefix,
        ),
        Request(
            Flavor('f', extra_specs=extra_specs),
            project_id=project,
            scheduler_hints={'reservation': tuple(hint)} if hint else {},
        ),
        aggregates,
        host,
    )
    assert ours == theirs
