# SPDX-License-Identifier: Apache-2.0
"""Writes combinations of providers down as the service's answer."""

from collections.abc import Iterable, Sequence
import itertools

from isolate_aggregates.placement.client import (
    AllocationCandidates,
    ProviderSummary,
)
from isolate_aggregates.simulator.groups import Pick, Serving
from isolate_aggregates.simulator.index import ProviderIndex
from isolate_aggregates.simulator.merge import Combination


def answer(
    index: ProviderIndex,
    servings: Sequence[Serving],
    combinations: Sequence[Combination],
) -> AllocationCandidates:
    """Return the answer that offers some combinations.

    :param index: The providers.
    :param servings: How the groups of the request may be served.
    :param combinations: The combinations to offer.
    """
    if len(servings) == 1 and all(len(pick) == 1 for [pick] in combinations):
        return _alone(index, servings[0], [pick for [pick] in combinations])
    return AllocationCandidates(
        tuple(_allocations(index, servings, c) for c in combinations),
        tuple(_mappings(index, servings, c) for c in combinations),
        _summaries(
            index,
            (
                number
                for combination in combinations
                for serving, pick in zip(servings, combination, strict=True)
                for number in pick
                if serving.amounts
            ),
        ),
    )


def _alone(
    index: ProviderIndex, serving: Serving, picks: Sequence[Pick]
) -> AllocationCandidates:
    """Return the answer if one provider each does it all, as most often."""
    uuids, suffix = index.uuids, serving.group.suffix
    resources = serving.group.resources
    return AllocationCandidates(
        tuple([{uuids[number]: resources.copy()} for [number] in picks]),
        tuple([{suffix: index.mapping[number]} for [number] in picks]),
        _summaries(index, itertools.chain.from_iterable(picks)),
    )


def _summaries(
    index: ProviderIndex, givers: Iterable[int]
) -> dict[str, ProviderSummary]:
    """Return what an answer says of providers.

    ``provider_summaries`` has all providers of all trees that something is
    allocated from; a tree that only serves a group without resources is left
    out.
    """
    roots = sorted(set(map(index.root_of.__getitem__, givers)))
    return dict(
        itertools.chain.from_iterable(map(index.summaries.__getitem__, roots))
    )


def _allocations(
    index: ProviderIndex,
    servings: Sequence[Serving],
    combination: Combination,
) -> dict[str, dict[str, int]]:
    """Return the amounts by resource class by provider.

    What several groups take from one provider is one amount.
    """
    allocations: dict[str, dict[str, int]] = {}
    for serving, pick in zip(servings, combination, strict=True):
        for number, (rc, amount) in serving.shares(pick):
            amounts = allocations.setdefault(index.uuids[number], {})
            amounts[rc] = amounts.get(rc, 0) + amount
    return allocations


def _mappings(
    index: ProviderIndex,
    servings: Sequence[Serving],
    combination: Combination,
) -> dict[str, tuple[str, ...]]:
    """Return by suffix the providers that serve the group."""
    return {
        serving.group.suffix: tuple(
            [index.uuids[number] for number in dict.fromkeys(pick)]
        )
        for serving, pick in zip(servings, combination, strict=True)
    }
