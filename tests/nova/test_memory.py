# SPDX-License-Identifier: Apache-2.0
"""A worker of nova-scheduler keeps neither requests nor old aggregates."""

import collections
import copy
import gc
import logging

from cases import cases
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.scheduler import request_filter
import pytest
from test_runner import FORBID, LEFT, A, B, Filter, Worker

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.constraints import (
    Forbid,
    LazyForbid,
    Refuse,
)
from isolate_aggregates.nova.adapter import NovaRequest
from isolate_aggregates.query_limit import forbidden_length

CONTEXT = nova_context.get_admin_context()
# Enough to tell what grows with each request from what does not.
ROUNDS = 40
# The request of the worker, and what the last round may still use.
FEW = 3


@pytest.fixture(scope='module', autouse=True)
def _nova():
    objects.register_all()


@pytest.fixture(autouse=True)
def _unlogged():
    """Log nothing, as pytest keeps what is logged."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(before)


def live(*kinds):
    """Return how many objects of some classes are alive."""
    gc.collect()
    counted = collections.Counter(map(type, gc.get_objects()))
    return [counted[kind] for kind in kinds]


class Holding(Filter):
    """A filter whose constraint holds the request and the aggregates."""

    def __call__(self, request, aggregates):
        def make():
            assert request.flavor
            assert aggregates is not None
            return [FORBID]

        return [LazyForbid(frozenset({A.uuid, B.uuid}), make)]


class Explaining(Filter):
    """A filter whose reasons hold the request and the aggregates."""

    def __call__(self, request, aggregates):
        class Cause:
            used = request, aggregates

            def __str__(self):
                return f'because of flavor {self.used[0].flavor.name}'

        return [Forbid((A, B), Cause()), LEFT]


class Refusing(Filter):
    """A filter that refuses, with a reason that holds the request."""

    def __call__(self, request, aggregates):
        cause = type('Cause', (), {'used': request, '__str__': lambda _: 'no'})
        return [Refuse(cause())]


class Raising(Filter):
    """A filter that raises an error that holds the request."""

    def __call__(self, request, aggregates):
        error = ValueError('broken')
        error.used = request, aggregates
        raise error


class Remembering(Filter):
    """A filter that misuses the cache of the aggregates."""

    def __call__(self, request, aggregates):
        aggregates.remember(request, lambda: lambda: (request, aggregates))
        return [FORBID]


class Hoarding(Filter):
    """A filter that keeps each request that it sees."""

    def __call__(self, request, aggregates):
        self.requests.append((request, request.flavor, request.image))
        return [FORBID]


class Scenario:
    """What happens to a request in nova-scheduler."""

    def __init__(self, constraints, **options):
        self.worker = Worker(constraints, **options)

    def __call__(self):
        self.worker.narrow()
        self.worker.objections()


class Refused(Scenario):
    def __call__(self):
        assert self.worker.refusal()


class ForcedHost(Scenario):
    """The host of every second request is refused."""

    def __call__(self):
        self.worker.spec.force_hosts = ['host-a']
        forced = self.worker.forced
        forced.reason = None if forced.reason else 'not there'
        if forced.reason:
            assert self.worker.refusal() == 'not there'
        else:
            self.worker.narrow()


class Interrupted(Scenario):
    """Another request filter of Nova fails between our two."""

    def __call__(self):
        def failing(context, spec):
            raise nova_exception.RequestFilterFailed(reason='not ours')

        filters = request_filter.ALL_REQUEST_FILTERS
        before = list(filters)
        filters[:] = [self.worker.runner, failing]
        try:
            with pytest.raises(nova_exception.RequestFilterFailed):
                request_filter.process_reqspec(CONTEXT, self.worker.spec)
        finally:
            filters[:] = before


class Abandoned(Scenario):
    def __call__(self):
        self.worker.runner(CONTEXT, self.worker.spec)


class Rebuild(Scenario):
    """No request filter runs for it, only the host filter."""

    def __call__(self):
        assert self.worker.objections()['host-a']


class Unreadable(Scenario):
    """The aggregates cannot be read for every second request."""

    def __call__(self):
        self.worker.broken = not self.worker.broken
        if self.worker.broken:
            self.worker.refusal()
            with pytest.raises(exception.AggregatesUnreadable):
                self.worker.objections()
        else:
            self.worker.narrow()


SHORTENED = forbidden_length(1)
# What a forced host adds to the query.
IN_TREE = len('&in_tree=') + len(A.uuid)


@cases(
    'make',
    {
        'lazy': lambda: Scenario(Holding()),
        'explained': lambda: Scenario(Explaining()),
        'shortened': lambda: Scenario(Holding(), limit=SHORTENED),
        'left to a host filter': lambda: Scenario(
            Explaining(), limit=SHORTENED
        ),
        'in the index': lambda: Scenario(Remembering()),
        'kept by a filter': lambda: Scenario(Hoarding()),
        'refused': lambda: Refused(Refusing()),
        'a filter raises': lambda: Refused(Raising()),
        'too long': lambda: Scenario(Holding(), limit=10),
        'forced host': lambda: ForcedHost(
            Holding(), limit=SHORTENED + IN_TREE
        ),
        'interrupted': lambda: Interrupted(Holding()),
        'abandoned': lambda: Abandoned(Holding()),
        'rebuild': lambda: Rebuild(Holding()),
        'unreadable': lambda: Unreadable(Holding()),
    },
)
@pytest.mark.parametrize(
    'is_changing',
    [
        pytest.param(True, id='changing'),
        pytest.param(False, marks=pytest.mark.slow, id='the same'),
    ],
)
def test_neither_requests_nor_old_aggregates_are_kept(
    make, is_changing, monkeypatch
):
    scenario = make()
    worker, read = scenario.worker, scenario.worker.read
    if is_changing:
        # Each request sees new aggregates.
        numbers = iter(range(10**6))
        monkeypatch.setattr(
            worker.runner._cache,
            '_read',
            lambda: (*read(), Aggregate(f'uuid{next(numbers)}', 'n')),
        )
    template = worker.spec.obj_clone()
    specs, indexes = live(objects.RequestSpec, AggregateIndex)
    for _ in range(ROUNDS):
        worker.spec = template.obj_clone()
        scenario()
    found = live(objects.RequestSpec, AggregateIndex)
    assert found[0] <= specs + FEW
    assert found[1] <= indexes + FEW


def test_the_request_of_a_filter_ends_with_nova_s():
    mine = Hoarding()
    worker = Worker(mine)
    worker.narrow()
    [(request, flavor, _)] = mine.requests
    assert isinstance(request, NovaRequest)
    worker.spec = None
    gc.collect()
    # What the filter has read, it may keep.
    assert request.flavor is flavor
    with pytest.raises(ReferenceError, match='has ended'):
        _ = request.scheduler_hints


def test_a_copy_of_a_request_is_a_different_request():
    """Nova's own copies have no state; a shallow one would share it."""
    worker = Worker(Filter(FORBID))
    worker.narrow()
    assert worker.objections() == {}
    for other in copy.copy(worker.spec), worker.spec.obj_clone():
        worker.spec = other
        assert worker.objections()['host-a'] == ['aggregates a, b: because']
