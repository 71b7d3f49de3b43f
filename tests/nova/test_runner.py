# SPDX-License-Identifier: Apache-2.0
"""The request filters on requests of Nova, and on the hosts it finds."""

import logging
import signal
import time

from cases import cases
import greenlet
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
import nova_flavors
from oslo_config import cfg
from oslo_service import service
import pytest

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, Lock
from isolate_aggregates.aggregates.cache import IndexCache
from isolate_aggregates.aggregates.rollups import uuid_of
from isolate_aggregates.filters import RequestFilter
from isolate_aggregates.filters.constraints import (
    Forbid,
    LazyForbid,
    Refuse,
    Require,
)
from isolate_aggregates.filters.pipeline import LoadedFilter
from isolate_aggregates.nova import host_filter, registration
from isolate_aggregates.nova.messages import Observer
from isolate_aggregates.nova.recheck import HostCheck
from isolate_aggregates.nova.runner import Runner
from isolate_aggregates.query_limit import (
    OUR_HOST_FILTER,
    Shortener,
    forbidden_length,
    required_length,
)
from isolate_aggregates_tools.request.constraints import (
    InTree,
)

UUID = '00000000-0000-0000-0000-00000000000'
A, B = (
    Aggregate(f'{UUID}{name}', name, hosts=frozenset([f'host-{name}']))
    for name in 'ab'
)
ROLLUP = uuid_of('mine:')
FORBID = Forbid((A, B), 'because')
# The length of the query without aggregates.
REST = len('limit=1000&resources=DISK_GB%3A1%2CMEMORY_MB%3A64%2CVCPU%3A1')
CONTEXT = nova_context.get_admin_context()


class Filter(RequestFilter):
    """A filter that yields given constraints."""

    def __init__(self, *constraints):
        self.constraints = constraints
        self.requests = []

    def __call__(self, request, aggregates):
        self.requests.append(request)
        return self.constraints

    def locks(self, aggregates):
        return [Lock('mine:', 'mine:', (A, B))]


class Members:
    """The aggregates of hosts, with a count of the reads."""

    def __init__(self):
        self.asked = []

    def aggregates_of(self, hosts):
        self.asked.append(sorted(hosts))
        return {'host-a': frozenset({A.uuid})}


class Forced:
    """Lets requests pass unless it has a reason."""

    reason = None

    def __init__(self):
        self.asked = 0

    def check(self, context, spec, decision):
        assert context is CONTEXT
        self.asked += 1
        if self.reason:
            raise exception.RequestRefused([self.reason])
        return decision


class Hosts(HostCheck):
    """Checks what Nova has, and asks the fakes of a worker about the rest."""

    def __init__(self, worker):
        super().__init__(worker.members, None, 0)
        self.worker = worker

    def forced(self, *arguments):
        return self.worker.forced.check(*arguments)


class Recorder(Observer):
    """An observer that records its calls."""

    def __init__(self):
        self.told = []

    def passed(self, started_at, destination, is_shortened):
        assert 0 <= time.monotonic() - started_at < 60
        self.told.append(is_shortened)

    def refused(self, name, error):
        self.told.append((name, type(error)))

    def excluded(self, hosts, most):
        self.told.append((hosts, most))


