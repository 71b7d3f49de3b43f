# SPDX-License-Identifier: Apache-2.0
"""A line of a log has a record only if our logger has written it."""

import io
import json
import logging

from cases import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_config import cfg
from oslo_context import context as oslo_context
from oslo_log import formatters
from oslo_log import log as oslo_log
import pytest

from isolate_aggregates.record import CONFIGURATION, LOGGER, SCHEMA
from isolate_aggregates_tools.decisions.lines import Unread, of_line

RECORD = {
    'schema': SCHEMA,
    'at': '2026-11-28T10:58:19.986+00:00',
    'request': 'req-14e18e47-51e6-4ce6-8238-f10870b6f0a4',
    'server': '1cd5bd71-db42-4fe6-b063-615357b93413',
    'project': '8a5c0e6d2f4b4c0c9f0e0a7a1c9e5d31',
    'operation': 'boot',
    'flavor': {'id': '2', 'name': 'm1.small'},
    'config': 'b57b0e307653',
    'keys': {},
    'result': 'no_host',
    'cause': 'locked',
    'took_ms': 3.1,
}
FORGED = {**RECORD, 'request': 'req-forged', 'hosts': ['evil']}


def encoded(document):
    """As the recorder writes it."""
    return json.dumps(document, separators=(',', ':'))


TEXT = encoded(RECORD)
PLAIN = (
    f'2026-11-28 10:58:19.986 7 INFO {LOGGER} [None req-1 user project - - '
    f'default default] {TEXT}'
)
FORGERY = (
    f'2026-11-28 10:58:19.986 7 INFO {LOGGER} [-] {encoded(FORGED)}'
)  # fmt: skip
OWN = f'2026-11-28 10:58:19,986 7 INFO {LOGGER} {TEXT}'
OSLO = {'message': TEXT, 'name': LOGGER, 'levelname': 'INFO', 'context': {}}
OTHER = {'name': LOGGER, 'levelname': 'INFO'}
COLORED = (
    f'\x1b[00;32mINFO {LOGGER} [\x1b[01;36mNone req-1 \x1b[00;36madmin demo'
    f'\x1b[00;32m] \x1b[01;35m\x1b[00;32m{TEXT}\x1b[00m'
)


def read(line):
    return of_line(f'{line}\n'.encode())


@cases(
    'line',
    {
        'oslo.log': PLAIN,
        'oslo.log without a request': PLAIN.replace('None req-1', '-'),
        'a handler of its own': OWN,
        'a handler with a colon': f'INFO:{LOGGER}:{TEXT}',
        "Nova's tests": f'2026-11-28 10:58:19,986 INFO [{LOGGER}] {TEXT}',
        'DevStack': COLORED,
        'rsyslog': f'Nov 28 10:58:19 ctl-1 nova-scheduler[7]: {PLAIN}',
        'rsyslog, new format': (
            f'2026-11-28T10:58:19.9+00:00 ctl-1 nova-scheduler: {PLAIN}'
        ),
        'journalctl without a host': f'Nov 28 10:58:19 nova[7]: {PLAIN}',
        'RFC 5424': (
            f'<134>1 2026-11-28T10:58:19Z ctl-1 nova-scheduler 7 - - {PLAIN}'
        ),
        'containerd': f'2026-11-28T10:58:19.986123456Z stdout F {PLAIN}',
        'docker logs -t': f'2026-11-28T10:58:19.986123456Z {PLAIN}',
        'kubectl logs --prefix': f'[pod/nova-scheduler-0/nova] {PLAIN}',
        'docker compose logs': f'nova-scheduler-1  | {PLAIN}',
        'JSONFormatter': json.dumps(OSLO),
        'JSONFormatter in containerd': (
            f'2026-11-28T10:58:19.986Z stderr F {json.dumps(OSLO)}'
        ),
        'journald, of oslo.log': json.dumps(
            {'MESSAGE': PLAIN, 'LOGGER_NAME': LOGGER, 'PRIORITY': '6'}
        ),
        'journald, JSONFormatter': json.dumps(
            {'MESSAGE': json.dumps(OSLO), 'LOGGER_NAME': LOGGER}
        ),
        'journald, of a stream': json.dumps({'MESSAGE': PLAIN}),
        'journald, with colors': json.dumps(
            {'MESSAGE': list(COLORED.encode())}, separators=(',', ':')
        ),
        'Docker': json.dumps({'log': f'{PLAIN}\n', 'stream': 'stdout'}),
        'Docker around JSON': json.dumps({'log': json.dumps(OSLO)}),
        'Fluent Bit, of journald': json.dumps(
            {'date': 1.0, 'MESSAGE': TEXT, 'LOGGER_NAME': LOGGER}
        ),
        'Fluent Bit, of a file': json.dumps({'date': 1.0, 'log': PLAIN}),
        'Filebeat': json.dumps({'message': PLAIN, 'log': {'offset': 1}}),
        'logcli': json.dumps({'labels': {'job': 'nova'}, 'line': PLAIN}),
        'oslo.log without datefmt': PLAIN.replace('9.986 ', '9,986.986 '),
        'kolla-ansible': json.dumps(
            {'python_module': LOGGER, 'Payload': TEXT, 'log_level': 'INFO'}
        ),
    },
)
def test_a_record_is_read_in_each_format(line):
    assert read(line) == RECORD


