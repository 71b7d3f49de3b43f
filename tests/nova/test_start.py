# SPDX-License-Identifier: Apache-2.0
"""The request filters when nova-scheduler starts, and what it logs."""

import logging
import pathlib
import threading
from unittest import mock

from fake_nova import FakeNova
from http_fakes import AUTH_URL, CREDENTIALS, FakeKeystone
from keystoneauth1 import loading
from nova import context as nova_context
from nova import objects
import nova.conf
from nova.scheduler import request_filter
import nova_flavors
from oslo_config import fixture as config_fixture
import pytest
import uninstalling

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.aggregates import sources
from isolate_aggregates.compute import NovaclientSource
from isolate_aggregates.nova import registration
from isolate_aggregates.nova.source import NovaDatabaseSource
from isolate_aggregates.rest import connection

EXAMPLE = pathlib.Path(__file__).parents[2] / 'examples/windows-licensing.yaml'
OURS = 'isolate_aggregates.nova.registration'
CACHE = 'isolate_aggregates.aggregates.cache'
PATIENCE = 120  # seconds until a thread that hangs fails a test
SWITCH = ('enable_isolated_aggregate_filtering', 'scheduler')


@pytest.fixture(autouse=True)
def _heard(monkeypatch):
    """Enable logging, whatever other tests have configured."""
    monkeypatch.setattr(logging.root.manager, 'disable', logging.NOTSET)
    for name in ('isolate_aggregates', OURS, CACHE):
        logger = logging.getLogger(name)
        monkeypatch.setattr(logger, 'disabled', False)
        monkeypatch.setattr(logger, 'propagate', True)
        logger.setLevel(logging.INFO)


@pytest.fixture
def conf():
    fixture = config_fixture.Config(nova.conf.CONF)
    fixture.setUp()
    ia_conf.register_opts(fixture.conf)
    fixture.config(enable_isolated_aggregate_filtering=True, group=SWITCH[1])
    fixture.config(
        request_filters=['isolate_aggregates', 'reservation_prefix'],
        group=ia_conf.GROUP,
    )
    fixture.config(
        enabled_filters=['IsolatedAggregatesFilter'], group='filter_scheduler'
    )
    yield fixture
    uninstalling.uninstall()
    fixture.cleanUp()


@pytest.fixture
def api(conf, requests_mock):
    """Nova's API, with credentials for it in nova.conf."""
    FakeKeystone(requests_mock)
    answers = FakeNova()
    answers.answer(requests_mock)
    conf.config(
        aggregate_source='novaclient',
        auth_type='v3password',
        group=ia_conf.GROUP,
    )
    for opt in loading.get_auth_plugin_conf_options('v3password'):
        conf.register_opt(opt, group=ia_conf.GROUP)
    conf.config(group=ia_conf.GROUP, **CREDENTIALS)
    return answers


def told(caplog, level):
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == level
        and record.name.startswith('isolate_aggregates')
        # Requests of other tests may still be examined.
        and 'isolate-aggregates/decision/' not in record.getMessage()
    ]


def test_the_scheduler_reads_the_database_by_default(conf, api):
    assert isinstance(registration.source(conf.conf), NovaclientSource)
    conf.config(aggregate_source=None, group=ia_conf.GROUP)
    assert isinstance(registration.source(conf.conf), NovaDatabaseSource)
    # With the same configuration, commands use the API.
    outside = sources.load(conf.conf, lambda: connection.from_conf(conf.conf))
    assert isinstance(outside, NovaclientSource)


def test_each_filter_is_logged_as_enabled_or_disabled(conf, api, caplog):
    conf.config(enable_isolated_aggregate_filtering=False, group=SWITCH[1])
    with caplog.at_level(logging.INFO, 'isolate_aggregates'):
        registration.install()
    configuration, *others = told(caplog, logging.INFO)
    assert configuration.startswith(
        '{"schema":"isolate-aggregates/configuration/1",'
    )
    assert others == [
        'Request filters of isolate-aggregates: isolate_aggregates (off by '
        '[scheduler] enable_isolated_aggregate_filtering), '
        'reservation_prefix (on)'
    ]
    assert told(caplog, logging.WARNING) == []
    caplog.clear()

    conf.config(enable_isolated_aggregate_filtering=True, group=SWITCH[1])
    with caplog.at_level(logging.INFO, 'isolate_aggregates'):
        registration.install()
    assert 'isolate_aggregates (on by ' in told(caplog, logging.INFO)[-1]


def test_a_wrong_password_is_logged_and_the_start_continues(conf, api, caplog):
    conf.config(password='wrong', group=ia_conf.GROUP)
    with caplog.at_level(logging.INFO, 'isolate_aggregates'):
        runner = registration.install()
    assert registration.installed() is runner
    [error] = told(caplog, logging.ERROR)
    assert error.startswith(
        'The host aggregates cannot be read (Keystone at '
        f'{AUTH_URL} does not accept the credentials: '
    )


