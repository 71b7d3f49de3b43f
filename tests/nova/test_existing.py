# SPDX-License-Identifier: Apache-2.0
"""What a server is moved with after a rebuild that nobody accepted."""

import contextlib
import datetime
import gc
import threading
import weakref

from cases import cases
from nova import objects
import nova_flavors
import pytest

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters import RequestFilter
from isolate_aggregates.filters.constraints import Forbid
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.isolate_tenants import IsolateTenants
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.filters.reservation_prefix import ReservationPrefix
from isolate_aggregates.nova import adapter, images, source
from isolate_aggregates.nova.adapter import Decider
from isolate_aggregates.rest.deadline import MOST_LATE

objects.register_all()

UUID = '00000000-0000-0000-0000-00000000000'
MINE, OTHER = f'{UUID}1', f'{UUID}2'
REBUILT = datetime.datetime(2030, 1, 1)
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
TENANT = Aggregate('tenant', 'tenant', {'filter_tenant_id': STRANGER})
INDEX = AggregateIndex([LEASE, SECOND, FOREIGN, LICENSED, TENANT])

RESERVATIONS = ReservationPrefix(('r:',), ('r:',))
REQUIRED_ONLY = ReservationPrefix(('r:',))


def keys_of(*aggregates):
    """Return what reads the keys of the only host."""
    keys = frozenset((a.uuid, key) for a in aggregates for key in a.metadata)

    def read(host, time):
        assert host == 'host1'
        return keys

    return read


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


def record(*keys, refused=False, host='host1', was_rebuilt=True, **specs):
    """Return what reads the record of a server."""
    server = objects.Instance(image_ref=MINE, flavor=flavor(**specs))

    def read(spec, cell):
        past = None
        if was_rebuilt:
            error = 'Error' if refused else None
            past = images.past_of(spec, server, host, REBUILT, error)
        return images.AcceptedImage(dict.fromkeys(keys, '1'), past)

    read.refused = refused
    return read


