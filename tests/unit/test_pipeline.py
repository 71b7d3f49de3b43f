# SPDX-License-Identifier: Apache-2.0
"""Loading the request filters, and running them."""

from oslo_config import cfg
import pytest

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters import loading, pipeline
from isolate_aggregates.filters.constraints import Forbid, Refuse
from isolate_aggregates.request import Flavor, Request

A = Aggregate('uuid-A', 'A', {'trait:X': 'required', 'reservation:1': '1'})
INDEX = AggregateIndex([A])
REQUEST = Request(Flavor('f'))


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
    runner = pipeline.Pipeline({'b': forbid, 'a': forbid})
    destination = runner.evaluate(REQUEST, INDEX)
    assert [c.filter_name for c in destination.conclusions] == ['b', 'a']


def test_every_filter_speaks_even_after_a_refusal():
    runner = pipeline.Pipeline({'one': refuse, 'two': refuse})
    destination = runner.evaluate(REQUEST, INDEX)
    assert destination.refusals == ['no', 'no']
    assert destination.refused_by == 'one'


def raises(request, aggregates):
    raise KeyError('oops')


def yields_nonsense(request, aggregates):
    yield 'aggregate A'


@pytest.mark.parametrize('broken', [raises, yields_nonsense])
def test_a_filter_that_breaks_refuses_the_request(broken):
    runner = pipeline.Pipeline({'mine': broken})
    with pytest.raises(exception.FilterError, match=r'^Request filter mine '):
        runner.evaluate(REQUEST, INDEX)


@pytest.mark.parametrize(
    'shape', [object(), lambda request: [], lambda a, b, c: []]
)
def test_a_filter_of_the_wrong_shape_is_refused_when_it_is_registered(shape):
    with pytest.raises(exception.FilterError, match='mine is not callable'):
        pipeline.Pipeline({'mine': shape})


def test_by_default_isolate_aggregates_is_off(conf):
    assert loading.deciding(conf).names == ('reservation_prefix',)


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
    runner = loading.deciding(conf)
    destination = runner.evaluate(REQUEST, INDEX)
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
        loading.deciding(conf)
    assert str(caught.value) == (
        'Request filter nonesuch is not installed; known are '
        'blazar_reservation, isolate_aggregates, isolate_tenants, '
        'reservation_prefix.'
    )


def test_a_filter_named_twice_is_a_mistake(conf):
    conf.set_override(
        'request_filters',
        ['isolate_tenants', 'isolate_tenants'],
        ia_conf.GROUP,
    )
    with pytest.raises(
        exception.ConfigError, match='names isolate_tenants tw'
    ):
        loading.deciding(conf)


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
        loading.deciding(conf)


def test_all_installed_filters_are_listed_those_that_run_first(conf):
    rows = loading.installed_filters(conf)
    assert [(row.name, row.enabled, row.note) for row in rows] == [
        ('reservation_prefix', True, 'number 2 of 2'),
        (
            'compute_status',
            True,
            'outside nova-scheduler, where Nova itself does the same',
        ),
        (
            'requested_host',
            True,
            'outside nova-scheduler, where Nova itself does the same',
        ),
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
    made = loading._build('mine', WithOptions, conf)
    assert made.request_filter.color == 'red'


@pytest.mark.parametrize('broken', [Unregistered, WrongArguments])
def test_settings_that_do_not_fit_stop_everything(conf, broken):
    with pytest.raises(exception.FilterError, match=r'^Request filter mine'):
        loading._build('mine', broken, conf)
