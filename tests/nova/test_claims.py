# SPDX-License-Identifier: Apache-2.0
"""The check after a claim, with Nova's client and a real Placement.

Claims that race are in ``tests/databases``. Here an inventory shrinks after a
claim, so that the host is oversold in the same way.
"""

import contextlib

from keystoneauth1 import exceptions as ks_exceptions
from nova import context as nova_context
from nova import exception as nova_exception
import nova.conf
from nova.scheduler.client import report
from oslo_config import fixture as config_fixture
from oslo_utils import uuidutils
import pages
import pytest
import uninstalling

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.nova import claims, registration
from isolate_aggregates_tools import embedded

SLOT = 'CUSTOM_RESERVATION_A'
VERSION = '1.36'


class Watched:
    """An adapter for Placement that disturbs a claim.

    :param after: Called after each claim that was accepted.
    """

    def __init__(self, adapter):
        self._adapter = adapter
        self.asked = []
        self.after = lambda: None
        self.failing = {}

    def __getattr__(self, name):
        return getattr(self._adapter, name)

    def _request(self, method, url, **kwargs):
        self.asked.append(f'{method} {url.rsplit("/", 1)[1]}')
        for part, failure in self.failing.items():
            if part in f'{method} {url}':
                raise failure
        return getattr(self._adapter, method)(url, raise_exc=False, **kwargs)

    def get(self, url, **kwargs):
        return self._request('get', url, **kwargs)

    def delete(self, url, **kwargs):
        return self._request('delete', url, **kwargs)

    def put(self, url, **kwargs):
        answer = self._request('put', url, **kwargs)
        if answer.status_code == 204:
            self.after()
        return answer


class Cloud:
    """Hosts with slots, and a nova-scheduler that claims them."""

    def __init__(self, adapter):
        self._adapter = adapter
        self.watched = Watched(adapter)
        self._client = report.SchedulerReportClient(self.watched)
        self._call('put', f'/resource_classes/{SLOT}')

    def _call(self, method, url, **kwargs):
        return getattr(self._adapter, method)(
            url, microversion=VERSION, **kwargs
        )

    def host(self):
        """Create a host with one slot."""
        uuid = uuidutils.generate_uuid()
        self._call(
            'post', '/resource_providers', json={'name': uuid, 'uuid': uuid}
        )
        self.resize(uuid, reserved=0)
        return uuid

    def resize(self, host, reserved):
        path = f'/resource_providers/{host}'
        now = self._call('get', path).json()['generation']
        inventories = {'VCPU': {'total': 8}, SLOT: {'total': 1}}
        inventories[SLOT]['reserved'] = reserved
        self._call(
            'put',
            f'{path}/inventories',
            json={
                'resource_provider_generation': now,
                'inventories': inventories,
            },
        )

    def oversell(self, *hosts):
        """Let hosts be oversold after each claim."""

        def shrink():
            for host in hosts:
                self.resize(host, reserved=1)

        self.watched.after = shrink

    def oversell_always(self, *hosts):
        """Let hosts be oversold after each claim, and free after each end."""
        self.oversell(*hosts)
        delete = self.watched.delete

        def then_free(url, **kwargs):
            answer = delete(url, **kwargs)
            for host in hosts:
                self.resize(host, reserved=0)
            return answer

        self.watched.delete = then_free

    def claim(self, server, host, context=None, **resources):
        return self._client.claim_resources(
            context or nova_context.get_admin_context(),
            server,
            {'allocations': {host: {'resources': resources or {SLOT: 1}}}},
            'project',
            'user',
            VERSION,
        )

    def hosts_of(self, server):
        found = self._call('get', f'/allocations/{server}').json()
        return set(found['allocations'])


@pytest.fixture
def cloud(monkeypatch):
    monkeypatch.setattr(claims, '_WAIT', 0)
    claims.install()
    with contextlib.closing(embedded.EmbeddedPlacement()) as placement:
        yield Cloud(placement.open())
    uninstalling.uninstall()


@pytest.fixture
def server():
    return uuidutils.generate_uuid()


