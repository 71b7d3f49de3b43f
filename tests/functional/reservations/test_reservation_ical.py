# SPDX-License-Identifier: Apache-2.0
"""``reservation calendar --output``, read back as calendar programs do."""

import datetime
import sys

from agreement import agreed
import icalendar
import pytest
from reservation_world import NOW, PROJECT

from isolate_aggregates import reservations
from isolate_aggregates.reservations import commands

ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
LATER = '5e28e52b-941e-48c3-a2d8-50afd1bf722f'
CREATE = ('create', '--vcpus', '4', '--ram', '1024', '--project')
MONTH = (
    'calendar',
    '--start',
    '2127-03-01T00:00Z',
    '--end',
    '30d',
    '--output',
)


def utc(day, hour=0):
    return datetime.datetime(2127, 3, day, hour, tzinfo=datetime.UTC)


@pytest.fixture
def command(two_hosts, operated, run):
    """Run a command for reservations that must not fail."""

    def run_it(*arguments):
        result = run(*agreed(('reservation', *arguments)))
        assert (result.code, result.err) == (0, '')
        return result.out

    return run_it


@pytest.fixture
def reserved(world, command):
    when = ('--start', '2127-03-01T08:00Z', '--end', '2h')
    command(*CREATE, PROJECT, '--id', ID, '--amount', '3', *when)
    odd = reservations.new(
        'p,q;r', 1, reservations.Shape(4, 1024), utc(9), reservation_id=LATER
    )
    reservations.create(world.store, odd, NOW)
    over = ('--start', '2127-02-01T00:00Z', '--end', '2127-03-01T00:00Z')
    command(*CREATE, PROJECT, *over)


def events(written):
    """Return the events of a calendar by their UIDs."""
    parsed = icalendar.Calendar.from_ical(written)
    assert parsed['version'] == '2.0'
    found = parsed.walk('VEVENT')
    assert len(found) == len({str(event['uid']) for event in found})
    return {str(event['uid']): event for event in found}


@pytest.mark.usefixtures('reserved')
def test_each_reservation_of_the_time_is_an_event(command):
    entries = events(command(*MONTH, '-'))
    assert set(entries) == {ID, LATER}
    one, later = entries[ID], entries[LATER]
    assert (one.decoded('dtstart'), one.decoded('dtend')) == (
        utc(1, 8),
        utc(1, 10),
    )
    assert one['summary'] == f'3 slots for project {PROJECT}'
    assert one['location'] == 'h1, h2'
    assert one['description'].splitlines() == [
        f'Project: {PROJECT}',
        f'Flavor: reservation:{ID}',
        'State: planned',
        'h1: 2 slots',
        'h2: 1 slot',
    ]
    # It has no end, but an event must have one.
    assert (later.decoded('dtstart'), later.decoded('dtend')) == (
        utc(9),
        utc(31),
    )
    assert later['description'].endswith('It never ends.')
    assert later['categories'].cats == ['p,q;r']


@pytest.mark.usefixtures('reserved')
def test_a_change_is_the_same_event_and_newer(command, tmp_path):
    path = tmp_path / 'march.ics'
    assert command(*MONTH, str(path)) == f'Wrote {path}.\n'
    before = events(path.read_bytes())[ID]
    command('update', ID, '--end', '3h')
    command(*MONTH, str(path))
    after = events(path.read_bytes())[ID]
    assert after.decoded('dtend') == utc(1, 11)
    assert after['sequence'] > before['sequence']


def refusal(run, *arguments):
    result = run('reservation', *arguments)
    assert (result.code, result.out) == (1, '')
    return result.err


@pytest.mark.usefixtures('reserved')
def test_an_unreadable_reservation_is_not_omitted(run, world, tmp_path):
    flavor = world.nova.flavors[ID]
    flavor['description'] = flavor['description'].replace('"amount"', '')
    path = tmp_path / 'march.ics'
    assert f'Reservation {ID} has a flavor' in refusal(run, *MONTH, str(path))
    assert not path.exists()


def test_a_failed_write_is_one_sentence(run, world, tmp_path):
    assert refusal(run, *MONTH, str(tmp_path)) == (
        f'The calendar cannot be written to {tmp_path}: Is a directory.\n'
    )
    assert world.wire.calls == []


@pytest.mark.usefixtures('world')
def test_without_icalendar_the_error_names_the_extra(run, monkeypatch):
    name = 'isolate_aggregates.reservations.commands.ical'
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delattr(commands, 'ical', raising=False)
    monkeypatch.setitem(sys.modules, 'icalendar', None)
    assert refusal(run, *MONTH, '-') == (
        'An iCalendar file needs icalendar; install '
        'isolate-aggregates[calendar].\n'
    )
