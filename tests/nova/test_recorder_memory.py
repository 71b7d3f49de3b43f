# SPDX-License-Identifier: Apache-2.0
"""Recorder and shadow keep nothing of 100,000 requests."""

import gc
import logging
import os
import pathlib
import threading
import time

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.scheduler import filters as host_filters
from oslo_utils import uuidutils
import pytest

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.decision import decide
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.nova import records
from isolate_aggregates.nova.messages import Observer
from isolate_aggregates.nova.recorder import Recorder
from isolate_aggregates.nova.shadow import Shadow
from isolate_aggregates.record import LOGGER
from isolate_aggregates.testing import make_request

FIRST, LAST = 10_000, 100_000
# Requests between two changes of the aggregates.
UNCHANGED = 500
HOSTS = 20
MEBIBYTE = 1 << 20


class Host:
    """A host as Nova's filters see it."""

    def __init__(self, number):
        self.uuid, self.host = uuidutils.generate_uuid(), f'host{number}'


class Even(host_filters.BaseHostFilter):
    """A host filter that drops half of the hosts."""

    def host_passes(self, host_state, spec_obj):
        return int(host_state.host[4:]) % 2 == 0


class Members:
    """Each host is in an aggregate of its own."""

    def memberships(self, hosts):
        return {host: frozenset({f'u{host[4:]}'}) for host in hosts}


class Cloud:
    """Filters that decide about aggregates that change."""

    hosts = Members()

    def __init__(self):
        self.change(0)
        self.pipeline = Pipeline({'isolate_aggregates': IsolateAggregates()})

    def change(self, number):
        self.index = AggregateIndex(
            [
                Aggregate(
                    f'u{each}',
                    f'a{each}-{number}',
                    {f'trait:CUSTOM_{each % 7}': 'required'},
                )
                for each in range(50)
            ]
        )

    def decide(self, spec):
        return decide(make_request(), self.index, self.pipeline)


class Unreachable:
    """A Placement that cannot be reached for an examination."""

    def read(self, *args, **kwargs):
        raise exception.ServiceUnreachable('Placement', None, 'is gone.')


class Load:
    """Requests that pass the functions that are wrapped in Nova."""

    def __init__(self, recorder, cloud):
        self.recorder, self.cloud = recorder, cloud
        self.handler = host_filters.HostFilterHandler()
        self.filters = [Even()]
        self.states = [Host(number) for number in range(HOSTS)]
        self.offered = {state.uuid: {} for state in self.states}
        self.served = 0

    def serve(self):
        """Serve a request: each third gets no host."""
        self.served += 1
        if self.served % UNCHANGED == 0:
            self.cloud.change(self.served)
        context = nova_context.get_admin_context()
        uuid = uuidutils.generate_uuid()
        spec = objects.RequestSpec.from_components(
            context,
            uuid,
            {'properties': {}},
            objects.Flavor(
                flavorid='f', name='small', extra_specs={}, vcpus=1,
                memory_mb=self.served, root_gb=1, ephemeral_gb=0, swap=0,
            ),
            None, None, {}, None, None,
        )  # fmt: skip
        is_offered = self.served % 3 > 0

        def select(manager, context, **kwargs):
            records.decided(self.cloud.decide(spec), spec)
            records._asked(self.candidates, None, context, [is_offered])
            if not is_offered:
                raise nova_exception.NoValidHost(reason='')
            handler = self.handler
            [state, *_] = records._filtered(
                type(handler).get_filtered_objects, handler, self.filters,
                self.states, spec,
            )  # fmt: skip
            return [[{'host': state.host}]]

        try:
            records._selected(
                select, None, context, spec_obj=spec, instance_uuids=[uuid]
            )
        except nova_exception.NoValidHost:
            assert not is_offered

    def candidates(self, client, context, is_offered):
        if not is_offered[0]:
            return [], {}, '1.36'
        return list(self.offered), self.offered, '1.36'

    def rest(self):
        """Wait for the thread, and return objects and resident bytes."""
        until = time.monotonic() + 120
        while self.recorder._queue.qsize() and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.2)
        gc.collect()
        pages = int(pathlib.Path('/proc/self/statm').read_text().split()[1])
        return len(gc.get_objects()), pages * os.sysconf('SC_PAGE_SIZE')


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_nothing_is_kept_of_100000_requests(
    tmp_path, monkeypatch, record_property
):
    objects.register_all()
    log = logging.getLogger(LOGGER)
    handler = logging.FileHandler(tmp_path / 'decisions.log')
    log.addHandler(handler)
    monkeypatch.setattr(log, 'level', logging.INFO)
    monkeypatch.setattr(log, 'propagate', False)
    cloud = Cloud()
    recorder = Recorder(
        'all', frozenset(), {}, Unreachable, Observer(),
        Shadow(cloud, 1000, replaces=False),
    )  # fmt: skip
    monkeypatch.setattr(records, '_recorder', recorder)
    load = Load(recorder, cloud)
    threads = threading.active_count()
    try:
        for _ in range(FIRST):
            load.serve()
        before, size = load.rest()
        for _ in range(LAST - FIRST):
            load.serve()
        after, size_after = load.rest()
        assert threading.active_count() <= threads + 1
    finally:
        recorder.close()
        log.removeHandler(handler)
        handler.close()
    with (tmp_path / 'decisions.log').open() as stream:
        # That of the configuration, too.
        assert sum(1 for _ in stream) == LAST + 1
    found = f'objects {before} to {after}, bytes {size} to {size_after}'
    record_property('memory', found)
    print(found)
    assert after < before + 1000, found
    assert size_after < size + 8 * MEBIBYTE, found
