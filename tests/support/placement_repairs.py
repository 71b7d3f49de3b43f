# SPDX-License-Identifier: Apache-2.0
"""Three mistakes of Placement 16.0, and what repairs them.

Each makes an answer depend on the order of Python sets, or be an error, so
that no one right answer can be compared. ``test_simulator_differential`` has a
test that shows each of them.
"""

import contextlib
import copy
from unittest import mock

from placement.db.sqlalchemy import models
from placement.objects import allocation_candidate, research_context, trait
import sqlalchemy


@contextlib.contextmanager
def repaired():
    """Have the embedded Placement without its known mistakes."""
    with (
        # The amounts of groups are added up in objects that other candidates
        # use too, unless group_policy is none.
        mock.patch.object(
            research_context.RequestWideSearchContext,
            'copy_arr_if_needed',
            lambda self, amount: copy.copy(amount),
        ),
        # Of the ways to serve the group without a suffix that differ in
        # nothing but the anchor, one is kept. When all groups are put
        # together, that is right.
        mock.patch.object(
            allocation_candidate,
            '_alloc_candidates_multiple_providers',
            _keeping_anchors(
                allocation_candidate._alloc_candidates_multiple_providers
            ),
        ),
        # A sharing provider below a root is not looked up by its root.
        mock.patch.object(
            allocation_candidate,
            '_build_provider_summaries',
            _by_roots(allocation_candidate._build_provider_summaries, 2),
        ),
        mock.patch.object(
            trait,
            'get_traits_by_provider_tree',
            _by_roots(trait.get_traits_by_provider_tree, 1),
        ),
    ):
        yield


def _keeping_anchors(function):
    """Let a function tell requests with different anchors apart."""
    request = allocation_candidate.AllocationRequest
    equal = request.__eq__

    def equal_with_anchor(self, other):
        anchors = self.anchor_root_provider_uuid
        return anchors == other.anchor_root_provider_uuid and equal(
            self, other
        )

    def keeping(*arguments):
        with mock.patch.object(request, '__eq__', equal_with_anchor):
            return function(*arguments)

    return keeping


def _by_roots(function, position):
    """Give a function the roots of providers in place of the providers."""
    provider = models.ResourceProvider.__table__

    def with_roots(context, *arguments):
        arguments = [context, *arguments]
        roots = sqlalchemy.select(provider.c.root_provider_id).where(
            provider.c.id.in_(arguments[position])
        )
        found = context.session.execute(roots)
        arguments[position] = {root for (root,) in found}
        return function(*arguments)

    return with_roots
