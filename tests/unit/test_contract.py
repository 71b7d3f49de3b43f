# SPDX-License-Identifier: Apache-2.0
"""What request filters declare is checked when they are loaded, and kept."""

from hypothesis import given
from hypothesis import strategies as st
import pytest

from isolate_aggregates import exception, filter_sets
from isolate_aggregates.aggregates import Aggregate, AggregateIndex, Lock
from isolate_aggregates.filters.blazar_reservation import BlazarReservation
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.filters.contract import (
    PROJECT_ID,
    RequestFilter,
)
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.isolate_tenants import IsolateTenants
from isolate_aggregates.filters.pipeline import LoadedFilter
from isolate_aggregates.filters.reservation_prefix import ReservationPrefix
from isolate_aggregates.request import Flavor
from isolate_aggregates.request.properties import matches
from isolate_aggregates.testing import PlainRequest

A = Aggregate('uuid-a', 'a')


class Plain(RequestFilter):
    """A filter that declares nothing."""

    def __call__(self, request, aggregates):
        return ()


class Locking(Plain):
    def locks(self, aggregates):
        yield Lock('mine:', 'mine:1', (A,))


def test_a_filter_need_not_declare_anything():
    plain = LoadedFilter('plain', Plain())
    assert plain.image_properties.patterns == frozenset()
    assert plain.metadata is None
    assert not filter_sets.reads(plain, 'mine:1')
    assert plain.locks(AggregateIndex()) is None


def test_declarations_of_a_filter_are_known():
    class Declaring(Locking):
        IMAGE_PROPERTIES = ('os_distro', 'r:*')
        IMAGE_KEYS = ('r:*',)
        METADATA = ('mine:*',)

    found = LoadedFilter('mine', Declaring())
    assert found.image_properties.patterns == {'os_distro', 'r:*'}
    assert found.image_properties.needed == {'os_distro'}
    assert found.metadata == {'mine:*'}
    assert filter_sets.reads(found, 'mine:1')
    assert not filter_sets.reads(found, 'other:1')
    assert found.locks(AggregateIndex()) == (Lock('mine:', 'mine:1', (A,)),)


@pytest.mark.parametrize(
    'member',
    [
        'IMAGE_PROPERTIES',
        'IMAGE_KEYS',
        'METADATA',
        'REPLACES',
    ],
)
@pytest.mark.parametrize('wrong', ['os_distro', (1,), ('',)])
def test_invalid_names_are_refused_with_the_name_of_the_filter(member, wrong):
    broken = type('Broken', (Plain,), {member: wrong})()
    with pytest.raises(exception.FilterError) as caught:
        LoadedFilter('mine', broken)
    assert caught.value.name == 'mine'
    assert member in caught.value.problem


def test_locks_of_the_wrong_shape_are_refused():
    class Broken(Plain):
        def locks(self):
            return ()

    with pytest.raises(exception.FilterError, match=r'has locks\(\), which'):
        LoadedFilter('mine', Broken())


def test_locks_that_fail_are_an_error_of_the_filter():
    class Broken(Plain):
        def locks(self, aggregates):
            raise KeyError('oops')

    with pytest.raises(exception.FilterError) as caught:
        LoadedFilter('mine', Broken()).locks(AggregateIndex())
    assert caught.value.name == 'mine'


# No filter reads metadata that it does not declare.

PROJECT = '0f3c' * 8
FILTERS = [
    IsolateAggregates(),
    IsolateTenants(),
    BlazarReservation(),
    ReservationPrefix(('r:', 'l:'), ('r:',), ('image', 'hint')),
]
KEYS = [
    'trait:A', 'Trait:A', 'trait:', 'filter_tenant_id', 'filter_tenant_id_1',
    'r:1', 'R:1', 'l:1', 'blazar:owner', 'availability_zone', PROJECT, 'color',
]  # fmt: skip
metadata = st.dictionaries(
    st.sampled_from(KEYS),
    st.sampled_from(['required', PROJECT, 'blazar_1', 'true']),
)


def is_declared(request_filter, key):
    patterns = request_filter.METADATA
    return (PROJECT_ID in patterns and key == PROJECT) or any(
        # What a database may take for a prefix locks too.
        matches(pattern.lower(), key.lower())
        for pattern in patterns
    )


def concluded(request_filter, request, held):
    aggregates = [
        Aggregate(
            f'uuid-{number}',
            f'a{number}',
            tags,
            availability_zone=tags.get('availability_zone'),
        )
        for number, tags in enumerate(held)
    ]
    destination = Destination()
    for constraint in request_filter(request, AggregateIndex(aggregates)):
        destination.add(constraint, 'it')
    return (
        destination.forbidden_aggregates,
        set(destination.required_aggregates),
        destination.refusals,
    )


@pytest.mark.parametrize(
    'request_filter', FILTERS, ids=[type(one).__name__ for one in FILTERS]
)
@given(
    held=st.lists(metadata, max_size=4),
    specs=st.dictionaries(
        st.sampled_from(['r:1', 'l:1', 'trait:A']), st.just('required')
    ),
    hint=st.sampled_from([{}, {'reservation': ('a0',)}, {'r:1': ('x',)}]),
)
def test_a_filter_reads_only_declared_metadata(
    request_filter, held, specs, hint
):
    request = PlainRequest(
        Flavor('f', extra_specs=specs),
        project_id=PROJECT,
        scheduler_hints=hint,
    )
    declared = [
        {k: v for k, v in tags.items() if is_declared(request_filter, k)}
        for tags in held
    ]
    everything = concluded(request_filter, request, held)
    assert concluded(request_filter, request, declared) == everything