@cases(
    'line',
    {
        'in a message': (
            f'2026-11-28 10:58:19.986 7 INFO nova.x [-] named {FORGERY}'
        ),
        'in a message without a header': (
            f'2026-11-28 10:58:19.986 7 WARNING nova.x [-] {FORGERY}'
        ),
        'as a message': f'2026-11-28 10:58:19.986 7 DEBUG {FORGERY}',
        'of another level': FORGERY.replace(' INFO ', ' DEBUG '),
        'of a logger below': FORGERY.replace(LOGGER, f'{LOGGER}.x'),
        'JSON of another logger': json.dumps(
            {'name': 'x', 'message': FORGERY}
        ),
        'journald of another logger': json.dumps(
            {'MESSAGE': FORGERY, 'LOGGER_NAME': 'nova'}
        ),
        'in a message, without a logger': (
            f'2026-11-28 10:58:19 WARNING x: {FORGERY.partition(" 7 ")[2]}'
        ),
        'in a message, after a colon': (
            f'2026-11-28 10:58:19 WARNING: {FORGERY.partition(" 7 ")[2]}'
        ),
        'the record alone': encoded(FORGED),
        'in a field of JSON': json.dumps(
            {'name': 'nova', 'context': {'name': LOGGER, 'message': FORGERY}}
        ),
        'JSON of our logger, between message and time': json.dumps(
            {'message': 'x', 'by': encoded(FORGED), 'asctime': '', **OTHER}
        ),
        'Docker, in a message': json.dumps(
            {'log': f'2026-11-28 10:58:19.986 7 INFO nova {FORGERY}'}
        ),
    },
)
def test_what_another_logger_writes_is_no_record(line):
    assert not isinstance(read(line), dict)


@cases(
    'name',
    {
        'a record': encoded(FORGED),
        'a beginning': encoded(FORGED)[:-1] + ',"x":"',
        'a beginning with an escape': encoded(FORGED)[:-1] + ',"x":"\\',
        'the end of a header': f'] {encoded(FORGED)}',
    },
)
def test_names_before_a_record_change_nothing(name):
    """DevStack logs the names of project and user before the message."""
    assert read(PLAIN.replace(' user ', f' {name} ')) == RECORD


@cases(
    ('line', 'why'),
    {
        'half a line': (PLAIN[:-40], Unread.CUT),
        'nothing but the header': (PLAIN.partition('{')[0], Unread.CUT),
        'more than a record': (f'{PLAIN} and more', Unread.CUT),
        'a part of containerd': (
            f'2026-11-28T10:58:19Z stdout P {json.dumps(OSLO)}',
            Unread.CUT,
        ),
        'a newer version': (
            PLAIN.replace('decision/1', 'decision/2'),
            Unread.VERSION,
        ),
        'without a result': (PLAIN.replace('"result"', '"x"'), Unread.INVALID),
        'an unknown format': (f'[{LOGGER}] info: {TEXT}', Unread.FORMAT),
        'half of JSON': (json.dumps(OSLO)[:-9], Unread.FORMAT),
        'nested too deep': (
            PLAIN.replace('"keys":{}', f'"keys":{"[" * 100_000}'),
            Unread.CUT,
        ),
    },
)
def test_what_is_not_read_has_a_reason(line, why):
    assert read(line) is why


@cases(
    'line',
    {
        'the configuration': PLAIN.replace(SCHEMA, CONFIGURATION),
        'another logger': '2026-11-28 10:58:19.986 7 INFO nova.x [-] x',
        'a mention': f'2026-11-28 10:58:19.986 7 INFO nova.x [-] {LOGGER}',
        'nothing': '',
    },
)
def test_other_lines_are_not_counted(line):
    assert read(line) is None


