# SPDX-License-Identifier: Apache-2.0
"""Loading the request filters, and running them."""

import pathlib
import sys
import time

from function_filter import FunctionFilter
from oslo_config import cfg
import pytest
from stevedore import ExtensionManager

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception, filter_sets, options
from isolate_aggregates.aggregates import Aggregate, AggregateIndex, Lock
from isolate_aggregates.filters import RequestFilter, loading, pipeline
from isolate_aggregates.filters.constraints import Forbid, Refuse
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.request import Flavor
from isolate_aggregates.testing import PlainRequest

A = Aggregate('uuid-A', 'A', {'trait:X': 'required', 'reservation:1': '1'})
INDEX = AggregateIndex([A])
REQUEST = PlainRequest(Flavor('f'))


@pytest.fixture
def conf():
    conf = cfg.ConfigOpts()
    options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    return conf


@FunctionFilter
def forbid(request, aggregates):
    yield Forbid((A,), 'because')


@FunctionFilter
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


@FunctionFilter
def raises(request, aggregates):
    raise KeyError('oops')


@FunctionFilter
def yields_nonsense(request, aggregates):
    yield 'aggregate A'


@FunctionFilter
def exits(request, aggregates):
    sys.exit('there is no license server')


class OfLibrary(BaseException):
    """Like those of eventlet and asyncio, which are no subclass either."""


@FunctionFilter
def times_out(request, aggregates):
    raise OfLibrary


@pytest.mark.parametrize('broken', [raises, yields_nonsense, exits, times_out])
def test_a_filter_that_breaks_refuses_the_request(broken):
    runner = pipeline.Pipeline({'mine': broken})
    with pytest.raises(exception.FilterError, match=r'^Request filter mine '):
        runner.evaluate(REQUEST, INDEX)


class Misspelled(RequestFilter):
    def __call__(self, request, aggregates):
        return aggregates.where('all', lambda aggregate: agregate.name)  # noqa: F821

    def locks(self, aggregates):
        return [lokcs]  # noqa: F821


def line_of(text):
    """Return the place of a line of this file, as errors have it."""
    lines = pathlib.Path(__file__).read_text('utf-8').splitlines()
    [number] = [n for n, line in enumerate(lines, 1) if text in line]
    return f'({__file__}, line {number})'


def test_an_error_names_the_line_of_the_filter():
    named = pipeline.LoadedFilter('mine', Misspelled())
    with pytest.raises(exception.FilterError) as caught:
        pipeline.Pipeline([named]).evaluate(REQUEST, INDEX)
    assert str(caught.value) == (
        "Request filter mine failed with NameError: name 'agregate' is not "
        f'defined {line_of("agregate" + ".name")}; the request cannot be '
        'evaluated without it.'
    )
    with pytest.raises(exception.FilterError) as caught:
        named.locks(INDEX)
    assert str(caught.value).endswith(
        f"name 'lokcs' is not defined {line_of('[lokcs' + ']')}."
    )


def test_only_constraints_have_a_line():
    with pytest.raises(exception.FilterError) as caught:
        pipeline.Pipeline({'mine': yields_nonsense}).evaluate(REQUEST, INDEX)
    assert ', line ' not in str(caught.value)


@FunctionFilter
def unreadable(request, aggregates):
    raise exception.ServiceError('Nova', None, 'is broken.')


def test_our_own_error_is_not_blamed_on_the_filter():
    runner = pipeline.Pipeline({'mine': unreadable})
    with pytest.raises(exception.ServiceError):
        runner.evaluate(REQUEST, INDEX)


@pytest.mark.parametrize('second', [refuse, raises])
def test_a_timer_gets_the_duration_of_each_filter(second):
    took = {}
    runner = pipeline.Pipeline({'b': forbid, 'a': second}, took.__setitem__)
    started_at = time.perf_counter()
    try:
        destination = runner.evaluate(REQUEST, INDEX)
    except exception.FilterError:
        assert second is raises
    else:
        assert destination.forbidden_aggregates == {A.uuid}
        assert destination.refusals == ['no']
    assert list(took) == ['b', 'a']
    total = time.perf_counter() - started_at
    assert all(0 <= seconds <= total for seconds in took.values())


class Locking(RequestFilter):
    """A filter with a lock."""

    def __init__(self, name):
        self.lock = Lock('mine:', f'mine:{name}', (A,))

    def __call__(self, request, aggregates):
        return ()

    def locks(self, aggregates):
        yield self.lock


def test_locks_are_those_of_all_filters():
    b, a = Locking('b'), Locking('a')
    runner = pipeline.Pipeline({'b': b, 'no': forbid, 'a': a})
    assert runner.locks(INDEX) == (b.lock, a.lock)


@pytest.mark.parametrize(
    'other', [object(), lambda request, aggregates: (), Locking]
)
def test_a_filter_must_be_an_instance_of_a_subclass(other):
    with pytest.raises(exception.FilterError, match='is not a subclass of'):
        pipeline.Pipeline({'mine': other})


