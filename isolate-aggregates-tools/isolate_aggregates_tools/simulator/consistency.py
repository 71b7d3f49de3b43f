# SPDX-License-Identifier: Apache-2.0
"""Rejects query parameters that are valid alone but not together."""

from collections.abc import Iterator

from isolate_aggregates_tools.placement import microversion as mv
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.simulator.refusal import (
    BAD_VALUE,
    MISSING_VALUE,
    UNDEFINED,
    Refused,
    refuse,
)


def check(request: ResourceRequest, minor: int) -> None:
    """Check the parameters of a request against each other."""
    has_codes = minor >= mv.SAME_SUBTREE.minor
    bad_value = BAD_VALUE if has_codes else UNDEFINED
    if not any(group.resources for group in request.groups.values()):
        raise Refused(
            'no request group requests resources',
            MISSING_VALUE if has_codes else UNDEFINED,
        )
    refuse(_resourceless(request), bad_value)
    refuse(_subtrees(request), bad_value)
    refuse(_conflicts(request))
    refuse(_policy(request))


def _resourceless(request: ResourceRequest) -> Iterator[str]:
    """Find groups without resources that are not in ``same_subtree``."""
    suffixes = frozenset().union(*request.same_subtree)
    for suffix, group in request.groups.items():
        if not group.resources and suffix not in suffixes:
            yield (
                f'group {suffix!r} requests no resources and is not in '
                'same_subtree'
            )


def _subtrees(request: ResourceRequest) -> Iterator[str]:
    """Find suffixes in ``same_subtree`` that belong to no group."""
    for suffix in sorted(frozenset().union(*request.same_subtree)):
        if suffix not in request.groups:
            yield f'same_subtree names {suffix!r}, which is not a group'


def _conflicts(request: ResourceRequest) -> Iterator[str]:
    """Find traits that a group both requires and forbids."""
    for suffix, group in request.groups.items():
        for trait in sorted(group.required_traits & group.forbidden_traits):
            yield f'required{suffix} both requires and forbids {trait}'
        for choice in group.any_traits:
            if choice <= group.forbidden_traits:
                traits = ', '.join(sorted(choice))
                yield (
                    f'required{suffix} requires one of {traits} but forbids '
                    'all of them'
                )


def _policy(request: ResourceRequest) -> Iterator[str]:
    """Find a missing ``group_policy``: two suffixed groups require it."""
    suffixes = [suffix for suffix in request.groups if suffix]
    if len(suffixes) > 1 and request.group_policy is None:
        yield (
            f'{len(suffixes)} groups with a suffix require group_policy=none '
            'or group_policy=isolate'
        )
