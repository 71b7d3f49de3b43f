# SPDX-License-Identifier: Apache-2.0
"""The command ``ledger`` says what is wrong, and its JSON has the schema."""

import json
import pathlib

from cases import cases
import jsonschema
from oslo_config import cfg
from published_schemas import schema_of
import pytest

from isolate_aggregates_tools.ledger import shown, times
from isolate_aggregates_tools.ledger.ledger import Ledger, Subject
from isolate_aggregates_tools.ledger.recording import recording
from isolate_aggregates_tools.ledger.state import (
    AggregateState,
    Placement,
    State,
)
from isolate_aggregates_tools.ledger.writer import LedgerWriter

HOUR = 3600
FILE = str(pathlib.Path(__file__).parents[3] / 'examples' / 'ledger.jsonl')
WINDOWS = ('--lock', 'trait:CUSTOM_LICENSED_WINDOWS')
MARCH = ('--since', '2026-03-01', '--until', '2026-03-04')


@pytest.mark.parametrize(
    'subject',
    [
        WINDOWS,
        ('--aggregate', 'oracle'),
        ('--project', '9d6a5c3e2b1f4a70a1c2d3e4f5a6b7c8'),
    ],
    ids=lambda subject: subject[0],
)
def test_the_document_has_the_schema(run, subject):
    result = run(
        *('ledger', *subject, *MARCH, '--file', FILE, '--no-cloud'),
        *('-f', 'json'),
    )
    document = json.loads(result.out)
    jsonschema.Draft202012Validator(
        schema_of('ledger'),
        format_checker=jsonschema.FormatChecker(),
    ).validate(document)
    assert document['days']
    assert document['stays']


@cases(
    ('arguments', 'sentence'),
    {
        'no time': (
            (*WINDOWS, '--since', 'monday'),
            "--since 'monday' is not a time such as 2027-01-01 or "
            '2027-01-01T08:00+01:00',
        ),
        'backwards': (
            (*WINDOWS, '--since', '2026-03-04', '--until', '2026-03-01'),
            '--since must be before --until',
        ),
        'future': (
            (*WINDOWS, '--since', '2026-03-04', '--until', '9999-03-01'),
            '--until must not be in the future',
        ),
        'nothing to read': (
            (*WINDOWS, *MARCH, '--no-cloud'),
            '--no-cloud needs --file',
        ),
        'whose': (
            (*MARCH, '--no-cloud', '--file', FILE),
            '--lock or --aggregate or --project is required',
        ),
    },
)
def test_invalid_arguments(run, arguments, sentence):
    result = run('ledger', *arguments)
    assert result.code == 2
    assert sentence.split('--since ')[-1] in result.err


@pytest.mark.parametrize(
    ('subject', 'sentence'),
    [
        (('--lock', 'trait:CUSTOM_LICENSED_WINDOW'), 'There is no lock'),
        (('--aggregate', 'window'), 'did you mean windows?'),
    ],
)
def test_what_is_in_neither_file_nor_cloud_is_refused(run, subject, sentence):
    result = run('ledger', *subject, *MARCH, '--file', FILE, '--no-cloud')
    assert result.code == 1
    assert sentence in result.err


def test_a_lock_that_is_gone_is_found_by_the_name_that_it_had(run, tmp_path):
    path = tmp_path / 'ledger.jsonl'
    now = [times.as_seconds('2026-03-01')]
    writer = LedgerWriter(path, HOUR, clock=lambda: now[0])
    placement = Placement('a', 'project', 'large', 4, ('trait:X',), None)
    for metadata in ({'trait:X': 'required'}, {}):
        aggregate = AggregateState('once', ('a', 'b'), metadata)
        writer.look(State({'uuid': aggregate}, servers={'s': placement}))
        now[0] += HOUR
    writer.close()
    result = run(
        *('ledger', '--lock', 'trait:X', *MARCH, '--file', str(path)),
        *('--no-cloud', '-f', 'csv', '-c', 'Host', '-c', 'Could run'),
    )
    assert result.out.splitlines() == [
        '"Host","Could run"',
        '"a","yes"',
        '"b","yes"',
    ]


def test_without_a_file_nothing_is_recorded():
    with recording(None, cfg.ConfigOpts(), HOUR) as record:
        assert record(None) is None


def test_twenty_gaps_are_shown_unless_all_are_wanted():
    gaps = [f'gap {number}' for number in range(1, 22)]
    lock = Subject('lock', 'trait:X', 'trait:X')
    ledger = Ledger(lock, 0, HOUR, (), {}, (), {}, gaps)
    assert list(shown.gaps(ledger, shown.MOST))[-2:] == [
        '  gap 20.',
        '  1 more; --long shows all.',
    ]
    assert list(shown.gaps(ledger, None))[-1] == '  gap 21.'


@pytest.mark.parametrize(
    ('command', 'sentence'),
    [
        (('sync', '--ledger', 'x'), '--ledger needs --watch'),
        (
            ('exporter', '--ledger', 'x', '--output', 'y.prom'),
            '--ledger cannot be combined with --output or --no-cloud',
        ),
        (
            ('exporter', '--ledger', 'x', '--snapshot', 'y.yaml'),
            '--ledger needs a live cloud',
        ),
    ],
)
def test_programs_that_do_not_watch_a_cloud_record_nothing(
    run, command, sentence
):
    result = run(*command)
    assert result.code == 2
    assert sentence in result.err
