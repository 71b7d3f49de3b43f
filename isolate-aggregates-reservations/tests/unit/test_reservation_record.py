# SPDX-License-Identifier: Apache-2.0
"""Records of reservations can be written and read; names are recognized."""

import dataclasses
import datetime
import json
import random

from hypothesis import given
from hypothesis import strategies as st
import pytest
from thorough import examples

from isolate_aggregates.request import Flavor
from isolate_aggregates_reservations import errors, names, record
from isolate_aggregates_reservations.blazar.record import BlazarRecord
from isolate_aggregates_reservations.reservation import (
    Event,
    PendingChange,
    Reservation,
    Shape,
)
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.compute.records import FlavorRecord

ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
CLASS = 'CUSTOM_RESERVATION_4D17D41A_830D_47B2_91C7_4F9FC0AE611E'
NOON = datetime.datetime(2027, 3, 1, 12, tzinfo=datetime.UTC)

times = st.datetimes(timezones=st.just(datetime.UTC))
counts = st.integers(0, 1000)

hosts = st.lists(st.text(), max_size=2).map(tuple)
reservations = st.builds(
    Reservation,
    id=st.uuids().map(str),
    project=st.text(min_size=1),
    start=times,
    end=st.none() | times,
    amount=counts,
    shape=st.builds(
        Shape,
        counts,
        counts,
        counts,
        counts,
        counts,
        st.dictionaries(st.text(), st.text(), max_size=3),
    ),
    affinity=st.sampled_from([None, True, False]),
    leaving=hosts,
    asked_by=st.text(),
    pages=counts,
    events=st.lists(
        st.builds(
            Event,
            times,
            st.text(),
            st.none() | times,
            counts,
            hosts,
            st.dictionaries(st.text(), counts, max_size=2),
            hosts,
            st.none() | times,
        ),
        max_size=3,
    ).map(tuple),
    pending=st.none()
    | st.builds(
        PendingChange,
        counts,
        st.none() | times,
        hosts,
    ),
).map(
    lambda reservation: dataclasses.replace(
        reservation,
        open=reservation.events[-1].open if reservation.events else {},
        down=reservation.events[-1].down if reservation.events else (),
    )
)


@examples(40)
@given(reservations)
def test_a_written_record_reads_back(reservation: Reservation) -> None:
    description = record.describe(reservation)
    assert record.is_ours(description)
    # Nova takes printable characters only.
    assert description.isprintable()
    assert record.parse(reservation.flavor, description) == reservation


def test_a_record_with_very_many_hosts_fits() -> None:
    chance = random.Random(3)
    names_of_hosts = tuple(
        f'{chance.randrange(10**9):09}.rack{chance.randrange(99)}.example.org'
        for _ in range(1000)
    )
    event = Event(
        *(NOON, '', None, 1, names_of_hosts),
        dict.fromkeys(names_of_hosts, 1),
        names_of_hosts,
        None,
    )
    reservation = Reservation(
        *(ID, 'p', NOON, None, 1, Shape(1, 1)),
        leaving=names_of_hosts,
        only_on=names_of_hosts,
        open=event.open,
        down=event.down,
        events=(event, event),
        incarnation='0000cafe',
    )
    description = record.describe(reservation)
    assert len(description) < 65_535
    assert record.is_ours(description)
    # By this a revision is known to belong to a reservation.
    assert '0000cafe' in description
    assert record.parse(reservation.flavor, description) == reservation
    page = record.describe_page(reservation.events)
    assert len(page) < 65_535
    past = record.parse_events(record.unpacked(page)['events'])
    assert past == reservation.events


def test_a_broken_packed_description_is_reported() -> None:
    flavor = Flavor(name=names.flavor(ID), id=ID)
    for packed in ('eJw=', 'x', '!'):
        description = json.dumps({'packed': packed})
        with pytest.raises(errors.ReservationError, match='broken'):
            record.parse(flavor, description)


