# SPDX-License-Identifier: Apache-2.0
"""The objections of filters to a host that is already chosen."""

import pytest

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.filters.constraints import (
    Destination,
    Forbid,
    Refuse,
    Require,
)
from isolate_aggregates.tools.request.constraints import (
    ForbidRootTrait,
    InTree,
)

A, B, C = (Aggregate(f'uuid-{name}', name) for name in 'ABC')


@pytest.mark.parametrize(
    ('constraints', 'against'),
    [
        pytest.param([], [], id='no opinion'),
        pytest.param([Forbid((A, C), 'x')], ['aggregates A, C: x'], id='in'),
        pytest.param([Forbid((C,), 'x')], [], id='in none that is forbidden'),
        pytest.param([Require((A, C), 'x')], [], id='in one that will do'),
        pytest.param([Require((C,), 'x')], ['aggregate C: x'], id='not in'),
        pytest.param(
            [Require((A,), 'x'), Require((C,), 'y'), Forbid((B,), 'z')],
            ['aggregate C: y', 'aggregate B: z'],
            id='only what excludes this host',
        ),
        pytest.param(
            [Forbid((A,), 'x'), Refuse('no'), Refuse('never')],
            ['no', 'never'],
            id='a refusal excludes every host',
        ),
        pytest.param(
            [InTree('u', 'x'), ForbidRootTrait('T', 'y')],
            [],
            id='trees and traits are not looked at',
        ),
    ],
)
def test_constraints_that_exclude_a_host_in_two_aggregates_are_found(
    constraints, against
):
    destination = Destination()
    for constraint in constraints:
        destination.add(constraint, 'test')
    assert destination.objections({'uuid-A', 'uuid-B'}) == against
