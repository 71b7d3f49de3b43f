# SPDX-License-Identifier: Apache-2.0
"""``decision list`` sums up records, and says what it has not read."""

import csv
import gzip
import io
import json
import pathlib
import tracemalloc

from cases import cases
import jsonschema
from published_schemas import schema_of
import pytest

from isolate_aggregates.record import CAUSES, EFFECTS, LOGGER, SCHEMA
from isolate_aggregates_tools.decisions import logs, sums, told

EXAMPLES = pathlib.Path(__file__).parents[3] / 'examples' / 'decisions'
# Stands for the id of the flavor.
FLAVOR = object()
ACME, GLOBEX = 'a' * 32, 'b' * 32
LOCK = 'trait:CUSTOM_LICENSED_WINDOWS=required'
HEADER = f'2026-11-28 10:58:19.986 7 INFO {LOGGER} [-] '


def closing(name, *locks):
    return {'filter': 'f', 'uuid': name, 'name': name, 'locks': list(locks)}


def record(number=0, **more):
    return {
        'schema': SCHEMA,
        'at': '2026-11-28T10:58:19.986+00:00',
        'request': f'req-{number}',
        'server': f'server-{number}',
        'project': ACME,
        'operation': 'boot',
        'flavor': {'id': '2', 'name': 'm1.small'},
        'keys': {},
        'result': 'no_host',
        **more,
    }


def locked(**hosts):
    return {'cause': 'locked', 'detail': {'room': True, 'hosts': hosts}}


NIGHT = (
    record(
        0,
        **locked(
            host1=[closing('licensed', LOCK)],
            host2=[closing('licensed', LOCK), closing('mine')],
        ),
    ),
    record(1, **locked(host1=[closing('licensed', LOCK)]), project=GLOBEX),
    record(2, cause='full', at='2026-11-27T10:58:19.986+00:00'),
    record(3, cause='refused', result='refused', project=None),
    record(4, result='placed', hosts=['host1']),
)


def shadow(number, effect, *locks, **more):
    exclude = {'host1': [closing('licensed', *locks)]} if locks else {}
    return record(
        number,
        result='placed',
        hosts=['host1'],
        shadow={'effect': effect, 'would_exclude': exclude, **more},
    )


WEEK = (
    shadow(0, 'no_host', LOCK),
    shadow(1, 'refused', refusals=[{'reason': 'it names no reservation'}]),
    shadow(2, 'other_host', LOCK),
    # It got no host anyway.
    record(3, cause='full', shadow={'effect': 'refused', 'reason': 'no'}),
    record(4, result='placed', hosts=['host1']),
)


@pytest.fixture
def log(tmp_path):
    """Write records to a log file, between other lines."""

    def write(*records, more=''):
        path = tmp_path / 'nova-scheduler.log'
        lines = [HEADER + json.dumps(each, separators=(',', ':')) for each in
                 records]  # fmt: skip
        other = '2026-11-28 10:58:19.986 7 INFO nova.service [-] started'
        path.write_text('\n'.join([other, *lines, other, more]))
        return str(path)

    return write


@pytest.fixture
def listed(run):
    """Run the command, and check its document."""

    def listed(*arguments):
        result = run('decision', 'list', *arguments, '-f', 'json')
        assert (result.code, result.err) == (0, '')
        document = json.loads(result.out)
        jsonschema.Draft202012Validator(
            schema_of('decision list'),
            format_checker=jsonschema.FormatChecker(),
        ).validate(document)
        return document

    return listed


def test_requests_without_a_host_are_summed_up(listed, log):
    document = listed(log(*NIGHT))
    assert document['results'] == {'no_host': 3, 'refused': 1, 'placed': 1}
    assert document['period'] == {
        'first': '2026-11-27T10:58:19.986+00:00',
        'last': '2026-11-28T10:58:19.986+00:00',
    }
    assert [
        (each['by'], each['name'], each['requests'])
        for each in document['sums']
    ] == [
        ('cause', 'locked', 2),
        ('cause', 'full', 1),
        ('cause', 'refused', 1),
        ('lock', LOCK, 2),
        ('lock', 'aggregate mine', 1),
        ('project', ACME, 2),
        ('project', None, 1),
        ('project', GLOBEX, 1),
        ('flavor', 'm1.small', 4),
        ('day', '2026-11-27', 1),
        ('day', '2026-11-28', 3),
    ]


def test_csv_has_all_sums_and_nothing_else(run, log):
    result = run('decision', 'list', log(*NIGHT), '-f', 'csv')
    rows = list(csv.reader(io.StringIO(result.out)))
    assert rows[:3] == [
        ['By', 'Name', 'Requests'],
        ['cause', 'locked', '2'],
        ['cause', 'full', '1'],
    ]
    assert len(rows) == 12


