# SPDX-License-Identifier: Apache-2.0
"""The requirements a request consists of, one class for each kind.

A requirement puts itself onto a request, and says in words what there is
against a provider or a host. Whether a host is excluded is not decided here:
that is left to the rules of Placement.
"""

from isolate_aggregates.inspect.explain.requirements.amounts import (
    Amount,
    in_words,
)
from isolate_aggregates.inspect.explain.requirements.concluded import Concluded
from isolate_aggregates.inspect.explain.requirements.grouping import (
    Isolate,
    SameSubtree,
)
from isolate_aggregates.inspect.explain.requirements.places import (
    InAggregates,
    OutsideAggregates,
    RootTrait,
    WithinTree,
)
from isolate_aggregates.inspect.explain.requirements.requirement import (
    Requirement,
)
from isolate_aggregates.inspect.explain.requirements.traits import (
    ForbiddenTrait,
    RequiredTrait,
)

__all__ = [
    'Amount',
    'Concluded',
    'ForbiddenTrait',
    'InAggregates',
    'Isolate',
    'OutsideAggregates',
    'RequiredTrait',
    'Requirement',
    'RootTrait',
    'SameSubtree',
    'WithinTree',
    'in_words',
]