@contextlib.contextmanager
def deciding(read, keys=None, longest=FOREVER):
    """Run the block with a decider that reads as given."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapter, 'LONGEST', longest)
        patch.setattr(images, 'read', read)
        patch.setattr(source, 'keys_since', keys)
        yield Decider()


def decided(filters, record, on, spec=None):
    """Return what is required and forbidden when the server is moved."""
    names = {str(number): one for number, one in enumerate(filters)}
    spec = spec or request(OTHER if record.refused else MINE)
    with deciding(record, keys_of(*on)) as decider:
        destination = decider.decide(spec, INDEX, Pipeline(names)).destination
    if destination.refusals:
        return destination.refusals
    return (
        sorted(map(sorted, destination.required_aggregates)),
        sorted(destination.forbidden_aggregates),
    )


FREE = ([], ['foreign', 'lease', 'second'])
LOST = (
    'its last rebuild was refused, and Nova has lost which r: key its image '
    'named before; name the host to move it to, or rebuild it from an image '
    'that it may use'
)
IN_LEASE = ([['lease']], [])


@cases(
    ('record', 'on', 'expected'),
    {
        'same': (record('r:lease'), [LEASE], IN_LEASE),
        'key removed': (record(), [LEASE], IN_LEASE),
        'added': (record('r:lease', 'r:foreign'), [LEASE], IN_LEASE),
        'unknown': (record('r:nope'), [LEASE], IN_LEASE),
        'unknown, not in': (record('r:nope'), [], FREE),
        'foreign, not in': (record('r:foreign'), [], FREE),
        'own, not in': (record('r:lease'), [], IN_LEASE),
        'nothing': (record(), [], FREE),
        'foreign, but in': (record('r:foreign'), [FOREIGN], FREE),
        'refused': (record('r:foreign', refused=True), [LEASE], IN_LEASE),
        'own refused': (record('r:lease', refused=True), [], IN_LEASE),
        'refused, in two': (
            record(refused=True),
            [LEASE, SECOND],
            ([['lease'], ['second']], []),
        ),
    },
)
def test_a_server_is_held_in_by_the_reservation_of_its_host(
    record, on, expected
):
    assert decided([RESERVATIONS], record, on) == expected


def test_what_was_never_rebuilt_is_moved_with_its_record():
    never = record('r:nope', was_rebuilt=False)
    [reason] = decided([RESERVATIONS], never, [LEASE])
    assert reason.startswith('no aggregate has the metadata key r:nope')


@pytest.mark.parametrize(
    ('record', 'on', 'expected'),
    [
        (record(refused=True), [LEASE], ([['lease']], [])),
        (record(refused=True), [], [LOST]),
        # A rebuild from another image without a key is accepted, too.
        (record(), [LEASE], ([], [])),
        (record('r:nope'), [], ([], [])),
    ],
)
def test_a_key_that_keeps_nobody_out_holds_a_server_in(record, on, expected):
    assert decided([REQUIRED_ONLY], record, on) == expected


def test_what_the_flavor_opens_is_not_derived_from_the_host():
    opened = record(refused=True, **{'r__lease': '1'})
    by_flavor = request(OTHER, extra_specs={'r__lease': '1'})
    assert decided([RESERVATIONS], opened, [LEASE], by_flavor) == IN_LEASE
    # A resize to another flavor takes the key away.
    assert decided([RESERVATIONS], opened, [LEASE], request(OTHER)) == FREE


def test_images_that_count_for_nothing_hold_nobody():
    without = ReservationPrefix(('r:',), ('r:',), key_sources=())
    assert decided([without], record(refused=True), [LEASE]) == FREE
    flavors = IsolateAggregates(trait_sources=('flavor',))
    assert decided([flavors], record(refused=True), [LICENSED]) == (
        [],
        ['licensed'],
    )


@cases(
    ('record', 'spec', 'on', 'traits'),
    {
        'a plain image was refused': (
            record(refused=True), request(OTHER), [LICENSED], []),
        'an image with another trait was refused': (
            record(refused=True), request(OTHER, ['CUSTOM_B']), [], []),
        'and the server was rebuilt from its image': (
            record(), request(OTHER, ['CUSTOM_B']), [], []),
        'the flavor has the trait': (
            record(refused=True, trait__CUSTOM_A='required'),
            request(OTHER), [LICENSED], []),
        'the image of the request was accepted': (
            record(), request(MINE, ['CUSTOM_B']), [LICENSED], ['CUSTOM_B']),
    },
)  # fmt: skip
def test_the_traits_of_a_refused_image_are_replaced(record, spec, on, traits):
    # Nova may run the request filters again.
    for _ in range(2):
        decided([IsolateAggregates()], record, on, spec)
        assert spec.image.properties.traits_required == traits


def test_a_refused_image_remains_refused_if_the_filters_run_again():
    spec = request(OTHER)
    for _ in range(2):
        assert decided(
            [REQUIRED_ONLY], record(refused=True), [LEASE], spec
        ) == ([['lease']], [])


def test_the_owner_of_a_refused_image_counts_for_nothing():
    class OfOwner(License):
        IMAGE_PROPERTIES = ()

        def __call__(self, request, aggregates):
            owners.append(request.image.owner)
            return ()

    owners = []
    spec = request(OTHER)
    spec.image.owner = STRANGER
    decided([OfOwner()], record(refused=True), [], spec)
    assert owners == ['']


def test_a_licensed_server_is_held_on_licensed_hosts():
    for on in ([LICENSED], []):
        assert decided([IsolateAggregates()], record(refused=True), on) == (
            [],
            ['licensed'],
        )


def test_an_operator_who_names_the_host_decides():
    spec = request(OTHER)
    spec.requested_destination.host = 'host2'
    only_others = [], ['foreign']
    for keys, on in (((), []), (('r:lease',), []), ((), [LEASE])):
        refused = record(*keys, refused=True)
        assert decided([RESERVATIONS], refused, on, spec) == only_others
    # Without a refused rebuild nothing changes.
    spec = request()
    spec.requested_destination.host = 'host2'
    assert decided([RESERVATIONS], record('r:lease'), [], spec) == IN_LEASE


def test_nothing_is_lost_if_the_project_owns_nothing():
    spec = request(OTHER)
    spec.project_id = 'q' * 32
    assert (
        decided([RESERVATIONS], record('r:x', refused=True), [], spec) == FREE
    )


def test_an_objection_to_the_project_is_not_the_fault_of_the_image():
    """The image stays as it is, although the host is closed by now."""
    filters = [License(), IsolateTenants()]
    assert decided(filters, record('license'), [TENANT]) == (
        [],
        ['lease', 'tenant'],
    )


class License(RequestFilter):
    """A filter of another package; nobody knows what its locks require."""

    IMAGE_PROPERTIES = ('license',)

    def __call__(self, request, aggregates):
        if 'license' in request.image_properties:
            yield Forbid((LEASE,), 'there is no license')


def test_what_cannot_be_derived_from_the_host_refuses_the_move():
    with pytest.raises(exception.RequestRefused, match='license are not av'):
        decided([License()], record(refused=True), [])
    assert decided([License()], record(), [LEASE]) == ([], [])


def test_a_refused_server_whose_host_is_unknown_is_not_moved():
    with pytest.raises(exception.RequestRefused, match='rebuild the server'):
        decided([License()], record(refused=True, host=None), [])
    lost = record(refused=True, host=None)
    assert decided([RESERVATIONS], lost, []) == [LOST]


def test_an_offloaded_server_without_a_host_is_treated_like_a_new_one():
    shelved = record('r:lease', host=None)
    assert decided([RESERVATIONS], shelved, []) == IN_LEASE


@pytest.mark.parametrize('kind', ['move', 'boot'])
def test_a_database_that_hangs_refuses_the_request_in_time(kind):
    may_answer = threading.Event()
    spec = request()
    if kind == 'boot':
        spec.requested_destination = None

    def hanging(spec, cell):
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


def test_a_cell_that_hangs_does_not_hold_up_the_others():
    may_answer = threading.Event()
    hanging = objects.CellMapping(uuid=f'{UUID}3')

    def read(spec, cell):
        if spec.requested_destination.cell.uuid == hanging.uuid:
            assert may_answer.wait(FOREVER)
        return record('r:lease')(spec, cell)

    def moved(decider, cell):
        spec = request()
        spec.requested_destination.cell = cell
        return decider.decide(
            spec, INDEX, Pipeline({'one': RESERVATIONS})
        ).destination

    try:
        with deciding(read, keys_of(LEASE), longest=0.1) as decider:
            for _ in range(MOST_LATE + 1):
                with pytest.raises(exception.ServiceUnreachable):
                    moved(decider, hanging)
            adapter.LONGEST = FOREVER
            healthy = moved(decider, objects.CellMapping(uuid=f'{UUID}4'))
        assert healthy.required_aggregates == [{'lease'}]
    finally:
        may_answer.set()


def test_nothing_of_a_request_is_kept():
    def read(spec, cell):
        return record('r:nope', refused=True)(spec, cell)

    pipeline = Pipeline({'one': RESERVATIONS, 'two': IsolateAggregates()})
    references = []
    for _ in range(3):
        spec = request(OTHER, ['CUSTOM_A'])
        references.append(weakref.ref(spec))
        with deciding(read, keys_of(LEASE)) as decider:
            found = decider.decide(spec, INDEX, pipeline)
        assert found.destination.yielded
    del spec
    gc.collect()
    assert [reference() for reference in references] == [None] * 3