def test_what_shadow_would_have_changed_is_summed_up(listed, log):
    document = listed(log(*WEEK), '--shadow')
    assert document['effects'] == {'no_host': 1, 'refused': 2, 'other_host': 1}
    sums = {(each['by'], each['name']): each for each in document['sums']}
    of_lock = sums['lock', LOCK]
    assert (of_lock['no_host'], of_lock['other_host']) == (1, 1)
    assert sums['project', ACME]['refused'] == 2
    assert sums['flavor', 'm1.small']['requests'] == 4
    assert [
        (each['request'], each['effect'], each['locks'], each['reason'])
        for each in document['without_host']
    ] == [
        ('req-0', 'no_host', [LOCK], None),
        ('req-1', 'refused', [], 'it names no reservation'),
    ]


def test_a_table_names_the_requests(run, log):
    out = run('decision', 'list', log(*WEEK), '--shadow').out
    assert 'Would have ended without a host: 1; refused: 2;' in out
    assert (
        f'req-0  server server-0, project {ACME}, flavor m1.small: closed by '
        f'{LOCK}'
    ) in ' '.join(out.split(' '))
    assert 'req-2' not in out
    assert 'req-3' not in out


def test_a_table_is_short(run, log):
    many = [record(n, cause='full', project=f'{n:032}') for n in range(25)]
    path = log(*many)
    short = run('decision', 'list', path).out
    assert '5 more projects; --long shows all.' in short
    whole = run('decision', 'list', path, '--long').out
    assert whole.count('project') == 25
    assert short.count('| project') == 20


def test_what_is_not_read_is_said(run, listed, log):
    half = HEADER + json.dumps(record(), separators=(',', ':'))[:-9]
    newer = half.replace('decision/1', 'decision/2') + '","took_ms":1}'
    path = log(NIGHT[0], more=f'{half}\n{newer}\n{half}')
    document = listed(path)
    assert document['records'] == 1
    assert document['not_read'] == [
        '2 records are cut off',
        '1 record is of an unknown version',
    ]
    assert (
        'Not read: 2 records are cut off.' in run('decision', 'list', path).out
    )


def test_several_files_compressed_ones_and_the_standard_input(
    listed, log, tmp_path, monkeypatch
):
    path = log(*NIGHT)
    with open(path, 'rb') as stream:
        text = stream.read()
    packed = tmp_path / 'nova-scheduler.log.1.gz'
    packed.write_bytes(gzip.compress(text))
    monkeypatch.setattr('sys.stdin', io.TextIOWrapper(io.BytesIO(text)))
    document = listed(path, str(packed), '-')
    assert document['records'] == 3 * len(NIGHT)


