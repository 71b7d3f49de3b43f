# SPDX-License-Identifier: Apache-2.0
"""Records that are long, many, or of failures that Nova does not name."""

import json
import time
from unittest.mock import Mock

import jsonschema
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
import pytest
from record_schema import SCHEMA

from isolate_aggregates import examination, exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.decision import decide
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.nova import placed, recorder, records
from isolate_aggregates.nova.messages import Observer
from isolate_aggregates.nova.shadow import Shadow
from isolate_aggregates.testing import make_request

SERVER = '0f8a6f2e-5f0c-4a1e-9d6c-3f2f6f1f2c11'
IMAGE = '155d900f-4e14-4e4c-a73d-069cbf4541e6'
NO_HOST = nova_exception.NoValidHost(reason='')


@pytest.fixture(autouse=True)
def _nova():
    objects.register_all()


def recorder_of(shadow=None, level='failures'):
    return recorder.Recorder(
        level, frozenset(), {}, object, Observer(), shadow
    )


def decision_of(*names):
    """Return a decision that forbids aggregates with these names."""
    index = AggregateIndex(
        [
            Aggregate(f'u-{name}', name, {'trait:CUSTOM_X': 'required'})
            for name in names
        ]
    )
    pipeline = Pipeline({'isolate_aggregates': IsolateAggregates()})
    return decide(make_request(), index, pipeline)


def trace_of(specs=None, error=None, decision=None):
    context = nova_context.RequestContext(request_id='req-1', is_admin=False)
    spec = objects.RequestSpec.from_components(
        context,
        SERVER,
        {'id': IMAGE, 'properties': {}},
        objects.Flavor(
            flavorid='f', name='small', extra_specs=specs or {}, vcpus=1,
            memory_mb=1, root_gb=1, ephemeral_gb=0, swap=0,
        ),
        None, None, {}, None, None,
    )  # fmt: skip
    trace = records.Trace(context, spec, ())
    trace.error, trace.decision = error, decision
    return trace


def logged(lines):
    """Wait for the only record, and return it."""
    until = time.monotonic() + 60
    while not lines and time.monotonic() < until:
        time.sleep(0.01)
    assert len(lines) == 1
    record = json.loads(lines[-1])
    jsonschema.validate(record, SCHEMA)
    return record


def failure(lines, trace, error=NO_HOST):
    """Return the record of a request that failed."""
    made = recorder_of()
    # Of the configuration.
    lines.clear()
    records._finish(made, trace, None, error)
    return logged(lines)


def test_a_record_that_would_be_too_long_loses_what_it_needs_least(lines):
    specs = {f'{number:k<300}': 'v' * 300 for number in range(30)}
    record = failure(lines, trace_of(specs), RuntimeError('x'))
    assert len(lines[0]) <= recorder._LONGEST
    assert record['left_out'] == ['keys']
    assert 'keys' not in record
    assert (record['cause'], record['flavor']['id']) == ('error', 'f')


def test_a_failure_of_nova_is_told_by_its_name(lines):
    record = failure(lines, trace_of(), RuntimeError('broken'))
    assert (record['result'], record['cause']) == ('no_host', 'error')
    assert record['detail'] == {'reason': 'RuntimeError: broken'}


def test_a_filter_that_fails_is_named(lines):
    error = exception.FilterError('own', 'returned None.')
    record = failure(lines, trace_of(error=error))
    assert (record['result'], record['cause']) == ('refused', 'filter_failed')
    assert record['detail'] == {'filter': 'own', 'reason': 'returned None.'}


def test_a_server_that_cannot_be_recorded_has_a_cause_of_its_own(lines):
    trace = trace_of()
    setattr(trace.spec, placed._FAILED, True)
    assert failure(lines, trace)['cause'] == 'not_recorded'