def test_only_subclasses_of_the_base_class_are_loaded(conf):
    with pytest.raises(exception.FilterError, match='is not a subclass of'):
        loading._build('mine', forbid, conf)


def too_few(self, request):
    return ()


def too_many(self, request, aggregates, hosts):
    return ()


@pytest.mark.parametrize('call', [too_few, too_many])
def test_a_filter_with_other_arguments_is_refused_when_it_is_created(call):
    wrong = type('Wrong', (RequestFilter,), {'__call__': call})()
    with pytest.raises(
        exception.FilterError, match=r'which cannot be called with \(request, '
    ):
        pipeline.Pipeline({'mine': wrong})


def test_by_default_isolate_aggregates_is_off(conf):
    assert filter_sets.deciding(conf).names == ('reservation_prefix',)


def test_filters_that_are_loaded_already_are_not_loaded_again(conf):
    assert filter_sets.deciding(conf, ()).names == ()


def test_locks_of_disabled_filters_are_known(conf):
    locks = filter_sets.locks(conf, INDEX)
    assert [lock.name for lock in locks] == ['trait:X']


def test_filters_get_immutable_settings(conf):
    made = {one.name: one.request_filter for one in loading.load(conf)}
    assert made['isolate_aggregates'] == IsolateAggregates(('flavor', 'image'))


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
    runner = filter_sets.deciding(conf)
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


def test_a_missing_filter_is_an_error(conf):
    conf.set_override('request_filters', ['nonesuch'], ia_conf.GROUP)
    with pytest.raises(exception.FilterError) as caught:
        filter_sets.deciding(conf)
    assert str(caught.value) == (
        'Request filter nonesuch is not installed; choose from '
        'aggregate_instance_extra_specs, blazar_reservation, '
        'isolate_aggregates, isolate_tenants, reservation_prefix.'
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
        filter_sets.deciding(conf)


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
        filter_sets.deciding(conf)


@pytest.mark.parametrize(
    'value', ['other:Filter', 'isolate_aggregates.filters:RequestFilter']
)
def test_a_filter_that_two_distributions_provide_is_refused(
    conf, tmp_path, monkeypatch, value
):
    """One of them would be chosen in silence, and may lock nothing."""
    own = 'isolate_aggregates.filters.isolate_aggregates:IsolateAggregates'

    def install(name, target):
        folder = tmp_path / name
        info = folder / f'{name}-1.0.dist-info'
        info.mkdir(parents=True)
        (folder / 'other.py').write_text('class Filter: pass\n', 'utf-8')
        (info / 'METADATA').write_text(f'Name: {name}\nVersion: 1\n', 'utf-8')
        (info / 'entry_points.txt').write_text(
            f'[{loading.NAMESPACE}]\nisolate_aggregates = {target}\n', 'utf-8'
        )
        monkeypatch.syspath_prepend(folder)
        # In one process, stevedore looks only once.
        monkeypatch.setattr(ExtensionManager, 'ENTRY_POINT_CACHE', {})

    # The same filter twice is no conflict.
    install('copy', own)
    assert loading.load(conf)
    install('other', value)
    with pytest.raises(exception.FilterError) as caught:
        loading.load(conf)
    said = str(caught.value)
    assert said.startswith(
        'Request filter isolate_aggregates is provided more than once, by '
    )
    assert f'other ({value})' in said


class WithOptions(RequestFilter):
    """A filter of another package, with its own option."""

    SETTINGS = {  # noqa: RUF012
        'color': ('mine', cfg.StrOpt('color', default='red'))
    }

    def __init__(self, color):
        self.color = color

    def __call__(self, request, aggregates):
        yield Refuse(f'the color is {self.color}')


class Unregistered(Locking):
    SETTINGS = {'color': ('mine', 'color')}  # noqa: RUF012


class UnregisteredSwitch(RequestFilter):
    ENABLED_BY = ('mine', 'enabled')

    def __call__(self, request, aggregates):
        return ()


class WrongArguments(Locking):
    def __init__(self, color):
        pass


def test_a_filter_may_have_its_own_options(conf):
    request_filter = loading._build('mine', WithOptions, conf)
    assert request_filter.request_filter.color == 'red'


@pytest.mark.parametrize(
    ('broken', 'problem'),
    [
        (
            Unregistered,
            'reads the option [mine] color, which is not registered.',
        ),
        (WrongArguments, 'cannot be created from its SETTINGS'),
    ],
)
def test_invalid_settings_are_an_error(conf, broken, problem):
    with pytest.raises(exception.FilterError) as caught:
        loading._build('mine', broken, conf)
    assert caught.value.name == 'mine'
    assert caught.value.problem.startswith(problem)


def test_an_unregistered_switch_is_an_error(conf):
    request_filter = loading._build('mine', UnregisteredSwitch, conf)
    with pytest.raises(exception.FilterError) as caught:
        filter_sets.deciding(conf, [request_filter])
    assert caught.value.problem == (
        'reads the option [mine] enabled, which is not registered.'
    )