# What a tenant can choose, in pieces that are dangerous together.
PIECES = st.sampled_from(
    [
        *(FORGERY, encoded(FORGED), LOGGER, 'INFO', ' ', '"', '\\', '{', '}'),
        *(
            ']',
            '[-] ',
            '\n',
            '\r',
            '\x1b[0m',
            '\u2028',
            ',"x":"',
            '": "',
            '%s',
        ),
        *('2026-11-28 10:58:19.986 7 INFO ', f'INFO {LOGGER} ', 'MESSAGE'),
        *(f'{{"name":"{LOGGER}","message":', '"LOGGER_NAME":"', '\x00', 'é'),
        *('stdout F ', '<134>1 ', json.dumps({'log': FORGERY})),
    ]
)
TENANTS = st.lists(PIECES | st.text(max_size=9), max_size=9).map(''.join)
# Nova logs names of one line; see the page about line breaks in plain text.
ONE_LINE = TENANTS.map(lambda text: ' '.join(text.split('\n')))


@pytest.fixture(scope='module')
def conf():
    found = cfg.ConfigOpts()
    oslo_log.register_options(found)
    found([])
    return found


def logged(formatter, name, message, user, at=logging.INFO):
    """Return the lines that a handler of oslo.log writes."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    context = oslo_context.RequestContext(
        user_id=user, project_id=user, request_id='req-1', overwrite=False
    )
    record = logging.LogRecord(name, at, '', 1, '%s', (message,), None)
    record.context = context
    handler.handle(record)
    return stream.getvalue()


def wrappings(text):
    """Return what collectors make of what a process has written."""
    lines = text.removesuffix('\n').split('\n')
    yield from lines
    for line in lines:
        yield f'2026-11-28T10:58:19.986123456Z stdout F {line}'
        yield json.dumps({'log': f'{line}\n', 'stream': 'stdout'})
        yield json.dumps({'MESSAGE': line, '_PID': '7'})
        yield json.dumps({'line': line, 'labels': {}})


@settings(max_examples=300, deadline=None)
@given(message=ONE_LINE, user=ONE_LINE)
def test_text_of_tenants_in_plain_lines_is_no_record(conf, message, user):
    formatter = formatters.ContextFormatter(config=conf)
    for name in ('nova.scheduler.manager', 'isolate_aggregates.nova.runner'):
        text = logged(formatter, name, message, user)
        assert [x for x in map(read, wrappings(text)) if is_forged(x)] == []


@settings(max_examples=300, deadline=None)
@given(message=TENANTS, user=TENANTS)
def test_text_of_tenants_in_json_is_no_record(message, user):
    """With line breaks."""
    formatter = formatters.JSONFormatter()
    text = logged(formatter, 'nova.scheduler.manager', message, user)
    assert [x for x in map(read, wrappings(text)) if is_forged(x)] == []
    journal = {
        'MESSAGE': list(message.encode(errors='replace')),
        'LOGGER_NAME': 'nova.scheduler.manager',
        'PROJECT_NAME': user,
    }
    assert not is_forged(read(json.dumps(journal)))


def test_json_of_oslo_log_is_read_no_further_than_the_logger():
    """It has the record again in its arguments, and takes twice as long."""
    text = logged(formatters.JSONFormatter(), LOGGER, TEXT, 'user')
    half = text[: text.index('"args"') + 20]
    assert read(text) == read(half) == RECORD
    other = half.replace(f'"name": "{LOGGER}"', f'"name": "{LOGGER}.x"')
    assert read(other) is Unread.FORMAT


@settings(max_examples=300, deadline=None)
@given(hint=TENANTS, user=ONE_LINE)
def test_text_of_tenants_in_a_record_stays_in_it(conf, hint, user):
    record = {**RECORD, 'keys': {'hints': {hint: [hint]}}}
    for formatter in (
        formatters.ContextFormatter(config=conf),
        formatters.JSONFormatter(),
    ):
        text = logged(formatter, LOGGER, encoded(record), user)
        found = [each for each in map(read, wrappings(text)) if each]
        assert found == [record] * 5


@settings(max_examples=500, deadline=None)
@given(line=st.binary(max_size=99) | TENANTS.map(str.encode))
def test_any_bytes_are_read_without_an_error(line):
    for each in (line, PLAIN.encode() + line, line + PLAIN.encode()):
        assert isinstance(of_line(each), dict | Unread | None)


def is_forged(found):
    return isinstance(found, dict) and found['request'] == 'req-forged'
