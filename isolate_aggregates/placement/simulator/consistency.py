# SPDX-License-Identifier: Apache-2.0
"""Refuses parameters that are valid one by one, but not together."""

from collections.abc import Iterator

from isolate_aggregates.placement import microversion as mv
from isolate_aggregates.placement.group import ResourceRequest
from isolate_aggregates.placement.simulator.refusal import (
    BAD_VALUE,
    MISSING_VALUE,
    UNDEFINED,
    Refused,
    refuse,
)


def check(request: ResourceRequest, minor: int) -> None:
    """Refuse a request whose parameters do not fit together.

    :raises Refused: if the service would.
    """
    coded = minor >= mv.SAME_SUBTREE.minor
    bad_value = BAD_VALUE if coded else UNDEFINED
    if not any(group.resources for group in request.groups.values()):
        raise Refused(
            'no group asks for resources',
            MISSING_VALUE if coded else UNDEFINED,
        )
    refuse(_resourceless(request), bad_value)
    refuse(_subtrees(request), bad_value)
    refuse(_conflicts(request))
    refuse(_policy(request))


def _resourceless(request: ResourceRequest) -> Iterator[str]:
    """Find groups that should ask for resources, and do not.

    A group without resources only makes sense as a member of
    ``same_subtree``.
    """
    related = frozenset().union(*request.same_subtree)
    for suffix, group in request.groups.items():
        if not group.resources and suffix not in related:
            yield (
                f'group {suffix!r} asks for no resources and is not in '
                'same_subtree'
            )


def _subtrees(request: ResourceRequest) -> Iterator[str]:
    """Find suffixes in ``same_subtree`` that no group has."""
    for suffix in sorted(frozenset().union(*request.same_subtree)):
        if suffix not in request.groups:
            yield f'same_subtree names {suffix!r}, which is not a group'


def _conflicts(request: ResourceRequest) -> Iterator[str]:
    """Find traits that are required and forbidden by one group."""
    for suffix, group in request.groups.items():
        for trait in sorted(group.required_traits & group.forbidden_traits):
            yield f'required{suffix} both requires and forbids {trait}'
        for choice in group.any_traits:
            if choice <= group.forbidden_traits:
                traits = ', '.join(sorted(choice))
                yield f'required{suffix} forbids each one of {traits}'


def _policy(request: ResourceRequest) -> Iterator[str]:
    """Miss a ``group_policy`` with two or more groups with a suffix."""
    suffixed = [suffix for suffix in request.groups if suffix]
    if len(suffixed) > 1 and request.group_policy is None:
        yield (
            f'{len(suffixed)} groups with a suffix need group_policy, none or '
            'isolate'
        )