class Worker:
    """A runner with fakes for everything that it calls."""

    def __init__(self, *filters, limit=3500):
        self.conf = cfg.ConfigOpts()
        ia_conf.register_opts(self.conf)
        self.conf.register_opt(cfg.BoolOpt('on', default=True), group='mine')
        self.conf.register_opt(
            cfg.IntOpt('max_placement_results', default=10), group='scheduler'
        )
        self.members = Members()
        self.forced = Forced()
        self.observer = Recorder()
        self.broken = False
        self.runner = Runner(
            self.conf,
            [
                LoadedFilter(f'filter{number}', one, ('mine', 'on'))
                for number, one in enumerate(filters, 1)
            ],
            IndexCache(self.read),
            Shortener(
                # Nova's own query does not matter here.
                limit and REST + limit,
                lambda index: filters[0].locks(index),
                [OUR_HOST_FILTER],
            ),
            Hosts(self),
            self.observer,
        )
        self.spec = objects.RequestSpec(
            flavor=nova_flavors.small()
        )  # fmt: skip

    def read(self):
        if self.broken:
            raise exception.ServiceError('Nova', None, 'is broken.')
        return (A, B)

    def narrow(self):
        """Do what Nova does: run our entry, and what comes after all."""
        on = self.runner(CONTEXT, self.spec)
        assert self.runner.finish(CONTEXT, self.spec) is on
        return on

    def refusal(self):
        with pytest.raises(nova_exception.RequestFilterFailed) as caught:
            self.narrow()
        assert caught.value.kwargs['reason'].endswith(CONTEXT.request_id)
        # The reasons that are logged, and not shown to the user.
        cause = caught.value.__cause__
        return (
            '; '.join(cause.reasons)
            if isinstance(cause, exception.RequestRefused)
            else str(cause)
        )

    def forbidden(self):
        return self.spec.requested_destination.forbidden_aggregates

    def objections(self):
        """Return the reasons against each host, which has one node."""
        nodes = {'node-a': 'host-a', 'node-c': 'host-c'}
        reasons = self.runner.objections(self.spec, nodes)
        return {nodes[node]: why for node, why in reasons.items()}


@pytest.fixture(autouse=True)
def heard(monkeypatch):
    """Enable logging, whatever other tests have configured."""
    monkeypatch.setattr(logging.root.manager, 'disable', logging.NOTSET)
    names = (
        '', '.nova', '.nova.host_filter', '.nova.messages'
    )  # fmt: skip
    for logger in (logging.getLogger(f'isolate_aggregates{n}') for n in names):
        monkeypatch.setattr(logger, 'disabled', False)
        monkeypatch.setattr(logger, 'propagate', True)
        logger.setLevel(logging.NOTSET)


@pytest.fixture(scope='module', autouse=True)
def _nova():
    objects.register_all()


def test_a_narrowed_request_is_sent_to_placement():
    worker = Worker(Filter(FORBID))
    assert worker.narrow() is True
    assert worker.forbidden() == {A.uuid, B.uuid}
    assert worker.observer.told == [False]


def test_without_an_enabled_filter_nothing_is_read():
    mine = Filter(FORBID)
    worker = Worker(mine)
    worker.conf.set_override('on', False, group='mine')
    assert worker.narrow() is False
    assert 'requested_destination' not in worker.spec
    assert worker.objections() == {}
    assert (mine.requests, worker.observer.told) == ([], [])
    worker.conf.clear_override('on', group='mine')
    assert worker.narrow() is True
    assert len(mine.requests) == 1


@pytest.mark.parametrize('limit', [forbidden_length(1), forbidden_length(2)])
def test_a_query_is_shortened_only_if_it_would_be_too_long(limit):
    worker = Worker(Filter(FORBID), limit=limit)
    worker.narrow()
    shortened = limit == forbidden_length(1)
    assert worker.forbidden() == ({ROLLUP} if shortened else {A.uuid, B.uuid})
    assert worker.observer.told == [shortened]


def test_aggregates_already_in_the_request_take_space():
    worker = Worker(Filter(FORBID), limit=forbidden_length(3))
    other = f'{UUID}c'
    worker.spec.requested_destination = objects.Destination(
        forbidden_aggregates={other}
    )
    worker.narrow()
    # The beginning of the parameter is counted twice.
    assert worker.forbidden() == {ROLLUP, other}


def test_constraints_that_nova_adds_later_take_space():
    worker = Worker(Filter(FORBID), limit=forbidden_length(2))
    worker.runner(CONTEXT, worker.spec)
    worker.spec.root_required.add('CUSTOM_LATE')
    worker.runner.finish(CONTEXT, worker.spec)
    assert worker.forbidden() == {ROLLUP}


def test_a_request_seen_by_a_replaced_runner_is_finished():
    """A runner that was replaced while it handled the request."""
    worker = Worker(Filter(FORBID))
    assert worker.runner.finish(CONTEXT, worker.spec)
    assert worker.forbidden() == {A.uuid, B.uuid}
    assert worker.observer.told == [False]
    worker = Worker(Filter(Refuse('not today')))
    with pytest.raises(nova_exception.RequestFilterFailed):
        worker.runner.finish(CONTEXT, worker.spec)


