# SPDX-License-Identifier: Apache-2.0
"""The requirements that a request consists of, one class per kind.

A requirement can add itself to a request, and writes the message for a
provider or host that does not meet it. It does not decide whether a host is
excluded; the simulator does, by Placement's rules.
"""

from isolate_aggregates.tools.explain.requirements.aggregates import (
    InAggregates,
    OutsideAggregates,
    RootTrait,
    WithinTree,
)
from isolate_aggregates.tools.explain.requirements.amounts import (
    Amount,
    in_words,
)
from isolate_aggregates.tools.explain.requirements.concluded import Concluded
from isolate_aggregates.tools.explain.requirements.grouping import (
    Isolate,
    SameSubtree,
)
from isolate_aggregates.tools.explain.requirements.node import (
    Accepted,
    FromNode,
)
from isolate_aggregates.tools.explain.requirements.requirement import (
    Requirement,
)
from isolate_aggregates.tools.explain.requirements.traits import (
    ForbiddenTrait,
    RequiredTrait,
)

__all__ = [
    'Accepted',
    'Amount',
    'Concluded',
    'ForbiddenTrait',
    'FromNode',
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
