# SPDX-License-Identifier: Apache-2.0
"""Placement's answers, worked out in memory from a snapshot of a cloud.

Read it from the question to the answer:

1. ``query`` reads a query string, and
   refuses what the service would call invalid.
2. ``index`` numbers the providers of a
   snapshot and keeps sets of them: of a trait, of an aggregate, of a tree.
3. ``conditions`` has a function for each
   condition a query can name; it returns the providers that meet it.
4. ``groups`` says which providers can serve
   one request group.
5. ``merge`` puts the groups together.
6. ``answer`` writes that down as candidates.
7. ``service`` is the whole: the service.

A question is one of the newest microversion, or of the one that is named with
it. The rules are those in the `Placement API reference
<https://docs.openstack.org/api-ref/placement/>`_. Where the reference is
silent, the rule was learned by comparing answers with the real service, and
the docstring says so.
"""

from isolate_aggregates.placement.simulator.service import Simulator

__all__ = ['Simulator']
