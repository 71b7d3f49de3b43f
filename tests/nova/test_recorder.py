# SPDX-License-Identifier: Apache-2.0
"""The thread that completes records, in workers and under load."""

import collections
import json
import logging
import multiprocessing
import threading
import weakref

import jsonschema
from nova import context as nova_context
from nova import objects
from nova.scheduler import filters as host_filters
import pytest
from record_schema import SCHEMA

from isolate_aggregates import examination
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.decision import decide
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.nova import recorder, records
from isolate_aggregates.nova.adapter import field
from isolate_aggregates.nova.messages import Observer
from isolate_aggregates.record import LOGGER
from isolate_aggregates.testing import make_request

LOCKED = '7a0c3f52-9d14-4e86-b0a7-52c1e8d6f934'


@pytest.fixture(autouse=True)
def _nova():
    objects.register_all()


class Counting(Observer):
    """Counts effects."""

    def __init__(self):
        self.effects = collections.Counter()

    def shadowed(self, effect):
        self.effects[effect] += 1


class Waiting:
    """Filters in shadow that have something to say when they may."""

    def __init__(self, may):
        self.may = may

    def compare(self, trace):
        self.may.wait()
        return {'effect': 'no_host'}


@pytest.fixture
def recorder_of():
    """Return a function that makes recorders; their threads end."""
    made = []

    def make(observer, may):
        made.append(
            recorder.Recorder(
                'none', frozenset(), {}, object, observer, Waiting(may)
            )
        )
        return made[-1]

    yield make
    for one in made:
        one.close()
        if (thread := one._thread) is not None:
            thread.join(60)
            assert not thread.is_alive()


def written(made, number):
    for _ in range(number):
        made.write(dict, records.Trace(None, None, ()), is_wanted=False)


def test_each_worker_has_a_thread_of_its_own(recorder_of, lines):
    """Workers are forked, and threads are not."""
    may = threading.Event()
    may.set()
    observer = Counting()
    made = recorder_of(observer, may)
    written(made, 1)

    def in_worker(pipe):
        lines.clear()
        observer.effects.clear()
        written(made, 3)
        while observer.effects.total() < 3 or len(lines) < 3:
            threading.Event().wait(0.01)
        pipe.send((len(lines), threading.active_count()))

    context = multiprocessing.get_context('fork')
    ours, theirs = context.Pipe()
    worker = context.Process(target=in_worker, args=(theirs,))
    worker.start()
    assert ours.poll(60)
    assert ours.recv() == (3, 2)
    worker.join()


def test_what_shadow_has_no_time_for_is_said(recorder_of, lines):
    may = threading.Event()
    observer = Counting()
    made = recorder_of(observer, may)
    lines.clear()
    written(made, recorder._QUEUE + 10)
    late = observer.effects['failed']
    assert late in (9, 10)
    assert len(lines) == late
    assert all('too many requests at once' in line for line in lines)
    may.set()


def test_a_lock_that_replaced_another_is_told_by_its_own_name(
    lines, monkeypatch
):
    """The query is the same, as it has only uuids."""
    asked = []

    def examine(placement, question, origin, closing):
        asked.append(question)
        return {'detail': {'locks': closing({LOCKED})}}

    monkeypatch.setattr(examination, 'examine', examine)
    made = recorder.Recorder('failures', frozenset(), {}, object, Observer())
    found = []
    for tag in ('CUSTOM_OLD', 'CUSTOM_NEW'):
        lock = Aggregate(LOCKED, 'lock', {f'trait:{tag}': 'required'})
        trace = records.Trace(None, objects.RequestSpec(), ())
        index = AggregateIndex([lock])
        trace.decision = decide(
            make_request(),
            index,
            Pipeline({'isolate_aggregates': IsolateAggregates()}),
        )
        for _ in range(2):
            answer = made._examined('no_candidates', trace)
            found.append(str(answer['detail']['locks']))
    assert ['CUSTOM_NEW' in one for one in found] == [False] * 2 + [True] * 2
    assert len(asked) == 2


