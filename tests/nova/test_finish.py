# SPDX-License-Identifier: Apache-2.0
"""The request filter that makes a query fit stays the last one in Nova."""

import logging

from nova.scheduler import request_filter
from oslo_config import cfg
import pytest

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.nova import placement, runner


class Ran:
    """A fake runner that records the requests to finish."""

    def __init__(self):
        self.finished = []

    def finish(self, context, spec):
        self.finished.append(spec)
        return True


class Spec:
    """A request spec that records which filters have run."""

    def __init__(self):
        self.seen = []


def third_party(name):
    return lambda context, spec: spec.seen.append(name)


@pytest.fixture
def filters(monkeypatch):
    """The request filters of Nova, none at first."""
    found = []
    monkeypatch.setattr(request_filter, 'ALL_REQUEST_FILTERS', found)
    return found


def process(ran):
    """Run the filters with Nova's own code; return all but the last."""
    spec = Spec()
    request_filter.process_reqspec(None, spec)
    assert ran.finished[-1:] == [spec]
    assert ran.finished.count(spec) == 1
    return spec.seen


def test_it_runs_once_and_after_all_others_wherever_they_are_put(filters):
    ran = Ran()
    filters += [third_party('first'), runner.Finish(ran)]
    assert process(ran) == ['first']
    filters.append(third_party('appended'))
    assert process(ran) == ['first', 'appended']
    filters.insert(1, third_party('inserted'))
    filters.append(third_party('late'))
    assert process(ran) == ['first', 'inserted', 'appended', 'late']
    # Requests do not add more of them.
    assert process(ran) == ['first', 'inserted', 'appended', 'late']
    assert sum(isinstance(one, runner.Finish) for one in filters) == 3


def test_a_filter_that_joins_during_a_request_is_waited_for(filters):
    ran = Ran()

    def joining(context, spec):
        if len(filters) == 2:
            filters.append(third_party('joined'))

    filters += [joining, runner.Finish(ran)]
    assert process(ran) == ['joined']
    assert process(ran) == ['joined']


def test_a_request_that_reached_it_before_it_was_replaced_is_finished(filters):
    """Nova would return from a list of the same length right after it."""
    ran, spec = Ran(), Spec()
    filters.append(runner.Finish(Ran()))
    assert runner.Finish(ran)(None, spec) is True
    assert ran.finished == [spec]


@pytest.mark.parametrize(
    ('enabled', 'limit', 'warned'),
    [
        (['IsolatedAggregatesFilter'], 4000, 0),
        (['ComputeFilter'], 4000, 1),
        (['ComputeFilter'], 0, 0),
    ],
)
def test_without_the_host_filter_there_is_a_warning_at_the_start(
    caplog, enabled, limit, warned
):
    conf = cfg.ConfigOpts()
    ia_conf.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override('enabled_filters', enabled, group='filter_scheduler')
    conf.set_override('max_query_length', limit, group=ia_conf.GROUP)
    with caplog.at_level(logging.WARNING):
        placement.shortener(conf, ())
    assert caplog.messages == warned * [
        '[filter_scheduler] enabled_filters lacks IsolatedAggregatesFilter, '
        'so no query to Placement is shortened: requests whose query would be '
        'longer than [isolate_aggregates] max_query_length are refused. Add '
        'IsolatedAggregatesFilter to enabled_filters.'
    ]


def test_who_may_not_wait_asks_once_and_not_for_long(monkeypatch):
    class Session:
        timeout = None

    class Adapter:
        session = Session()

    monkeypatch.setattr(
        placement.utils, 'get_ksa_adapter', lambda service: Adapter()
    )
    placement.impatient_client()
    assert Session.timeout is None
    assert Adapter.session.timeout == placement.TIMEOUT
    Adapter.session.timeout = 2
    placement.impatient_client()
    assert Adapter.session.timeout == 2