def test_forced_hosts_are_checked_before_a_shortened_query():
    worker = Worker(Filter(FORBID), limit=forbidden_length(1))
    worker.forced.reason = 'not there'
    assert worker.refusal() == 'not there'
    assert worker.observer.told == [('', exception.RequestRefused)]
    worker = Worker(Filter(FORBID))
    worker.narrow()
    assert worker.forced.asked == 0


def test_hosts_are_checked_for_an_unfinished_request():
    """Its query does not have the forbidden aggregates."""
    worker = Worker(Filter(FORBID))
    worker.runner(CONTEXT, worker.spec)
    assert worker.objections()['host-a'] == ['aggregates a, b: because']


def test_a_refusal_has_all_reasons_and_the_name_of_the_first_filter():
    worker = Worker(Filter(), Filter(Refuse('no')), Filter(Refuse('never')))
    assert worker.refusal() == 'no; never'
    assert worker.observer.told == [('filter2', exception.RequestRefused)]


def test_a_query_that_does_not_fit_is_refused():
    worker = Worker(Filter(FORBID, Require((A,), 'because')), limit=10)
    # Nova runs no host filter that could check it.
    worker.spec.force_hosts = ['host-a']
    assert 'for 1 required aggregates' in worker.refusal()
    assert worker.observer.told == [
        ('max_query_length', exception.QueryNotShortened)
    ]


def test_a_filter_that_fails_refuses_and_is_named():
    broken = Filter('nonsense')
    worker = Worker(broken)
    assert worker.refusal().startswith('Request filter filter1 failed with')
    assert worker.observer.told == [('filter1', exception.FilterError)]


@pytest.mark.parametrize(
    'error',
    [service.SignalExit(signal.SIGHUP), greenlet.GreenletExit()],
    ids=lambda error: type(error).__name__,
)
def test_a_filter_does_not_keep_nova_scheduler_from_stopping(error):
    class Stopped(Filter):
        def __call__(self, request, aggregates):
            raise error

        def locks(self, aggregates):
            raise error

    worker = Worker(Stopped())
    with pytest.raises(type(error)):
        worker.narrow()
    with pytest.raises(type(error)):
        LoadedFilter('mine', Stopped()).locks(None)


def test_without_aggregates_there_is_no_filter_to_blame():
    worker = Worker(Filter(FORBID))
    worker.broken = True
    assert 'Nova is broken' in worker.refusal()
    assert worker.observer.told == [('', exception.AggregatesUnreadable)]


@pytest.mark.parametrize('server', [f'{UUID}1', None])
def test_a_refusal_is_logged_with_its_server(caplog, server):
    worker = Worker(Filter(Refuse('no')))
    if server:
        worker.spec.instance_uuid = server
    with caplog.at_level(logging.INFO):
        worker.refusal()
    assert caplog.messages == [
        f'Refused to schedule server {server} of project None, request '
        f'{CONTEXT.request_id}: no'
    ]


@pytest.mark.parametrize(
    'broken', [False, True], ids=['by a filter', 'without aggregates']
)
def test_users_see_the_same_sentence_for_each_reason(broken):
    worker = Worker(Filter(Refuse('reservation 1 is of another project')))
    worker.broken = broken
    with pytest.raises(nova_exception.RequestFilterFailed) as caught:
        worker.narrow()
    assert caught.value.message == (
        'Scheduling failed: no host may be used for this request; an operator '
        f'can look up the reason by its request ID, {CONTEXT.request_id}'
    )


FORGED = 'x\n2026-11-22 INFO nova FORGED\x1b[31m\x9b\u2028\u202e\x7f'
SHOWN = r'x\n2026-11-22 INFO nova FORGED\x1b[31m\x9b\u2028\u202e\x7f'


@pytest.mark.parametrize(
    'constraint', [Refuse(FORGED), Forbid((A,), FORGED)], ids=type
)
def test_no_text_of_a_tenant_can_forge_a_line_of_the_log(
    caplog, install, constraint
):
    worker = Worker(Filter(constraint))
    worker.spec.project_id = FORGED
    install(worker.runner)
    with caplog.at_level(logging.DEBUG):
        # Once as a rebuild, and once as a boot.
        assert passing(worker.spec) in ([], ['host-c'])
        if isinstance(constraint, Refuse):
            assert worker.refusal() == SHOWN
        else:
            worker.narrow()
    assert caplog.messages
    for message in caplog.messages:
        assert SHOWN in message
        assert message.isprintable()