def test_a_hanging_service_delays_the_start_at_most_by_the_deadline(
    conf, api, caplog, requests_mock
):
    """The server answers only after the scheduler has started."""
    started = threading.Event()

    def hang(request, context):
        assert started.wait(PATIENCE)
        context.status_code = 401
        return {}

    requests_mock.post(f'{AUTH_URL}/auth/tokens', json=hang)
    conf.config(aggregate_deadline=0.1, group=ia_conf.GROUP)
    try:
        with caplog.at_level(logging.INFO, 'isolate_aggregates'):
            registration.install()
            # A request does not wait, either.
            with pytest.raises(exception.AggregatesUnreadable):
                registration.installed()._cache.get()
    finally:
        started.set()
        for thread in threading.enumerate():
            # The thread of the records goes on as long as the process.
            if thread.name == 'isolate-aggregates-call':
                thread.join(PATIENCE)
    at_start, at_request = told(caplog, logging.ERROR)
    assert 'has not answered completely within 0.1 s' in at_start
    assert 'Nova has not answered completely within 0.1 s' in at_request


def test_no_timeout_is_longer_than_the_deadline_of_requests(conf, api):
    assert connection.from_conf(conf.conf).session.timeout == 60
    assert connection.from_conf(conf.conf, 5).session.timeout == 5
    conf.config(timeout=3, group=ia_conf.GROUP)
    assert connection.from_conf(conf.conf, 5).session.timeout == 3


def test_messages_in_nova_scheduler_name_no_options_of_commands(conf, api):
    options = connection.from_conf(conf.conf, 5).options
    assert 'aggregate_deadline = 5' in options.timeout
    assert '--' not in f'{options.timeout} {options.cafile}'
    assert '--' in connection.from_conf(conf.conf).options.timeout


@pytest.mark.parametrize('place', range(4))
def test_requests_are_isolated_during_a_second_installation(
    conf, monkeypatch, place
):
    """As by the next worker in the same process."""
    objects.register_all()
    conf.config(
        request_filters=['isolate_aggregates'],
        aggregate_source='file',
        cloud_file=str(EXAMPLE),
        group=ia_conf.GROUP,
    )
    filters = [lambda *_: False, request_filter.isolate_aggregates]
    monkeypatch.setattr(request_filter, 'ALL_REQUEST_FILTERS', filters)
    registration.install()

    def install_again(context, request_spec):
        if registration.installed() is first:
            registration.install()

    first = registration.installed()
    filters.insert(place, install_again)
    last = mock.Mock(return_value=False)
    filters.append(last)
    spec = objects.RequestSpec(
        instance_uuid='7b7e6a64-4e59-4d1a-9c0c-1f9c1e8f7d11',
        flavor=nova_flavors.small(),
    )  # fmt: skip
    request_filter.process_reqspec(nova_context.get_admin_context(), spec)
    assert registration.installed() is not first
    assert len(spec.requested_destination.forbidden_aggregates) == 1
    last.assert_called_once()


def test_the_in_tree_filter_may_have_been_removed_by_others(conf, api):
    """What another package removed is not restored, either."""
    in_tree = request_filter.isolate_aggregates
    others = [
        one for one in request_filter.ALL_REQUEST_FILTERS if one != in_tree
    ]
    with mock.patch.object(
        request_filter, 'ALL_REQUEST_FILTERS', list(others)
    ):
        for filters in (['isolate_aggregates'], ['isolate_tenants']):
            conf.config(request_filters=filters, group=ia_conf.GROUP)
            for _ in range(2):
                runner = registration.install()
                assert [*others, runner] == request_filter.ALL_REQUEST_FILTERS
        uninstalling.uninstall()
        assert others == request_filter.ALL_REQUEST_FILTERS


def test_a_directory_where_nothing_can_be_counted_does_not_stop_it(
    conf, api, caplog, tmp_path, monkeypatch
):
    # A worker changes it for its whole process.
    monkeypatch.setenv('PROMETHEUS_MULTIPROC_DIR', str(tmp_path / 'gone'))
    conf.config(
        scheduler_metrics_directory=str(tmp_path / 'gone'),
        group=ia_conf.GROUP,
    )
    with caplog.at_level(logging.INFO, 'isolate_aggregates'):
        runner = registration.install()
    assert told(caplog, logging.WARNING) == [
        'Nothing is counted for Prometheus: Configuration option '
        '[isolate_aggregates] scheduler_metrics_directory is '
        f'{tmp_path}/gone, where nothing can be written: No such file or '
        'directory.'
    ]
    assert runner in request_filter.ALL_REQUEST_FILTERS