def test_a_truncated_file_is_read_as_far_as_it_goes(listed, log, tmp_path):
    many = [record(n, cause='full', project=f'{n * n}') for n in range(500)]
    with open(log(*many), 'rb') as stream:
        packed = gzip.compress(stream.read())
    path = tmp_path / 'half.gz'
    path.write_bytes(packed[: len(packed) // 2])
    document = listed(str(path))
    assert 0 < document['records'] < 500
    assert document['not_read'] == [f'{path} ends early, as a compressed file']


def test_a_log_without_records_says_so(run, log):
    result = run('decision', 'list', log())
    assert (result.code, result.out) == (
        0,
        'There are no records of decisions: nova-scheduler logs those that '
        '[isolate_aggregates] decisions asks for.\n',
    )


@cases(
    ('arguments', 'code', 'said'),
    {
        'no file': ((), 2, '<file> is required'),
        'twice the standard input': (
            ('-', '-'),
            2,
            '- can be given only once',
        ),
        'no such file': (
            ('/nowhere',),
            1,
            'Log file /nowhere cannot be read: No such file or directory.',
        ),
        'a directory': (('/',), 1, 'Log file / cannot be read: '),
        'without an end': (('/dev/zero',), 1, 'Not a text file'),
    },
)
def test_misuse_is_one_sentence(run, arguments, code, said):
    result = run('decision', 'list', *arguments)
    assert (result.code, result.out) == (code, '')
    assert said in result.err
    assert result.err.count('\n') == 1


@cases(
    ('arguments', 'said'),
    {
        'no log': (('--request', 'req-0'), '--request needs --scheduler-log'),
        'no request': (
            ('--flavor', 'm1.small', '--log', 'x'),
            '--scheduler-log needs --request',
        ),
        'both': (
            ('--request', 'req-0', '--flavor', 'm1.small', '--log', 'x'),
            '--flavor cannot be used with --request',
        ),
        'what the record has': (
            ('--request', 'req-0', '--log', 'x', '--hint', 'a=b'),
            '--hint cannot be used with --request',
        ),
        'a zone': (
            (
                *('--request', 'req-0', '--scheduler-log', 'x'),
                *('--availability-zone', 'z'),
            ),
            '--availability-zone cannot be used with --request',
        ),
        'twice the standard input': (
            ('--request', 'req-0', '--log', '-', '--log', '-'),
            '--scheduler-log - can be given only once',
        ),
    },
)
def test_arguments_of_a_past_request_are_checked(run, arguments, said):
    result = run('explain', *arguments)
    assert (result.code, result.out) == (2, '')
    assert said in result.err
    assert result.err.count('\n') == 1


def test_a_request_without_a_record_is_an_error(run, log):
    path = log(*NIGHT)
    result = run('explain', '--request', 'req-9', '--log', path)
    assert (result.code, result.out) == (1, '')
    assert result.err == f"{path} has no record of request 'req-9'.\n"


@pytest.fixture
def explained(run, tmp_path):
    """Explain the past request of the example that a host was forced for."""
    log = EXAMPLES / 'nova-scheduler.log'
    [forced] = [
        each
        for each in logs.records([str(log)], logs.NotRead())
        if 'forced' in each['keys']
    ]

    def explained(*changes):
        text = (EXAMPLES / 'morning.yaml').read_text()
        for old, new in changes:
            old = forced['flavor']['id'] if old is FLAVOR else old
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / 'morning.yaml'
        path.write_text(text)
        result = run(
            *('explain', '--request', forced['request']),
            *('--scheduler-log', str(log)),
            *('--snapshot', str(path), '-f', 'json'),
        )
        document = json.loads(result.out)
        jsonschema.validate(document, schema_of('explain'))
        return result, document

    return explained


@cases(
    ('more', 'is_said'),
    {
        'hints that are left out': ({'omitted': ['hints']}, True),
        'names that are left out': ({'omitted': ['names']}, False),
        'no hints': ({}, False),
    },
)
def test_omitted_hints_are_not_restored(run, log, tmp_path, more, is_said):
    result = run(
        *('explain', '--request', 'req-0'),
        *('--scheduler-log', log(record(**more))),
        *('--snapshot', str(EXAMPLES / 'morning.yaml'), '-f', 'json'),
    )
    document = json.loads(result.out)
    assert is_said == any(
        each.startswith('scheduler hints') for each in document['not_restored']
    )


@cases(
    'forced',
    {
        'one of several hosts': '"forced":["host2","host3"]',
        'a node': '"forced_nodes":["host2"]',
        'a host and a node': '"forced":["host2"],"forced_nodes":["host2"]',
    },
)
def test_forced_hosts_and_nodes_are_told_apart(run, tmp_path, forced):
    text = (EXAMPLES / 'nova-scheduler.log').read_text()
    (line,) = (each for each in text.splitlines() if '"forced":' in each)
    path = tmp_path / 'nova-scheduler.log'
    path.write_text(line.replace('"forced":["host2"]', forced))
    request = json.loads(line[line.index('{"') :])['request']
    result = run(
        *('explain', '--request', request, '--scheduler-log', str(path)),
        *('--snapshot', str(EXAMPLES / 'morning.yaml'), '-f', 'json'),
    )
    document = json.loads(result.out)
    assert document['not_asked'] is None
    assert {host['verdict'] for host in document['now']['hosts']} == {
        'excluded'
    }
    [host2] = [
        host for host in document['now']['hosts'] if host['name'] == 'host2'
    ]
    assert any('lease' in reason for reason in host2['reasons'])


def test_a_forced_host_is_forced_again(explained):
    result, document = explained()
    assert (result.code, result.err) == (0, '')
    [record] = document['records']
    assert (record['cause'], record['keys']['forced']) == ('locked', ['host2'])
    assert document['not_asked'] is None
    assert document['now']['summary']['candidates'] == 0


@cases(
    ('changes', 'said'),
    {
        'its host': (
            [('host2', 'gone')],
            'There is no compute host named host2',
        ),
        'its flavor': (
            [
                (FLAVOR, 'gone'),
                ('name: small', 'name: gone'),
                ('flavor: small', 'flavor: gone'),
            ],
            'There is no flavor',
        ),
    },
)
def test_what_is_gone_is_an_answer(explained, changes, said):
    result, document = explained(*changes)
    assert (result.code, result.err) == (0, '')
    assert document['not_asked'].startswith(said)
    assert document['now'] is None
    assert document['records']


def test_every_cause_and_effect_has_a_sentence():
    assert told.SENTENCES.keys() == {*CAUSES}
    assert {*told.EFFECTS, 'none'} == {*EFFECTS}
    assert {*sums.EFFECTS, 'none'} == {*EFFECTS}


def test_memory_does_not_grow_with_the_log(log):
    path = log(*(shadow(n, 'no_host', LOCK) for n in range(2_000)))

    def peak(times):
        tracemalloc.start()
        found = sums.Sums(True)
        for each in logs.records([path] * times, logs.NotRead()):
            found.add(each)
        assert found.records == 2_000 * times
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    assert peak(10) < 1.1 * peak(6)