def test_a_locked_host_that_a_short_query_does_not_name(lines):
    """It is checked before the query, so that Placement was not asked."""
    error = exception.RequestRefused(['forced host host1: it is locked'])
    trace = trace_of(error=error, decision=decision_of('licensed'))
    record = failure(lines, trace)
    assert (record['result'], record['cause']) == ('refused', 'locked')
    assert record['detail']['reason'] == 'forced host host1: it is locked'
    [lock] = record['locks']
    assert lock['some'][0]['name'] == 'licensed'


class Resources:
    """Nova's resources of a request."""

    def __init__(self, number):
        self.number = number

    def to_querystring(self):
        return f'resources=VCPU%3A{self.number}'


def asked(number):
    """Return a request for which Placement had no candidate."""
    trace = records.Trace(None, objects.RequestSpec(), ())
    trace.asked_for(Resources(number), 0, {})
    return trace


def test_placement_is_asked_about_some_records_at_once(monkeypatch):
    """Later about one a second, and about equal queries once."""
    queries = []

    def examine(placement, question, origin, closing):
        queries.extend(question.queries)
        return {'cause': 'full'}

    monkeypatch.setattr(examination, 'examine', examine)
    now = 0.0
    monkeypatch.setattr(recorder, 'time', Mock(monotonic=lambda: now))
    made = recorder_of()

    def examined(number):
        return made._examined('no_candidates', asked(number))

    burst = recorder._BURST
    assert [examined(n) for n in range(burst)] == [{'cause': 'full'}] * burst
    late = {'examined': 'no: too many requests'}
    assert [examined(burst + n) for n in range(3)] == [late] * 3
    # The answer is known.
    assert examined(0) == {'cause': 'full'}
    assert len(queries) == burst
    for number in range(burst, burst + 100):
        now += 1 / recorder._RATE
        assert examined(number) == {'cause': 'full'}
    assert len(queries) == len(set(queries)) == burst + 100
    assert len(made._kept) == recorder._KEPT


def test_the_next_record_is_written_after_one_that_cannot_be(lines, caplog):
    class Changes:
        def compare(self, trace):
            return {'effect': 'no_host'}

    made = recorder_of(Changes(), 'none')
    lines.clear()

    def broken():
        raise RuntimeError('broken')

    made.write(broken, trace_of(), is_wanted=False)
    made.write(lambda: {'schema': SCHEMA['$id']}, trace_of(), is_wanted=False)
    until = time.monotonic() + 60
    while not lines and time.monotonic() < until:
        time.sleep(0.01)
    assert json.loads(lines[0])['shadow'] == {'effect': 'no_host'}
    assert 'A decision is not recorded.' in caplog.text
    made.close()


class Filters:
    """Filters in shadow; each host is in an aggregate with its name."""

    def __init__(self, decision=None, error=None):
        self.hosts, self._decision, self._error = self, decision, error

    def decide(self, spec):
        if self._error:
            raise self._error
        return self._decision

    def memberships(self, hosts):
        return {host: frozenset({f'u-{host}'}) for host in hosts}


@pytest.mark.parametrize(
    ('passed', 'offered', 'effect'),
    [
        (['host1', 'host2'], 2, 'other_host'),
        (['host1'], 2, 'no_host'),
        # Placement may have had more hosts than it returned.
        (['host1'], 3, 'not_known'),
    ],
)
def test_what_shadow_knows_depends_on_what_placement_returned(
    passed, offered, effect
):
    trace = trace_of()
    trace.hosts, trace.passed = ['host1'], passed
    trace.offered = frozenset(map(str, range(offered)))
    shadow = Shadow(Filters(decision_of('host1')), 3, replaces=False)
    found = shadow.compare(trace)
    assert found['effect'] == effect
    assert list(found['would_exclude']) == ['host1']
    trace.hosts = ['host2']
    assert shadow.compare(trace) == {'effect': 'none'}


def test_shadow_tells_why_a_request_would_have_been_refused():
    error = exception.RequestRefused(['the reservation is of others'])
    shadow = Shadow(Filters(error=error), 3, replaces=False)
    assert shadow.compare(trace_of()) == {
        'effect': 'refused',
        'reason': 'the reservation is of others',
    }
