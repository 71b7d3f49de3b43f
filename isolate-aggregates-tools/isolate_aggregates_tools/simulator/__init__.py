# SPDX-License-Identifier: Apache-2.0
"""Simulates Placement in memory on a snapshot of a cloud's providers.

The modules, in the order in which a query passes through them:

1. ``query`` parses the query string and rejects queries that Placement would
   answer with 400; ``consistency`` checks the parameters against each other.
2. ``index`` numbers the resource providers of the snapshot and keeps sets of
   them: by trait, by aggregate, by tree.
3. ``groups`` finds the providers that can serve one request group, with one
   function per query condition.
4. ``merge`` combines the groups.
5. ``answer`` builds the allocation candidates.
6. ``service`` is the entry point, :class:`Simulator`.

Queries use the newest microversion unless another is given. The rules are
those of the `Placement API reference
<https://docs.openstack.org/api-ref/placement/>`_. Where the reference does
not define a case, the behaviour was found by comparing with a real Placement,
and the docstring says so.
"""

from isolate_aggregates_tools.simulator.service import Simulator

__all__ = ['Simulator']
