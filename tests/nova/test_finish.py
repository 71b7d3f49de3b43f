# SPDX-License-Identifier: Apache-2.0
"""A query is made to fit after all of Nova's request filters."""

import logging
from unittest import mock

from nova import exception as nova_exception
from nova.scheduler import request_filter
from oslo_config import cfg
import pytest
import requests

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import options as tools_options
from isolate_aggregates.nova import placement, registration


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
def ran(monkeypatch):
    """A fake runner, installed in a Nova without request filters."""
    ran = Ran()
    monkeypatch.setattr(request_filter, 'ALL_REQUEST_FILTERS', [])
    monkeypatch.setattr(registration, '_runner', ran)
    monkeypatch.setattr(registration, '_process', None)
    plain = request_filter.process_reqspec
    monkeypatch.setattr(request_filter, 'process_reqspec', plain)
    registration._wrap()
    return ran


def process(ran):
    """Run the filters as nova-scheduler does; return those that ran."""
    spec = Spec()
    request_filter.process_reqspec(None, spec)
    assert ran.finished.pop() is spec
    assert not ran.finished
    return spec.seen


def test_a_request_is_finished_once_after_all_filters(ran):
    filters = request_filter.ALL_REQUEST_FILTERS
    assert process(ran) == []
    # Also by the next worker of the process.
    registration._wrap()
    names = [f'late {number}' for number in range(50)]
    for number, name in enumerate(names, 1):
        filters.append(third_party(name))
        assert process(ran) == names[:number]
    # Nothing of ours is added to Nova's list.
    assert len(filters) == 50


def test_a_filter_added_during_a_request_is_waited_for(ran):
    filters = request_filter.ALL_REQUEST_FILTERS

    def joining(context, spec):
        assert not ran.finished
        if len(filters) == 1:
            filters.append(third_party('joined'))

    filters.append(joining)
    assert process(ran) == ['joined']
    assert process(ran) == ['joined']


def test_a_request_that_a_filter_refuses_is_not_finished(ran):
    def refusing(context, spec):
        raise nova_exception.RequestFilterFailed(reason='no')

    request_filter.ALL_REQUEST_FILTERS.append(refusing)
    with pytest.raises(nova_exception.RequestFilterFailed):
        request_filter.process_reqspec(None, Spec())
    assert not ran.finished


def test_another_package_may_wrap_novas_function_too(ran, monkeypatch):
    ours = request_filter.process_reqspec
    theirs = mock.Mock(side_effect=ours)
    monkeypatch.setattr(request_filter, 'process_reqspec', theirs)
    registration._wrap()
    assert process(ran) == []
    theirs.assert_called_once()


@pytest.mark.parametrize(
    ('enabled', 'limit', 'warned'),
    [
        (['IsolatedAggregatesFilter'], 4000, 0),
        (['ComputeFilter'], 4000, 1),
        (['ComputeFilter'], 0, 0),
    ],
)
def test_a_missing_host_filter_is_warned_about_at_the_start(
    caplog, enabled, limit, warned
):
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override('enabled_filters', enabled, group='filter_scheduler')
    conf.set_override('max_query_length', limit, group=ia_conf.GROUP)
    with caplog.at_level(logging.WARNING):
        placement.shortener(conf, (), warn=True)
    assert caplog.messages == warned * [
        '[filter_scheduler] enabled_filters lacks IsolatedAggregatesFilter, '
        'so no query to Placement is shortened: requests whose query would be '
        'longer than [isolate_aggregates] max_query_length are refused. Add '
        'IsolatedAggregatesFilter to enabled_filters.'
    ]


def test_the_impatient_client_has_a_short_timeout(monkeypatch):
    class Session:
        timeout = None
        session = requests.Session()

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
