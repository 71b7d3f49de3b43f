# SPDX-License-Identifier: Apache-2.0
"""The constraints a request consists of, one class for each kind.

A constraint puts itself onto a request, and says in words what there is
against a provider or a host. Whether a host is excluded is not decided here:
that is left to the rules of Placement.
"""

from isolate_aggregates.inspect.explain.constraints.amounts import (
    Amount,
    in_words,
)
from isolate_aggregates.inspect.explain.constraints.concluded import Concluded
from isolate_aggregates.inspect.explain.constraints.constraint import (
    Constraint,
)
from isolate_aggregates.inspect.explain.constraints.grouping import (
    Isolate,
    SameSubtree,
)
from isolate_aggregates.inspect.explain.constraints.places import (
    InAggregates,
    InTree,
    OutsideAggregates,
    RootTrait,
)
from isolate_aggregates.inspect.explain.constraints.traits import (
    ForbiddenTrait,
    RequiredTrait,
)

__all__ = [
    'Amount',
    'Concluded',
    'Constraint',
    'ForbiddenTrait',
    'InAggregates',
    'InTree',
    'Isolate',
    'OutsideAggregates',
    'RequiredTrait',
    'RootTrait',
    'SameSubtree',
    'in_words',
]