def test_a_slot_that_is_not_oversold_stays_claimed(cloud, server):
    host = cloud.host()
    assert cloud.claim(server, host)
    assert cloud.hosts_of(server) == {host}
    assert not cloud.claim(uuidutils.generate_uuid(), host)


def test_an_oversold_slot_is_not_claimed_and_the_next_host_is(cloud, server):
    host, other = cloud.host(), cloud.host()
    cloud.oversell(host)
    assert cloud.claim(server, host) is False
    assert cloud.hosts_of(server) == set()
    assert cloud.claim(server, other)
    assert cloud.hosts_of(server) == {other}


def test_a_host_that_is_oversold_once_is_tried_again(cloud, server):
    host = cloud.host()

    def once():
        cloud.resize(host, reserved=1)
        cloud.watched.after = lambda: None
        delete = cloud.watched.delete

        def then_free(url, **kwargs):
            answer = delete(url, **kwargs)
            cloud.resize(host, reserved=0)
            return answer

        cloud.watched.delete = then_free

    cloud.watched.after = once
    assert cloud.claim(server, host)
    assert cloud.hosts_of(server) == {host}


def test_the_last_try_is_not_waited_for(cloud, server, monkeypatch):
    waits = []

    class Clock:
        monotonic = staticmethod(lambda: 0.0)
        sleep = staticmethod(waits.append)

    monkeypatch.setattr(claims, 'time', Clock)
    host = cloud.host()
    cloud.oversell_always(host)
    assert cloud.claim(server, host) is False
    assert len(waits) == claims._TRIES - 1


def test_many_oversold_hosts_do_not_use_up_the_time_of_the_conductor(
    cloud, server, monkeypatch
):
    """Nova's conductor waits a minute for all hosts of a request."""
    now = [0.0]

    class Clock:
        monotonic = staticmethod(lambda: now[0])

        @staticmethod
        def sleep(seconds):
            now[0] += seconds

    monkeypatch.setattr(claims, 'time', Clock)
    monkeypatch.setattr(claims, '_WAIT', 0.2)
    monkeypatch.setattr(claims.random, 'uniform', lambda low, high: high)
    hosts = [cloud.host() for _ in range(10)]
    cloud.oversell_always(*hosts)
    context = nova_context.get_admin_context()
    for host in hosts:
        assert cloud.claim(server, host, context=context) is False
    assert claims._LONGEST / 2 < now[0] <= claims._LONGEST


@pytest.mark.parametrize('failing', [None, 'usages', 'get /allocations'])
def test_a_slow_placement_does_not_use_up_the_time_of_the_conductor(
    cloud, server, monkeypatch, caplog, failing
):
    """Each call takes three seconds, on ten oversold or unreadable hosts."""
    now = [0.0]
    hosts = [cloud.host() for _ in range(10)]
    cloud.oversell_always(*hosts)
    request = cloud.watched._request

    class Clock:
        monotonic = staticmethod(lambda: now[0])
        sleep = staticmethod(lambda seconds: None)

    def slow(method, url, **kwargs):
        now[0] += 3
        return request(method, url, **kwargs)

    monkeypatch.setattr(claims, 'time', Clock)
    monkeypatch.setattr(cloud.watched, '_request', slow)
    if failing:
        cloud.watched.failing[failing] = ks_exceptions.ConnectTimeout()
    context = nova_context.get_admin_context()
    for host in hosts:
        assert cloud.claim(server, host, context=context) is False
    assert now[0] < 60
    assert caplog.text.count('claims of its request have failed for') == (
        failing != 'get /allocations'
    )
    assert cloud.hosts_of(server) == set()


def test_the_time_of_one_request_is_not_that_of_the_next(
    cloud, server, monkeypatch
):
    now = [0.0]

    class Clock:
        monotonic = staticmethod(lambda: now[0])
        sleep = staticmethod(lambda seconds: None)

    monkeypatch.setattr(claims, 'time', Clock)
    host, other = cloud.host(), cloud.host()
    context = nova_context.get_admin_context()
    cloud.watched.failing['usages'] = ks_exceptions.ConnectTimeout()
    assert cloud.claim(server, host, context=context) is False
    cloud.watched.failing.clear()
    now[0] = 1000.0
    assert cloud.claim(server, other, context=context) is False
    assert cloud.claim(server, other)


