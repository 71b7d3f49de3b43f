# SPDX-License-Identifier: Apache-2.0
"""What a server is moved with that has a record of its placement."""

import contextlib
import gc
import threading
import weakref

from nova import objects
import nova_flavors
import pytest

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters import RequestFilter
from isolate_aggregates.filters.constraints import Forbid
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.filters.reservation_prefix import ReservationPrefix
from isolate_aggregates.nova import adapter, images, placed
from isolate_aggregates.nova.adapter import Decider
from isolate_aggregates.request.placed import Placed, encode, hint
from isolate_aggregates.rest.deadline import MOST_LATE, Deadline

objects.register_all()

UUID = '00000000-0000-0000-0000-00000000000'
MINE, OTHER = f'{UUID}1', f'{UUID}2'
PROJECT, STRANGER = 'p' * 32, 's' * 32
# Long enough to fail the test; no test waits for it.
FOREVER = 30

LEASE = Aggregate('lease', 'lease', {'r:lease': '1', 'blazar:owner': PROJECT})
SECOND = Aggregate(
    'second', 'second', {'r:second': '1', 'blazar:owner': PROJECT}
)
FOREIGN = Aggregate(
    'foreign', 'foreign', {'r:foreign': '1', 'blazar:owner': STRANGER}
)
LICENSED = Aggregate('licensed', 'licensed', {'trait:CUSTOM_A': 'required'})
INDEX = AggregateIndex([LEASE, SECOND, FOREIGN, LICENSED])

RESERVATIONS = ReservationPrefix(('r:',), ('r:',))


def flavor(**extra_specs):
    return nova_flavors.small(
        {k.replace('__', ':'): v for k, v in extra_specs.items()}
    )


def request(image_id=MINE, traits=(), extra_specs=None):
    properties = objects.ImageMetaProps.from_dict(
        {f'trait:{trait}': 'required' for trait in traits}
    )
    return objects.RequestSpec(
        instance_uuid=f'{UUID}9',
        flavor=flavor(**extra_specs or {}),
        project_id=PROJECT,
        image=objects.ImageMeta(id=image_id, properties=properties),
        requested_resources=None,
        is_bfv=False,
        scheduler_hints={},
        requested_destination=objects.Destination(cell=objects.CellMapping()),
    )


def record(*keys, image=MINE, traits=()):
    """Return what reads the record of a server."""

    def read(spec, cell, all_recorded):
        return images.AcceptedImage(dict.fromkeys(keys, '1'), image, traits)

    return read


