# SPDX-License-Identifier: Apache-2.0
"""The filter aggregate_instance_extra_specs."""

from cases import cases
import pytest

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.aggregate_instance_extra_specs import (
    AggregateInstanceExtraSpecs,
)
from isolate_aggregates.filters.constraints import Cause, Refuse, Require
from isolate_aggregates.filters.required_metadata import HOST_FILTER
from isolate_aggregates.request import Flavor
from isolate_aggregates.testing import PlainRequest

SCOPED = 'aggregate_instance_extra_specs:'
FAST = Aggregate('uuid-fast', 'fast', {'ssd': 'true', 'gpus': '4, 2'})
SLOW = Aggregate('uuid-slow', 'slow', {'ssd': 'false', 'gpus': '1'})
ZONE = Aggregate('uuid-zone', 'zone', availability_zone='az1')
NAMED = Aggregate('uuid-named', 'named', {'gpus': 'many', 'a:b': ''})
INDEX = AggregateIndex([FAST, SLOW, ZONE])


def conclusions(extra_specs, index=INDEX):
    request = PlainRequest(Flavor('f', extra_specs=extra_specs))
    return list(AggregateInstanceExtraSpecs()(request, index))


@cases(
    ('extra_specs', 'required'),
    {
        'scoped': ({SCOPED + 'ssd': 'true'}, [(FAST,)]),
        'without a scope': ({'ssd': 'false'}, [(SLOW,)]),
        'other scopes': ({'hw:ssd': 'x', ':ssd': 'x'}, []),
        'nothing is required': ({}, []),
        'alternatives': ({'ssd': '<or> true <or> false'}, [(FAST, SLOW)]),
        'one of a list': ({'gpus': '>= 2'}, [(FAST,)]),
        'any of a list': ({'gpus': '!= 4'}, [(FAST, SLOW)]),
        'both of two': (
            {'ssd': 's!= x', 'gpus': '<= 1'},
            [(FAST, SLOW), (SLOW,)],
        ),
        'a zone': ({'availability_zone': 'az1'}, [(ZONE,)]),
    },
)
def test_required_metadata_requires_the_aggregates_that_have_it(
    extra_specs, required
):
    results = conclusions(extra_specs)
    assert [one.aggregates for one in results] == required
    assert {type(one) for one in results} <= {Require}
    # Where it is enabled, it passes no other hosts.
    assert {one.host_filter for one in results} <= {HOST_FILTER}


def test_a_scope_ends_with_the_first_colon():
    index = AggregateIndex([NAMED])
    [conclusion] = conclusions({SCOPED + 'a:b': ''}, index)
    assert conclusion.aggregates == (NAMED,)


@pytest.mark.parametrize('value', ['slow', '<in>', 's==', '=', ' ', '> 1'])
def test_metadata_that_no_aggregate_has_is_refused(value):
    [conclusion] = conclusions({'ssd': value})
    assert (conclusion.cause.kind, conclusion.host_filter) == (
        'no-matching-metadata',
        HOST_FILTER,
    )


@pytest.mark.parametrize(
    'value', ['>= many', '= x', '== x', '!= x', '<= x', '<or>']
)
def test_an_extra_spec_that_makes_nova_fail_is_refused(value):
    # Whether or not an aggregate has the metadata.
    for index in (INDEX, AggregateIndex()):
        [conclusion] = conclusions({SCOPED + 'gpus': value}, index)
        assert isinstance(conclusion, Refuse)
        assert (conclusion.cause.kind, conclusion.host_filter) == (
            'invalid-extra-spec',
            HOST_FILTER,
        )


def test_metadata_that_makes_nova_fail_is_refused():
    index = AggregateIndex([FAST, NAMED, SLOW])
    [conclusion] = conclusions({'gpus': '>= 2'}, index)
    assert isinstance(conclusion, Refuse)
    assert conclusion.cause.kind == 'invalid-metadata'
    # As text it can be compared.
    [conclusion] = conclusions({'gpus': 's== many'}, index)
    assert conclusion.aggregates == (NAMED,)


@pytest.mark.parametrize(
    ('extra_specs', 'cause'),
    [
        (
            {'ssd': 'true'},
            Cause('required-metadata', 'flavor f requires ssd=true'),
        ),
        (
            {'gpus': 's== 4'},
            Cause('required-metadata', 'flavor f requires gpus s== 4'),
        ),
        (
            {'cores': '>= 2'},
            Cause(
                'no-matching-metadata',
                'no aggregate has metadata that matches cores >= 2, which '
                'flavor f requires',
            ),
        ),
        (
            {SCOPED + 'gpus': '>= two'},
            Cause(
                'invalid-extra-spec',
                'flavor f has the extra spec '
                'aggregate_instance_extra_specs:gpus=>= two, and two is not a '
                'number; correct the extra spec',
            ),
        ),
        (
            {'gpus': '<or>'},
            Cause(
                'invalid-extra-spec',
                'flavor f has the extra spec gpus=<or>, and <or> has no value '
                'after it; correct the extra spec',
            ),
        ),
        (
            {'gpus': '>= 2'},
            Cause(
                'invalid-metadata',
                'flavor f requires gpus >= 2, and aggregate named has '
                'gpus=many, which is not a number; correct the metadata',
            ),
        ),
    ],
)
def test_the_cause_names_the_repair(extra_specs, cause):
    index = AggregateIndex([FAST, SLOW, NAMED])
    [conclusion] = conclusions(extra_specs, index)
    assert conclusion.cause == cause