def test_reasons_that_are_not_logged_are_not_computed(caplog):
    caplog.set_level(logging.INFO)
    made = []
    worker = Worker(Filter(LazyForbid(frozenset({A.uuid}), made.append)))
    worker.narrow()
    assert made == []
    assert caplog.messages == []


# Hosts of requests that did not go through Placement are checked.


def test_hosts_of_an_unseen_request_are_checked():
    worker = Worker(Filter(FORBID))
    assert worker.objections() == {'host-a': ['aggregates a, b: because']}
    assert worker.members.asked == [['host-a', 'host-c']]


def test_hosts_are_checked_for_required_aggregates():
    worker = Worker(Filter(Require((A,), 'because')))
    assert worker.objections() == {
        'host-c': ['aggregate a: because'],
    }


def test_hosts_checked_by_placement_are_not_checked_again():
    worker = Worker(Filter(FORBID))
    worker.narrow()
    assert worker.objections() == {}
    assert worker.members.asked == []


def test_hosts_are_checked_again_if_the_query_was_shortened():
    mine = Filter(FORBID)
    worker = Worker(mine, limit=forbidden_length(1))
    worker.narrow()
    assert worker.objections()['host-a'] == ['aggregates a, b: because']
    # The hosts are judged by the conclusions made for the query.
    assert len(mine.requests) == 1


@cases(
    ('constraints', 'reasons'),
    {
        'no opinion': ([], {}),
        'nothing about aggregates': ([InTree('u', 'x')], {}),
        'refused': (
            [FORBID, Refuse('no')],
            {'host-a': ['no'], 'host-c': ['no']},
        ),
    },
)
def test_aggregates_of_hosts_are_read_only_if_needed(constraints, reasons):
    worker = Worker(Filter(*constraints))
    assert worker.objections() == reasons
    assert worker.members.asked == []


def test_hosts_are_checked_for_a_refused_request():
    worker = Worker(Filter(Refuse('no')))
    worker.refusal()
    assert worker.objections() == {'host-a': ['no'], 'host-c': ['no']}


class Keyed(Filter):
    IMAGE_KEYS = ('mine:*',)


class Needy(Filter):
    IMAGE_PROPERTIES = ('mine:*',)


def test_without_a_record_no_key_of_the_image_counts():
    """Without the record, no key counts, and image properties are unknown."""
    image = objects.ImageMeta(
        id=f'{UUID}1', properties=objects.ImageMetaProps()
    )
    worker = Worker(Keyed(FORBID))
    worker.spec.image = image
    assert worker.objections()['host-a'] == ['aggregates a, b: because']
    worker = Worker(Needy(FORBID))
    worker.spec.image = image
    with pytest.raises(exception.RequestRefused, match=r'mine:\*'):
        worker.objections()


# Nova's host filter, which calls objections().


class State:
    def __init__(self, host):
        self.host = host
        self.uuid = host.replace('host', 'node')
        self.allocation_candidates = []


def passing(spec):
    """Return the hosts that pass, both together and one by one."""
    states = [State(host) for host in ('host-a', 'host-c')]
    request_filter = host_filter.IsolatedAggregatesFilter()
    found = [one.host for one in request_filter.filter_all(states, spec)]
    assert found == [
        one.host for one in states if request_filter.host_passes(one, spec)
    ]
    return found


@pytest.fixture
def install(monkeypatch):
    """Put a worker in the place of the installed one."""
    return lambda runner: monkeypatch.setattr(registration, '_runner', runner)


@pytest.mark.parametrize(
    ('constraints', 'hosts'),
    [([], ['host-a', 'host-c']), ([FORBID], ['host-c']), ([Refuse('no')], [])],
)
def test_a_host_without_objections_passes(install, caplog, constraints, hosts):
    worker = Worker(Filter(*constraints))
    install(worker.runner)
    with caplog.at_level(logging.INFO):
        assert passing(worker.spec) == hosts
    for host in ('host-a', 'host-c'):
        logged = (
            f'Host {host} may not be used for server None of' in caplog.text
        )
        assert logged is (host not in hosts)


