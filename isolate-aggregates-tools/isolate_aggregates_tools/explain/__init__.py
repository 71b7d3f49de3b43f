# SPDX-License-Identifier: Apache-2.0
"""Explains why each host is or is not a candidate for a request.

1. ``requirements`` has one class per kind of requirement, with the message for
   hosts that do not meet it.
2. ``splitting`` splits a request into its requirements, and rebuilds it
   without some of them.
3. ``offers`` computes the hosts that Placement would offer for the result.
4. ``verdicts`` uses this to find the causes that exclude each host, and counts
   them over all hosts.
5. ``fallback`` explains a request, and combines the results for the two
   queries that Nova sends for pinned CPUs.
6. ``groups`` summarizes the result by filter and cause.
7. ``joint_requirements`` writes the message if a host meets each requirement
   alone but not all of them together.
"""

from isolate_aggregates_tools.explain.fallback import of_request
from isolate_aggregates_tools.explain.verdicts import (
    Count,
    Explanation,
    Reason,
    Verdict,
    explain,
    rejected,
)

__all__ = [
    'Count',
    'Explanation',
    'Reason',
    'Verdict',
    'explain',
    'of_request',
    'rejected',
]
