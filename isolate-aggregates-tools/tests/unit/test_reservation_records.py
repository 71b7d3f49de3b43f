# SPDX-License-Identifier: Apache-2.0
"""Cloud files keep the records of reservations."""

import dataclasses
import datetime

from cases import cases
import pytest

from isolate_aggregates.request import Flavor
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.cloud.file import cloud_file, document, serialize
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.records import (
    FlavorRecord,
    ReservationRecords,
)
from isolate_aggregates_tools.domains import Keystone, Project

NOON = datetime.datetime(2027, 3, 1, 12, tzinfo=datetime.UTC)
SLOT = Flavor(
    'reservation:a',
    'a',
    vcpus=4,
    extra_specs={'resources:CUSTOM_RESERVATION_A': '1'},
    is_public=False,
    projects=frozenset({'web'}),
)
REVISION = Flavor('reservation:a.1.2', 'a.1.2', vcpus=4, is_public=False)
RECORDS = ReservationRecords(
    NOON, (FlavorRecord(SLOT, '{"a": "1: x"}'), FlavorRecord(REVISION, ''))
)


def test_records_are_saved_once_with_their_time(tmp_path):
    snapshot = Snapshot('file', flavors=(SLOT,), reservations=RECORDS)
    saved = serialize.document(snapshot)['reservations']
    assert saved['read_at'] == '2027-03-01T12:00:00+00:00'
    # A flavor that can be booted is listed with the others.
    assert [each['flavor'] for each in saved['records']] == [
        'reservation:a',
        {
            'name': 'reservation:a.1.2',
            'id': 'a.1.2',
            'vcpus': 4,
            'is_public': False,
        },
    ]
    path = tmp_path / 'cloud.yaml'
    cloud_file.save(snapshot, path)
    assert cloud_file.load(path).reservations == RECORDS


def test_a_cloud_without_reservations_is_saved_without_a_time():
    saved = serialize.document(Snapshot('file'))
    assert 'reservations' not in saved
    assert document.to_snapshot(saved, 'file').reservations is None


@cases(
    'text, said',
    {
        'no zone': (
            '{read_at: "2027-03-01 12:00", records: []}',
            'it must be a time with a time zone',
        ),
        'no time': ('{read_at: noon, records: []}', "is 'noon'"),
        'of no flavor': (
            '{read_at: "2027-03-01T12:00Z", records: [{flavor: x}]}',
            'which is not a flavor of this file',
        ),
        'misspelt': (
            '{read_at: "2027-03-01T12:00Z", record: []}',
            'records',
        ),
    },
)
def test_a_wrong_record_is_named(tmp_path, text, said):
    path = tmp_path / 'cloud.yaml'
    path.write_text(f'version: 1\nreservations: {text}\n')
    with pytest.raises(errors.CloudFileError, match=said):
        cloud_file.load(path)


WEB = Project('a' * 32, 'web', 'main')
NAMES = Keystone(
    {'main': 'Main', 'old': 'Old'},
    (WEB, Project('b' * 32, 'web', 'old'), Project('c' * 32, 'lab', 'old')),
)


@cases(
    'arguments, found',
    {
        'name': (('lab',), 'c' * 32),
        'id': (('b' * 32,), 'b' * 32),
        'name in a domain': (('web', 'Main'), 'a' * 32),
        'name in a domain by id': (('web', 'old'), 'b' * 32),
        'unknown': (('gone',), 'gone'),
        'not in the domain': (('lab', 'main'), 'lab'),
    },
)
def test_a_saved_cloud_finds_projects_by_the_names_it_has(arguments, found):
    cloud = SnapshotCloud(Snapshot('file', keystone=NAMES))
    assert cloud.project(*arguments) == found


def test_a_name_in_two_domains_is_not_guessed():
    cloud = SnapshotCloud(Snapshot('file', keystone=NAMES))
    with pytest.raises(errors.NotUnique, match='web'):
        cloud.project('web')
    unnamed = dataclasses.replace(cloud.snapshot, keystone=None)
    assert SnapshotCloud(unnamed).project('web') == 'web'