def written(
    number: int, amount: int, incarnation: str = '0000cafe'
) -> FlavorRecord:
    """Return a revision of a record; 0 is the flavor of the reservation."""
    reservation = Reservation(
        ID, 'p', NOON, None, amount, Shape(2, 64), incarnation=incarnation
    )
    flavor = reservation.flavor
    if number:
        name = names.Revision(ID, incarnation, number).flavor_id
        flavor = Flavor(name=names.flavor(name), id=name, vcpus=1, ram=1)
    return FlavorRecord(flavor, record.describe(reservation))


@given(st.permutations([(0, 3), (2, 5), (9, 4), (10, 6)]))
def test_the_newest_revision_counts(revisions: list[tuple[int, int]]) -> None:
    records = record.read(written(*revision) for revision in revisions)
    reservation = records.reservations[ID]
    assert (reservation.amount, reservation.revision) == (6, 10)
    assert reservation.shape == Shape(2, 64)
    assert records.old_flavors == {
        ID: (f'{ID}.0000cafe.00000002', f'{ID}.0000cafe.00000009')
    }
    assert tuple(records.strays) == ()


def test_revisions_of_an_earlier_reservation_do_not_count() -> None:
    records = record.read([written(0, 3), written(5, 4, '0000beef')])
    assert records.reservations[ID].amount == 3
    assert records.old_flavors == {}
    assert tuple(records.strays) == (names.Revision(ID, '0000beef', 5),)


def test_revisions_without_a_reservation_are_strays() -> None:
    records = record.read([written(5, 4)])
    assert records.reservations == {}
    assert tuple(records.strays) == (names.Revision(ID, '0000cafe', 5),)


def test_a_broken_revision_is_reported_and_supersedes_nothing() -> None:
    broken = FlavorRecord(written(5, 4).flavor, '{')
    records = record.read([written(0, 3), written(4, 4), broken])
    assert records.reservations == {}
    assert 'broken' in str(records.problems[ID])
    assert records.old_flavors == {}


def test_a_record_whose_flavor_was_described_anew_is_not_lost() -> None:
    first = FlavorRecord(written(0, 3).flavor, "the VIP's")
    records = record.read([first, written(9, 4), written(10, 5)])
    assert f'flavor reservation:{ID}.0000cafe.00000010' in str(
        records.problems[ID]
    )
    # Its slots count, and what is left of it is not deleted.
    assert records.foreign == {ID: first.flavor}
    assert tuple(records.strays) == ()
    assert records.old_flavors == {}


def test_revisions_of_a_reservation_given_to_blazar_are_strays() -> None:
    description = BlazarRecord(ID, 'database').describe()
    first = FlavorRecord(written(0, 3).flavor, description)
    records = record.read([first, written(5, 4)])
    assert records.foreign == {ID: first.flavor}
    assert records.problems == {}
    assert tuple(records.strays) == (names.Revision(ID, '0000cafe', 5),)


def test_flavor_ids_sort_by_revision() -> None:
    ids = [names.Revision(ID, '0000cafe', n).flavor_id for n in (2, 10, 9)]
    assert sorted(ids) == [ids[0], ids[2], ids[1]]
    assert names.revision_of(ids[1]) == names.Revision(ID, '0000cafe', 10)
    assert names.revision_of(ID) is None


def test_times_are_written_in_utc() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    reservation = Reservation(
        ID, 'p', NOON.astimezone(zone), None, 1, Shape(1, 1)
    )
    document = json.loads(record.describe(reservation))
    assert document['start'] == '2027-03-01T12:00:00+00:00'


EVENT = {
    **{'at': '2027-03-01T12:00:00+00:00', 'end': None, 'amount': 1},
    **{'leaving': [], 'open': {}, 'down': [], 'boot_until': None},
}


