# SPDX-License-Identifier: Apache-2.0
"""Why a host may be used for a request, and why not.

1. ``requirements`` has one class for each kind of requirement, and what there
   is to say if a host does not meet it.
2. ``divided`` takes a request apart into its requirements, and puts it
   together again without some of them.
3. ``offers`` tells which hosts Placement would offer then.
4. ``verdicts`` finds out that way what excludes each host, and sums up over
   all hosts.
5. ``groups`` tells it in few lines, by filter and cause.
6. ``together`` finds the words where it is not one requirement but several
   that do not go together.
"""

from isolate_aggregates.inspect.explain.verdicts import (
    Count,
    Explanation,
    Reason,
    Verdict,
    explain,
)

__all__ = ['Count', 'Explanation', 'Reason', 'Verdict', 'explain']
