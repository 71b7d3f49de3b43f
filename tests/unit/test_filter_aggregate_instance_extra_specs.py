# SPDX-License-Identifier: Apache-2.0
"""The filter aggregate_instance_extra_specs."""

import pytest

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.aggregate_instance_extra_specs import (
    AggregateInstanceExtraSpecs,
    BadExtraSpec,
    BadMetadata,
    NoSuchMetadata,
    WantsMetadata,
)
from isolate_aggregates.filters.constraints import Refuse, Require
from isolate_aggregates.filters.wanted import HOST_FILTER, Wanted
from isolate_aggregates.request import Flavor, Request

SCOPED = 'aggregate_instance_extra_specs:'
FAST = Aggregate('uuid-fast', 'fast', {'ssd': 'true', 'gpus': '4, 2'})
SLOW = Aggregate('uuid-slow', 'slow', {'ssd': 'false', 'gpus': '1'})
ZONE = Aggregate('uuid-zone', 'zone', availability_zone='az1')
NAMED = Aggregate('uuid-named', 'named', {'gpus': 'many', 'a:b': ''})
INDEX = AggregateIndex([FAST, SLOW, ZONE])


def conclusions(extra_specs, index=INDEX):
    request = Request(Flavor('f', extra_specs=extra_specs))
    return list(AggregateInstanceExtraSpecs()(request, index))


@pytest.mark.parametrize(
    ('extra_specs', 'required'),
    [
        pytest.param({SCOPED + 'ssd': 'true'}, [(FAST,)], id='scoped'),
        pytest.param({'ssd': 'false'}, [(SLOW,)], id='without a scope'),
        pytest.param({'hw:ssd': 'x', ':ssd': 'x'}, [], id='other scopes'),
        pytest.param({}, [], id='nothing is wanted'),
        pytest.param(
            {'ssd': '<or> true <or> false'}, [(FAST, SLOW)], id='alternatives'
        ),
        pytest.param({'gpus': '>= 2'}, [(FAST,)], id='one of a list'),
        pytest.param({'gpus': '!= 4'}, [(FAST, SLOW)], id='any of a list'),
        pytest.param(
            {'ssd': 's!= x', 'gpus': '<= 1'},
            [(FAST, SLOW), (SLOW,)],
            id='both of two',
        ),
        pytest.param({'availability_zone': 'az1'}, [(ZONE,)], id='a zone'),
    ],
)
def test_wanted_metadata_requires_the_aggregates_that_have_it(
    extra_specs, required
):
    found = conclusions(extra_specs)
    assert [one.aggregates for one in found] == required
    assert {type(one) for one in found} <= {Require}
    # Where it is enabled, it passes no other hosts.
    assert {one.host_filter for one in found} <= {HOST_FILTER}


def test_a_scope_ends_with_the_first_colon():
    index = AggregateIndex([NAMED])
    [found] = conclusions({SCOPED + 'a:b': ''}, index)
    assert found.aggregates == (NAMED,)


@pytest.mark.parametrize('value', ['slow', '<in>', 's==', '=', ' ', '> 1'])
def test_metadata_that_no_aggregate_has_is_refused(value):
    [found] = conclusions({'ssd': value})
    wanted = Wanted('ssd', value, 'ssd')
    assert found == Refuse(NoSuchMetadata('f', wanted), HOST_FILTER)


@pytest.mark.parametrize(
    'value', ['>= many', '= x', '== x', '!= x', '<= x', '<or>']
)
def test_an_extra_spec_that_makes_nova_fail_is_refused(value):
    # Whether or not there is something to compare with.
    for index in (INDEX, AggregateIndex()):
        [found] = conclusions({SCOPED + 'gpus': value}, index)
        wanted = Wanted('gpus', value, SCOPED + 'gpus')
        assert found == Refuse(BadExtraSpec('f', wanted), HOST_FILTER)


def test_metadata_that_makes_nova_fail_is_refused():
    index = AggregateIndex([FAST, NAMED, SLOW])
    [found] = conclusions({'gpus': '>= 2'}, index)
    wanted = Wanted('gpus', '>= 2', 'gpus')
    assert found.cause == BadMetadata('f', wanted, 'named', 'many')
    # As text it can be compared.
    [found] = conclusions({'gpus': 's== many'}, index)
    assert found.aggregates == (NAMED,)


def test_the_causes_give_the_repair():
    wanted = Wanted('gpus', '>= 2', SCOPED + 'gpus')
    bad = Wanted('gpus', '>= two', SCOPED + 'gpus')
    alternatives = Wanted('gpus', '<or>', 'gpus')
    assert [
        str(cause)
        for cause in (
            WantsMetadata('f', wanted),
            WantsMetadata('f', Wanted('ssd', 'true', 'ssd')),
            NoSuchMetadata('f', wanted),
            BadExtraSpec('f', bad),
            BadExtraSpec('f', alternatives),
            BadMetadata('f', wanted, 'a', 'many'),
        )
    ] == [
        'flavor f requires gpus >= 2',
        'flavor f requires ssd=true',
        'no aggregate has metadata that matches gpus >= 2, which flavor f '
        'requires',
        'flavor f has the extra spec aggregate_instance_extra_specs:gpus='
        '>= two, and two is not a number; correct the extra spec',
        'flavor f has the extra spec gpus=<or>, and <or> has no value after '
        'it; correct the extra spec',
        'flavor f requires gpus >= 2, and aggregate a has gpus=many, which is '
        'not a number; correct the metadata',
    ]
