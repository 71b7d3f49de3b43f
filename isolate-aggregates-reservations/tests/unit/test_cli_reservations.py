# SPDX-License-Identifier: Apache-2.0
"""What the commands for reservations take, and what they do not."""

import argparse
import datetime

from cases import cases
import pytest
import units

from isolate_aggregates_reservations.commands import times

UNIT = 'etc/systemd/isolate-aggregates-reservations.service'
ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'


def utc(month, day, hour=0):
    """Return a time of 2027."""
    return datetime.datetime(2027, month, day, hour, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ('text', 'duration'),
    [
        ('now', {}),
        ('2h', {'hours': 2}),
        ('30m', {'minutes': 30}),
        ('7d', {'days': 7}),
        ('1w2d3h4m5s', {'weeks': 1, 'days': 2, 'hours': 3, 'minutes': 4,
                        'seconds': 5}),
        ('PT90M', {'minutes': 90}),
        ('P7D', {'days': 7}),
        ('P1W', {'weeks': 1}),
        ('P1DT12H', {'days': 1, 'hours': 12}),
    ],
)  # fmt: skip
def test_a_duration_is_short_or_iso(text, duration):
    assert times.moment(text) == datetime.timedelta(**duration)


@pytest.mark.parametrize(
    'text',
    [
        '2027-03-01T08:00Z',
        '2027-03-01T08:00:00+00:00',
        '2027-03-01T09:00+01:00',
        '20270301T080000Z',
    ],
)
def test_a_time_needs_a_zone(text):
    assert times.moment(text) == utc(3, 1, 8)


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('2027-03-01T08:00', "'2027-03-01T08:00' has no time zone; write"),
        ('2027-03-01', "'2027-03-01' has no time zone; write"),
        ('tomorrow', "'tomorrow' is neither a time such as"),
        ('', "'' is neither a time such as"),
        ('P1M', "'P1M' is neither"),
        ('P', "'P' is neither"),
        ('P1DT', "'P1DT' is neither"),
        ('2 h', "'2 h' is neither"),
        ('-2h', "'-2h' is neither"),
        ('never', "'never' is neither"),
        ('99999999999d', "'99999999999d' is too long a duration"),
        (
            '0001-01-01T00:00+01:00',
            "'0001-01-01T00:00+01:00' is not between the years",
        ),
        (
            '9999-12-31T23:59-01:00',
            "'9999-12-31T23:59-01:00' is not between the years",
        ),
    ],
)
def test_an_invalid_time_is_refused(text, said):
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        times.moment(text)
    assert str(caught.value).startswith(said)


def test_an_end_can_be_never():
    assert times.end('never') is None
    assert times.end('2h') == datetime.timedelta(hours=2)


def test_a_duration_counts_from_a_time():
    since = utc(3, 1)
    assert times.resolve(datetime.timedelta(hours=2), since) == utc(3, 1, 2)
    assert times.resolve(utc(4, 1), since) == utc(4, 1)
    with pytest.raises(argparse.ArgumentTypeError, match='is out of range'):
        times.resolve(datetime.timedelta(days=9_999_999), since)


def test_times_are_shown_in_utc():
    zone = datetime.timezone(datetime.timedelta(hours=5))
    time = datetime.datetime(2027, 3, 1, 4, 0, 0, 999, zone)
    assert times.text(time) == '2027-02-28T23:00:00+00:00'
    assert times.text(None) is None


CREATE = ('create', '--project', 'p', '--vcpus', '1', '--ram', '64')


@cases(
    ('arguments', 'said'),
    {
        'a start without a zone': (
            [*CREATE, '--start', '2027-03-01T08:00'],
            '--start: ',
        ),
        'an end out of time': (
            [*CREATE, '--end', '9999999d'],
            'the time 9999999 days after',
        ),
        'two sizes': (
            [*CREATE, '--like', 'm1.small'],
            '--like cannot be combined with --property or with options for '
            'the size',
        ),
        'like, and more': (
            ['create', '--project', 'p', '--like', 'x', '--property', 'a=b'],
            '--like cannot be combined with --property or with options for '
            'the size',
        ),
        'half a size': (
            ['create', '--project', 'p', '--vcpus', '1'],
            'give --vcpus and --ram, or --like',
        ),
        'no slot': ([*CREATE, '--amount', '0'], '--amount must be'),
        'no size': (
            [*CREATE, '--disk', 'x'],
            "must be a non-negative integer, not 'x'",
        ),
        'no extra spec': (
            [*CREATE, '--property', 'x'],
            "'x' is not a valid extra spec; write <key>=<value>",
        ),
        'affinity': ([*CREATE, '--affinity', 'some'], 'invalid choice'),
        'no project': (['create', *CREATE[3:]], '--project'),
        'no change': (['set', ID], '--unshare or --warn-before'),
        'within a point in time': (
            ['list', '--ending-within', '2027-03-01T08:00Z'],
            'is not a duration such as 2h, 7d or PT90M',
        ),
        'no pause': (['reconcile', '--watch', '0'], '--watch'),
        'no host': (['host', 'set', '--enable'], '<host>'),
    },
)
def test_invalid_arguments_are_refused(run, arguments, said):
    result = run('reservation', *arguments)
    assert (result.code, result.out) == (2, '')
    assert said in result.err.splitlines()[-1]


def test_the_help_says_that_servers_do_not_outlive_a_reservation(run):
    told = ' '.join(run('help', 'reservation', 'create').out.split())
    assert (
        'When the reservation ends, these servers are permanently deleted.'
    ) in told


def test_the_unit_is_installed_and_starts_an_existing_command():
    assert units.is_installed(UNIT)
    name, arguments = units.command(UNIT)
    assert name == 'reservation reconcile'
    assert arguments.watch


def test_what_one_may_use_needs_a_live_cloud(run):
    result = run('reservation', 'list', '--mine', '--snapshot', 'cloud.yaml')
    assert result.code == 2
    assert '--mine needs a live cloud' in result.err