@pytest.mark.parametrize(
    ('change', 'problem'),
    [
        ({'amount': -1}, 'is not a number of slots'),
        ({'amount': True}, 'is not a number of slots'),
        ({'affinity': 'yes'}, 'is not an affinity'),
        ({'start': 'soon'}, 'broken'),
        ({'end': '2027-03-01T12:00:00'}, 'has no time zone'),
        ({'start': '0001-01-01T00:00:00+01:00'}, 'broken'),
        ({'extra_specs': []}, 'broken'),
        ({'events': [{**EVENT, 'at': '2027-03-01T12:00:00'}]}, 'no time zone'),
        ({'events': [{**EVENT, 'amount': -1}]}, 'is not a number of slots'),
        ({'events': [{**EVENT, 'open': {'h1': '2'}}]}, 'is not a number of'),
        ({'isolate-aggregates-reservation': 2}, 'use the newer release'),
    ],
)
def test_a_broken_description_is_reported(
    change: dict[str, object], problem: str
) -> None:
    reservation = Reservation(ID, 'p', NOON, None, 1, Shape(1, 1))
    document = json.loads(record.describe(reservation)) | change
    with pytest.raises(errors.ReservationError, match=problem) as caught:
        record.parse(reservation.flavor, json.dumps(document))
    assert caught.value.reservation == ID


def test_a_description_that_is_not_json_is_reported() -> None:
    flavor = Flavor(name=names.flavor(ID), id=ID)
    with pytest.raises(errors.ReservationError, match='broken'):
        record.parse(flavor, '"isolate-aggregates-reservation"')


@pytest.mark.parametrize('description', [None, '', 'made by Blazar'])
def test_other_descriptions_are_not_ours(description: str | None) -> None:
    assert not record.is_ours(description)


def test_the_flavor_of_a_reservation_takes_a_slot() -> None:
    # Nor can the flavor that it is made like take none.
    shape = Shape(
        1,
        64,
        extra_specs={
            'hw:cpu_policy': 'shared',
            f'resources:{CLASS}': '0',
            'trait:CUSTOM_RESERVATION_HOST': 'forbidden',
        },
    )
    flavor = Reservation(ID, 'p', NOON, None, 1, shape).flavor
    assert flavor.name == f'reservation:{ID}'
    assert flavor.extra_specs == {
        'hw:cpu_policy': 'shared',
        f'resources:{CLASS}': '1',
        'trait:CUSTOM_RESERVATION_HOST': 'required',
    }


def test_the_later_end_counts_while_a_change_is_pending() -> None:
    later = NOON + datetime.timedelta(hours=1)

    def until(
        end: datetime.datetime | None, new_end: datetime.datetime | None
    ) -> datetime.datetime | None:
        reservation = Reservation(
            ID,
            'p',
            NOON,
            end,
            1,
            Shape(1, 1),
            pending=PendingChange(1, new_end),
        )
        return reservation.counted_until

    assert until(NOON, later) == later
    assert until(later, NOON) == later
    assert until(NOON, None) is None
    assert until(None, NOON) is None


def test_a_shape_can_be_taken_from_a_flavor() -> None:
    flavor = Flavor('m1', '1', 2, 512, 10, 5, 64, {'hw:numa_nodes': '1'})
    assert Shape.like(flavor) == Shape(
        2, 512, 10, 5, 64, {'hw:numa_nodes': '1'}
    )


@examples(20)
@given(st.uuids().map(str))
def test_a_resource_class_identifies_its_reservation(reservation: str) -> None:
    name = names.resource_class(reservation)
    assert names.reservation_of(name) == reservation


@pytest.mark.parametrize(
    'name',
    [
        'VCPU',
        'CUSTOM_RESERVATION_HOST',
        'CUSTOM_RESERVATION_4D17D41A830D47B291C74F9FC0AE611E',
        CLASS.lower(),
        f'X_{CLASS}',
    ],
)
def test_other_classes_identify_no_reservation(name: str) -> None:
    assert names.reservation_of(name) is None


def test_ids_are_normalized() -> None:
    assert names.reservation_id(ID.upper()) == ID
    assert names.reservation_id(ID.replace('-', '')) == ID
    with pytest.raises(tools_errors.InvalidRequest):
        names.reservation_id('../flavors')


def test_the_uuid_of_a_reservation_provider_never_changes() -> None:
    # Two commands that create the provider at once create the same one.
    root = '542df8ed-9be2-49b9-b4db-6d3183ff8ec8'
    assert names.provider('compute-1') == 'blazar_compute-1'
    assert names.provider_uuid(root) == (
        '47db37cf-2402-56b5-8091-68b4ccfefd80'
    )