def test_every_host_that_placement_has_checked_passes(install):
    worker = Worker(Filter(FORBID))
    install(worker.runner)
    worker.narrow()
    assert passing(worker.spec) == ['host-a', 'host-c']


def test_no_host_passes_if_the_check_fails(install, caplog):
    worker = Worker(Filter(FORBID))
    worker.broken = True
    install(worker.runner)
    worker.spec.instance_uuid = f'{UUID}1'
    with caplog.at_level(logging.INFO):
        assert passing(worker.spec) == []
    assert (
        f'Host host-a may not be used for server {UUID}1 of project None: The '
        'host '
    ) in caplog.text


def test_many_hosts_are_counted_and_not_logged(install, caplog):
    """A shortened query may return a thousand of them, for each request."""
    worker = Worker(Filter(FORBID))
    worker.broken = True
    install(worker.runner)
    states = [State(f'host-{number:03}') for number in range(100)]
    request_filter = host_filter.IsolatedAggregatesFilter()
    with caplog.at_level(logging.INFO):
        assert list(request_filter.filter_all(states, worker.spec)) == []
    told = [text for text in caplog.messages if ' for server None ' in text]
    assert told == [
        '100 hosts may not be used for server None of project None; the '
        'reasons are logged at DEBUG.'
    ]


def test_no_host_passes_without_request_filters(install, caplog):
    install(None)
    assert passing(objects.RequestSpec()) == []
    assert 'no host passes' in caplog.text


# What is left to host filters.

LEFT = Require((A, B), 'flavor f requires ssd=true')


def leaving(*constraints, **fields):
    """Return a worker whose queries have no room for required aggregates."""
    found = Filter(LEFT, *constraints)
    worker = Worker(found, limit=1)
    for name, value in fields.items():
        setattr(worker.spec, name, value)
    return worker


def test_requirements_left_to_a_host_filter_are_checked_later(caplog):
    worker = leaving()
    with caplog.at_level(logging.WARNING):
        worker.narrow()
    assert worker.spec.requested_destination is None
    assert worker.objections() == {
        'host-c': ['aggregates a, b: flavor f requires ssd=true'],
    }
    assert worker.observer.told == [True, (1, 10)]
    assert caplog.messages == [
        'The query to Placement for server None of project None would be '
        'longer than [isolate_aggregates] max_query_length, so these '
        'constraints are left to IsolatedAggregatesFilter. Host filters check '
        'only the hosts that Placement returns, at most [scheduler] '
        'max_placement_results. This is logged only once: aggregates a, b: '
        'flavor f requires ssd=true'
    ]
    caplog.clear()
    worker.spec = worker.spec.obj_clone()
    with caplog.at_level(logging.WARNING):
        worker.narrow()
    assert caplog.messages == []


def test_candidates_are_checked_in_placement_after_a_shortened_query():
    worker = leaving()
    assert worker.runner.candidate_check(worker.spec) is None
    worker.narrow()
    assert worker.runner.candidate_check(worker.spec)
    # Of another request nothing is known.
    assert worker.runner.candidate_check(worker.spec.obj_clone()) is None


def test_no_candidate_is_checked_after_a_full_query():
    worker = Worker(Filter(FORBID))
    worker.narrow()
    assert worker.runner.candidate_check(worker.spec) is None


def test_requirements_of_another_filter_stay():
    both = ','.join(sorted([A.uuid, B.uuid]))
    theirs = objects.Destination(aggregates=[both, A.uuid])
    worker = Worker(
        Filter(LEFT),
        limit=required_length(2) + required_length(1),
    )
    worker.spec.requested_destination = theirs
    worker.narrow()
    found = worker.spec.requested_destination.aggregates
    assert sorted(found) == sorted([both, A.uuid])


def test_a_forced_host_leaves_no_requirement_to_a_host_filter():
    worker = leaving(force_hosts=['host-a'])
    assert 'on a forced host' in worker.refusal()
    worker = leaving(force_nodes=['node-a'])
    assert 'on a forced host' in worker.refusal()


def test_a_rebuild_is_checked_against_all_requirements():
    worker = leaving()
    assert worker.objections()['host-c']
