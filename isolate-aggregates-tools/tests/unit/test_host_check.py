# SPDX-License-Identifier: Apache-2.0
"""The objections of filters to a host that is already chosen."""

from cases import cases

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.filters.constraints import (
    Destination,
    Forbid,
    Refuse,
    Require,
)
from isolate_aggregates_tools.request.constraints import (
    ForbidRootTrait,
    InTree,
)

A, B, C = (Aggregate(f'uuid-{name}', name) for name in 'ABC')


@cases(
    ('constraints', 'against'),
    {
        'no opinion': ([], []),
        'in': ([Forbid((A, C), 'x')], ['aggregates A, C: x']),
        'in none that is forbidden': ([Forbid((C,), 'x')], []),
        'in one that will do': ([Require((A, C), 'x')], []),
        'not in': ([Require((C,), 'x')], ['aggregate C: x']),
        'only what excludes this host': (
            [Require((A,), 'x'), Require((C,), 'y'), Forbid((B,), 'z')],
            ['aggregate C: y', 'aggregate B: z'],
        ),
        'a refusal excludes every host': (
            [Forbid((A,), 'x'), Refuse('no'), Refuse('never')],
            ['no', 'never'],
        ),
        'trees and traits are not looked at': (
            [InTree('u', 'x'), ForbidRootTrait('T', 'y')],
            [],
        ),
    },
)
def test_constraints_that_exclude_a_host_in_two_aggregates_are_found(
    constraints, against
):
    destination = Destination()
    for constraint in constraints:
        destination.add(constraint, 'test')
    assert destination.objections({'uuid-A', 'uuid-B'}) == against