def test_claims_that_succeed_have_no_time_limit(cloud, monkeypatch):
    """A request may be for many servers."""
    now = [0.0]

    class Clock:
        monotonic = staticmethod(lambda: now[0])

    monkeypatch.setattr(claims, 'time', Clock)
    context = nova_context.get_admin_context()
    for _ in range(3):
        assert cloud.claim(
            uuidutils.generate_uuid(), cloud.host(), context=context
        )
        now[0] += 1000


def test_an_evacuated_server_gets_its_allocations_back(cloud, server):
    source, host = cloud.host(), cloud.host()
    assert cloud.claim(server, source)
    cloud.oversell(host)
    assert cloud.claim(server, host) is False
    assert cloud.hosts_of(server) == {source}


def test_a_server_can_leave_a_host_that_is_oversold(cloud, server):
    source, host = cloud.host(), cloud.host()
    assert cloud.claim(server, source)
    cloud.resize(source, reserved=1)
    assert cloud.claim(server, host)
    assert cloud.hosts_of(server) == {source, host}


@pytest.mark.parametrize('what', ['usages', 'inventories'])
def test_what_cannot_be_checked_is_not_claimed(cloud, server, what):
    host = cloud.host()
    cloud.watched.failing[what] = ks_exceptions.ConnectTimeout()
    assert cloud.claim(server, host) is False
    assert cloud.hosts_of(server) == set()


def test_nothing_is_claimed_if_former_allocations_are_unknown(cloud, server):
    host = cloud.host()
    cloud.watched.failing['get /allocations'] = ks_exceptions.ConnectTimeout()
    assert cloud.claim(server, host) is False
    assert cloud.watched.asked == [f'get {server}']


def test_no_other_host_is_tried_if_a_claim_cannot_be_withdrawn(cloud, server):
    host = cloud.host()
    cloud.oversell(host)
    cloud.watched.failing['delete'] = ks_exceptions.ConnectFailure()
    with pytest.raises(nova_exception.AllocationUpdateFailed) as info:
        cloud.claim(server, host)
    assert server in str(info.value)
    assert 'the claim of a slot cannot be withdrawn' in str(info.value)


def test_an_evacuation_whose_claim_cannot_be_withdrawn_fails(cloud, server):
    source, host = cloud.host(), cloud.host()
    assert cloud.claim(server, source)
    cloud.oversell(host)
    shrink = cloud.watched.after

    def then_fail():
        shrink()
        cloud.watched.failing['put'] = ks_exceptions.ConnectFailure()

    cloud.watched.after = then_fail
    with pytest.raises(nova_exception.AllocationUpdateFailed):
        cloud.claim(server, host)


def test_requests_without_a_slot_cost_nothing(cloud, server):
    host = cloud.host()
    uninstalling.uninstall()
    assert cloud.claim(uuidutils.generate_uuid(), host, VCPU=1)
    asked, cloud.watched.asked = len(cloud.watched.asked), []
    claims.install()
    assert cloud.claim(server, host, VCPU=1)
    assert len(cloud.watched.asked) == asked


@pytest.mark.parametrize('is_on', [True, False])
def test_the_option_decides(is_on):
    plain = report.SchedulerReportClient.claim_resources
    with config_fixture.Config(nova.conf.CONF) as fixture:
        ia_conf.register_opts(fixture.conf)
        fixture.config(
            request_filters=[],
            check_claims=is_on,
            aggregate_source='file',
            cloud_file=str(pages.ROOT / 'examples/licensed-rack.yaml'),
            group=ia_conf.GROUP,
        )
        registration.install()
        is_wrapped = report.SchedulerReportClient.claim_resources is not plain
        uninstalling.uninstall()
    assert is_wrapped == is_on
    assert report.SchedulerReportClient.claim_resources is plain
