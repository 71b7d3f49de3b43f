# SPDX-License-Identifier: Apache-2.0
"""Why a host may be used for a request, and why not.

1. :mod:`~isolate_aggregates.explain.question` takes a request apart into its
   constraints, and puts it together again without some of them.
2. :mod:`~isolate_aggregates.explain.constraints` has one class for each kind
   of constraint: which hosts meet it by itself, and what to say of the others.
3. :mod:`~isolate_aggregates.explain.verdicts` finds for each host all that
   has to be dropped before it would be offered, and sums up over all hosts.
"""

from isolate_aggregates.explain.verdicts import (
    Explanation,
    Verdict,
    explain,
)

__all__ = ['Explanation', 'Verdict', 'explain']
