# SPDX-License-Identifier: Apache-2.0
"""Builds the response of ``GET /allocation_candidates``.

A response can have a hundred thousand candidates. They share equal objects to
save time and memory, so a response must not be modified.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import functools
import itertools

from isolate_aggregates_tools.placement.client import (
    AllocationCandidates,
    ProviderSummary,
)
from isolate_aggregates_tools.simulator.groups import Pick, Serving
from isolate_aggregates_tools.simulator.index import ProviderIndex
from isolate_aggregates_tools.simulator.merge import Combination

_Amounts = Mapping[str, int]
_Allocations = Iterable[tuple[int, _Amounts]]


def answer(
    index: ProviderIndex,
    servings: Sequence[Serving],
    combinations: Sequence[Combination],
) -> AllocationCandidates:
    """Return the combinations as allocation candidates."""
    if len(servings) == 1 and all(len(pick) == 1 for [pick] in combinations):
        return _of_single_providers(
            index, servings[0], [pick for [pick] in combinations]
        )
    groups = [
        (serving.group.suffix, _allocations_of(serving))
        for serving in servings
    ]
    uuids, requests, mappings = index.uuids, [], []
    providers: set[int] = set()
    for combination in combinations:
        amounts_by_provider: dict[int, _Amounts] = {}
        mapping: dict[str, tuple[str, ...]] = {}
        for (suffix, allocations), pick in zip(
            groups, combination, strict=True
        ):
            mapping[suffix] = _uuids(index, pick)
            for number, amounts in allocations(pick):
                if number in amounts_by_provider:
                    amounts = _sum(amounts_by_provider[number], amounts)
                amounts_by_provider[number] = amounts
        providers.update(amounts_by_provider)
        requests.append(
            {uuids[n]: amounts for n, amounts in amounts_by_provider.items()}
        )
        mappings.append(mapping)
    return AllocationCandidates(
        tuple(requests), tuple(mappings), _summaries(index, providers)
    )


def _uuids(index: ProviderIndex, pick: Pick) -> tuple[str, ...]:
    if len(pick) == 1:
        return index.mapping[pick[0]]
    return tuple([index.uuids[number] for number in dict.fromkeys(pick)])


def _of_single_providers(
    index: ProviderIndex, serving: Serving, picks: Sequence[Pick]
) -> AllocationCandidates:
    """Return the response if each candidate has one provider.

    This is the most common case, and much faster than the general one.
    """
    uuids, mapping = index.uuids, index.mapping
    suffix, amounts = serving.group.suffix, dict(serving.amounts)
    return AllocationCandidates(
        tuple([{uuids[number]: amounts} for [number] in picks]),
        tuple([{suffix: mapping[number]} for [number] in picks]),
        _summaries(index, itertools.chain.from_iterable(picks)),
    )


def _allocations_of(serving: Serving) -> Callable[[Pick], _Allocations]:
    """Return a function from a pick to the amounts of each provider in it."""
    everything = dict(serving.amounts)

    @functools.cache
    def amounts(classes: tuple[str, ...]) -> _Amounts:
        return {rc: everything[rc] for rc in classes}

    def allocations(pick: Pick) -> _Allocations:
        if len(pick) == 1:
            return zip(pick, [everything] if everything else [], strict=False)
        classes: dict[int, tuple[str, ...]] = {}
        for number, resource_class in zip(pick, everything, strict=True):
            classes[number] = (*classes.get(number, ()), resource_class)
        return zip(classes, map(amounts, classes.values()), strict=True)

    return allocations


def _sum(some: _Amounts, more: _Amounts) -> _Amounts:
    """Add up the amounts that two groups take from one provider."""
    return {rc: some.get(rc, 0) + more.get(rc, 0) for rc in {**some, **more}}


def _summaries(
    index: ProviderIndex, providers: Iterable[int]
) -> dict[str, ProviderSummary]:
    """Return the ``provider_summaries`` of a response.

    They cover all providers of each tree that a candidate allocates from. A
    tree that serves only a group without resources is left out.
    """
    roots = sorted(set(map(index.root_of.__getitem__, providers)))
    return dict(
        itertools.chain.from_iterable(map(index.summaries.__getitem__, roots))
    )