@contextlib.contextmanager
def deciding(read, longest=FOREVER):
    """Run the block with a decider that reads as given."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapter, 'LONGEST', longest)
        patch.setattr(images, 'read', read)
        yield Decider(bool)


def decided(filters, record, spec=None):
    """Return what is required and forbidden when the server is moved."""
    names = {str(number): one for number, one in enumerate(filters)}
    spec = spec or request()
    with deciding(record) as decider:
        destination = decider.decide(spec, INDEX, Pipeline(names)).destination
    if destination.refusals:
        return destination.refusals
    return (
        sorted(map(sorted, destination.required_aggregates)),
        sorted(destination.forbidden_aggregates),
    )


def test_the_keys_of_the_record_count():
    held = decided([RESERVATIONS], record('r:lease'), request(OTHER))
    assert held == ([['lease']], [])
    free = ([], ['foreign', 'lease', 'second'])
    assert decided([RESERVATIONS], record(), request(OTHER)) == free


@pytest.mark.parametrize('image', [MINE, OTHER])
@pytest.mark.parametrize('named', [[], ['CUSTOM_B'], ['CUSTOM_A']])
def test_the_traits_of_the_record_replace_those_of_the_request(image, named):
    spec = request(image, named)
    # Nova may run the request filters again.
    for _ in range(2):
        licensed = record(traits=('CUSTOM_A',))
        assert decided([IsolateAggregates()], licensed, spec) == ([], [])
        assert spec.image.properties.traits_required == ['CUSTOM_A']


def test_without_a_record_the_traits_of_the_request_count():
    never = record(traits=None)
    spec = request(traits=['CUSTOM_A'])
    assert decided([IsolateAggregates()], never, spec) == ([], [])
    assert decided([IsolateAggregates()], never) == ([], ['licensed'])


def test_a_refused_image_is_not_shown_to_filters():
    class OfOwner(License):
        IMAGE_PROPERTIES = ()

        def __call__(self, request, aggregates):
            seen.append((request.image.id, request.image.owner))
            return ()

    seen = []
    for image in (OTHER, MINE):
        spec = request(image)
        spec.image.owner = STRANGER
        decided([OfOwner()], record(), spec)
    assert seen == [(MINE, ''), (MINE, STRANGER)]


def test_hints_with_records_are_not_shown_to_filters():
    class OfHints(License):
        def __call__(self, request, aggregates):
            seen.append({*request.scheduler_hints})
            return ()

    seen = []
    spec = request()
    spec.scheduler_hints = {'group': ['a'], hint(f'{UUID}9'): ['b']}
    spec.scheduler_hints[hint(f'{UUID}9')] = encode(Placed(MINE))
    decided([OfHints()], record(), spec)
    assert seen == [{'group'}]


class License(RequestFilter):
    """A filter of another package; nobody knows what its locks require."""

    IMAGE_PROPERTIES = ('license',)

    def __call__(self, request, aggregates):
        if 'license' in request.image_properties:
            yield Forbid((LEASE,), 'there is no license')


def test_a_needed_property_that_is_not_recorded_refuses_the_move():
    def read(spec, cell, all_recorded):
        return images.AcceptedImage(None, MINE, ('CUSTOM_A',))

    with pytest.raises(exception.RequestRefused, match='license are not av'):
        decided([License()], read)
    # Locks stay closed, but for those that the traits open.
    assert decided([RESERVATIONS, IsolateAggregates()], read) == (
        [],
        ['foreign', 'lease', 'second'],
    )


@pytest.mark.parametrize(
    ('filters', 'traits', 'former', 'expected'),
    [
        ([RESERVATIONS], (), None, Placed(MINE, (), {'r:lease': '1'})),
        (
            [IsolateAggregates()],
            ('CUSTOM_A',),
            None,
            Placed(MINE, ('CUSTOM_A',), {'r:lease': '1'}),
        ),
        # Nothing counts, and nothing has to be replaced.
        ([IsolateAggregates()], (), None, None),
        (
            [IsolateAggregates()],
            (),
            Placed(OTHER),
            Placed(MINE, (), {'r:lease': '1'}),
        ),
    ],
)
def test_what_counts_is_remembered_for_the_record(
    filters, traits, former, expected
):
    spec = request()
    if former:
        spec.scheduler_hints = {hint(f'{UUID}9'): encode(former)}
    decided(filters, record('r:lease', traits=traits), spec)
    assert placed.remembered(spec) == expected


def test_a_boot_that_reads_no_properties_records_only_traits():
    spec = request(traits=['CUSTOM_A'])
    spec.requested_destination = None
    decided([IsolateAggregates()], record('r:lease'), spec)
    assert placed.remembered(spec) == Placed(MINE, ('CUSTOM_A',))


@pytest.mark.parametrize('kind', ['move', 'boot'])
def test_a_database_that_hangs_refuses_the_request_in_time(kind):
    may_answer = threading.Event()
    spec = request()
    if kind == 'boot':
        spec.requested_destination = None

    def hanging(spec, cell, all_recorded):
        assert may_answer.wait(FOREVER)

    try:
        with (
            deciding(hanging, longest=0.1) as decider,
            pytest.raises(
                exception.ServiceUnreachable,
                match=r"Nova's database has not answered completely within 0",
            ),
        ):
            decider.decide(spec, INDEX, Pipeline({'one': RESERVATIONS}))
    finally:
        may_answer.set()


def test_a_database_that_hangs_records_nothing_after_the_refusal(monkeypatch):
    may_answer, has_ended = threading.Event(), threading.Event()
    stored = {}

    def hanging(uuid, change):
        try:
            assert may_answer.wait(FOREVER)
            return change(stored)
        finally:
            has_ended.set()

    monkeypatch.setattr(placed, '_edit', hanging)
    monkeypatch.setattr(placed, 'LONGEST', 0.1)
    monkeypatch.setattr(
        placed, '_deadline', Deadline("Nova's API database", 0.1)
    )
    spec = request()
    placed.remember(spec, Placed(MINE))
    try:
        with pytest.raises(
            exception.ServiceUnreachable,
            match=r"Nova's API database has not answered completely within 0",
        ):
            placed.record(spec, f'{UUID}9')
    finally:
        may_answer.set()
    assert has_ended.wait(FOREVER)
    assert not stored.get('scheduler_hints')


def test_a_cell_that_hangs_does_not_hold_up_the_others():
    may_answer = threading.Event()
    hanging = objects.CellMapping(uuid=f'{UUID}3')

    def read(spec, cell, all_recorded):
        if spec.requested_destination.cell.uuid == hanging.uuid:
            assert may_answer.wait(FOREVER)
        return record('r:lease')(spec, cell, all_recorded)

    def moved(decider, cell):
        spec = request()
        spec.requested_destination.cell = cell
        return decider.decide(
            spec, INDEX, Pipeline({'one': RESERVATIONS})
        ).destination

    try:
        with deciding(read, longest=0.1) as decider:
            for _ in range(MOST_LATE + 1):
                with pytest.raises(exception.ServiceUnreachable):
                    moved(decider, hanging)
            adapter.LONGEST = FOREVER
            healthy = moved(decider, objects.CellMapping(uuid=f'{UUID}4'))
        assert healthy.required_aggregates == [{'lease'}]
    finally:
        may_answer.set()


def test_nothing_of_a_request_is_kept():
    pipeline = Pipeline({'one': RESERVATIONS, 'two': IsolateAggregates()})
    references = []
    for _ in range(3):
        spec = request(OTHER, ['CUSTOM_A'])
        references.append(weakref.ref(spec))
        with deciding(record('r:nope', traits=('CUSTOM_A',))) as decider:
            found = decider.decide(spec, INDEX, pipeline)
        assert found.destination.yielded
    del spec
    gc.collect()
    assert [reference() for reference in references] == [None] * 3
