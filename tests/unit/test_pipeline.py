# SPDX-License-Identifier: Apache-2.0
"""Loading the request filters, and running them."""

from oslo_config import cfg
import pytest

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters import pipeline
from isolate_aggregates.filters.destination import Forbid, Refuse
from isolate_aggregates.request import Flavor, RequestSpec

A = Aggregate('uuid-A', 'A', {'trait:X': 'required', 'reservation:1': '1'})
INDEX = AggregateIndex([A])
REQUEST = RequestSpec(Flavor('f'))


@pytest.fixture
def conf():
    conf = cfg.ConfigOpts()
    ia_conf.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    return conf


def forbid(request, aggregates):
    yield Forbid((A,), 'because')


def refuse(request, aggregates):
    yield Refuse('no')


def test_filters_run_in_order_and_their_names_are_kept():
    destination = pipeline.Pipeline({'b': forbid, 'a': forbid}).run(
        REQUEST, INDEX
    )
    assert [c.filter_name for c in destination.conclusions] == ['b', 'a']


def test_a_refusal_is_raised_after_every_filter_has_spoken():
    runner = pipeline.Pipeline({'one': refuse, 'two': refuse})
    with pytest.raises(exception.RequestRefused, match='no; no'):
        runner.run(REQUEST, INDEX)
    assert runner.evaluate(REQUEST, INDEX).refusals == ['no', 'no']


def raises(request, aggregates):
    raise KeyError('oops')


def yields_nonsense(request, aggregates):
    yield 'aggregate A'


@pytest.mark.parametrize('broken', [raises, yields_nonsense])
def test_a_filter_that_breaks_refuses_the_request(broken):
    runner = pipeline.Pipeline({'mine': broken})
    with pytest.raises(exception.FilterError, match=r'^Request filter mine '):
        runner.run(REQUEST, INDEX)


@pytest.mark.parametrize(
    'shape', [object(), lambda request: [], lambda a, b, c: []]
)
def test_a_filter_of_the_wrong_shape_is_refused_when_it_is_registered(shape):
    with pytest.raises(exception.FilterError, match='mine is not callable'):
        pipeline.Pipeline({'mine': shape})


def test_by_default_isolate_aggregates_is_off(conf):
    assert pipeline.Pipeline.from_conf(conf).names == (
        'reservation_prefix',
        'requested_host',
        'compute_status',
    )


def test_the_configuration_orders_and_sets_up_the_filters(conf):
    conf.set_override(
        'enable_isolated_aggregate_filtering', True, ia_conf.SCHEDULER
    )
    conf.set_override(
        'placement_req_default_forbidden_member_prefix',
        ['reservation:'],
        ia_conf.SCHEDULER,
    )
    conf.set_override(
        'request_filters',
        ['reservation_prefix', 'isolate_aggregates'],
        ia_conf.GROUP,
    )
    runner = pipeline.Pipeline.from_conf(conf)
    destination = runner.run(REQUEST, INDEX)
    assert [
        (c.filter_name, c.constraint.reason) for c in destination.conclusions
    ] == [
        (
            'reservation_prefix',
            'aggregate A: kept for requests that name their reservation: '
            'key, and flavor f does not name one',
        ),
        (
            'isolate_aggregates',
            'aggregate A: locked by trait X, which flavor f does not require',
        ),
    ]


def test_a_filter_that_is_not_installed_stops_everything(conf):
    conf.set_override('request_filters', ['nonesuch'], ia_conf.GROUP)
    with pytest.raises(exception.FilterError) as caught:
        pipeline.Pipeline.from_conf(conf)
    assert str(caught.value) == (
        'Request filter nonesuch is not installed; known are '
        'blazar_reservation, compute_status, isolate_aggregates, '
        'isolate_tenants, requested_host, reservation_prefix.'
    )


def test_a_filter_named_twice_is_a_mistake(conf):
    conf.set_override(
        'request_filters', ['compute_status', 'compute_status'], ia_conf.GROUP
    )
    with pytest.raises(exception.ConfigError, match='names compute_status tw'):
        pipeline.Pipeline.from_conf(conf)


@pytest.mark.parametrize(
    'prefix', ['', 'a b:', 'trait:', 'tr', 'resources', 'hw:numa', 'filter_']
)
@pytest.mark.parametrize(
    'option',
    [
        'placement_req_required_member_prefix',
        'placement_req_default_forbidden_member_prefix',
    ],
)
def test_a_prefix_must_not_reach_into_keys_of_nova(conf, option, prefix):
    conf.set_override(option, [prefix], ia_conf.SCHEDULER)
    with pytest.raises(
        exception.ConfigError, match=f'has the prefix {prefix!r}'
    ):
        pipeline.Pipeline.from_conf(conf)


def test_all_installed_filters_are_listed_those_that_run_first(conf):
    rows = pipeline.installed_filters(conf)
    assert [(row.name, row.enabled, row.note) for row in rows] == [
        ('reservation_prefix', True, 'number 2 of 4'),
        ('requested_host', True, 'number 3 of 4'),
        ('compute_status', True, 'number 4 of 4'),
        (
            'isolate_aggregates',
            False,
            '[scheduler] enable_isolated_aggregate_filtering is false',
        ),
        (
            'blazar_reservation',
            False,
            'not named in [isolate_aggregates] request_filters',
        ),
        (
            'isolate_tenants',
            False,
            'not named in [isolate_aggregates] request_filters',
        ),
    ]
    assert all(row.origin.startswith('isolate-aggregates ') for row in rows)


class WithOptions:
    """A filter of somebody else, with an option of its own."""

    SETTINGS = {'color': ('mine', 'color')}  # noqa: RUF012

    @staticmethod
    def register_opts(conf):
        conf.register_opt(cfg.StrOpt('color', default='red'), group='mine')

    def __init__(self, color):
        self.color = color

    def __call__(self, request, aggregates):
        yield Refuse(f'the color is {self.color}')


class Unregistered:
    SETTINGS = {'color': ('mine', 'color')}  # noqa: RUF012


class WrongArguments:
    def __init__(self, color):
        pass


def test_a_filter_may_bring_its_own_options(conf):
    made = pipeline._build('mine', WithOptions, conf)
    assert made.color == 'red'


@pytest.mark.parametrize('broken', [Unregistered, WrongArguments])
def test_settings_that_do_not_fit_stop_everything(conf, broken):
    with pytest.raises(exception.FilterError, match=r'^Request filter mine'):
        pipeline._build('mine', broken, conf)