def test_the_thread_ends_where_another_recorder_takes_over(
    recorder_of, lines, monkeypatch
):
    """As for the next worker of the same process."""
    monkeypatch.setattr(records, '_recorder', None)
    may = threading.Event()
    observer = Counting()
    first, second = recorder_of(observer, may), recorder_of(observer, may)
    monkeypatch.setattr(records, '_wrap', lambda *_: None)
    records.install(first)
    lines.clear()
    written(first, 2)
    thread = first._thread
    records.install(second)
    may.set()
    thread.join(60)
    assert not thread.is_alive()
    # Nothing is lost, not even of a request that had begun before.
    assert len(lines) == 2
    written(first, 1)
    if (last := first._thread) is not None:
        last.join(60)
    assert (len(lines), first._thread) == (3, None)


HOST, NODE = 'host1', '5ac6e1a2-9c1c-4a35-a2cb-8b6d3b5e8f11'
SERVER = '0f8a6f2e-5f0c-4a1e-9d6c-3f2f6f1f2c11'
IMAGE = '155d900f-4e14-4e4c-a73d-069cbf4541e6'


def spec_of(**fields):
    """Return a request spec as nova-scheduler gets it."""
    spec = objects.RequestSpec.from_components(
        nova_context.get_admin_context(),
        SERVER,
        {'id': IMAGE, 'properties': {}},
        objects.Flavor(
            flavorid='f', name='small', extra_specs={'trait:X': 'required'},
            vcpus=1, memory_mb=1, root_gb=1, ephemeral_gb=0, swap=0,
        ),
        None, None, {}, None, 'zone1',
    )  # fmt: skip
    for name, value in fields.items():
        setattr(spec, name, value)
    return spec


def recorded(lines, spec):
    """Return the record of a request that was placed."""
    made = recorder.Recorder('all', frozenset(), {}, object, Observer())
    context = nova_context.RequestContext(request_id='req-1', is_admin=False)
    records._finish(made, records.Trace(context, spec, ()), None, None)
    record = json.loads(lines[-1])
    jsonschema.validate(record, SCHEMA)
    return record


def test_forced_hosts_and_nodes_are_told_apart(lines):
    spec = spec_of(force_hosts=[HOST], force_nodes=[NODE])
    keys = recorded(lines, spec)['keys']
    assert (keys['forced'], keys['forced_nodes']) == ([HOST], [NODE])
    keys = recorded(lines, spec_of(force_nodes=[NODE]))['keys']
    assert 'forced' not in keys
    assert keys['forced_nodes'] == [NODE]


def test_fields_are_read_as_nova_reads_them():
    """Unset fields, too, although they are read from where they are stored."""
    target = objects.Destination(allow_cross_cell_move=True)
    spec = spec_of(project_id='p', requested_destination=target)
    image = spec.image
    for thing in (spec, spec.flavor, image, image.properties, target):
        for name in thing.obj_fields:
            found = field(thing, name, recorded)
            expected = getattr(thing, name) if name in thing else recorded
            assert found == expected, name


def test_nothing_is_built_that_nobody_logs():
    log = logging.getLogger(LOGGER)
    level = log.level
    made = recorder.Recorder('narrowed', frozenset(), {}, object, Observer())
    log.setLevel(logging.WARNING)
    try:
        assert not made.wants(has_failed=False, is_narrowed=True)
        # Its cause is found and counted.
        assert made.wants(has_failed=True, is_narrowed=True)
    finally:
        log.setLevel(level)


class Host:
    """A state of a host in Nova."""

    uuid, host = NODE, HOST


def test_only_names_of_hosts_wait_in_the_queue():
    """Nova's states of hosts, and Placement's answers, are large."""
    trace = records.Trace(None, None, ())
    trace.asked_for('query', 1, {'child': {'root_provider_uuid': NODE}})
    records._current.trace = trace
    host, others = Host(), [Host(), Host()]
    handler = host_filters.HostFilterHandler()
    try:
        records._filtered(
            type(handler).get_filtered_objects, handler, [], [host, *others],
            None,
        )  # fmt: skip
        records.unusable(HOST)
    finally:
        records._current.trace = None
    trace.keep_names()
    assert trace.offered == {NODE}
    assert trace.given == [(NODE, HOST)] * 3
    # Several nodes may belong to one host.
    assert (trace.passed, trace.unusable) == ([HOST, HOST], 1)
    reference = weakref.ref(host)
    del host, others
    assert reference() is None
