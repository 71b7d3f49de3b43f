# SPDX-License-Identifier: Apache-2.0
"""Requirements on aggregates, on the tree and on the root provider."""

import dataclasses

from isolate_aggregates.tools.explain.host import HostProviders
from isolate_aggregates.tools.explain.requirements.requirement import (
    Requirement,
)
from isolate_aggregates.tools.placement.group import ResourceRequest
from isolate_aggregates.tools.placement.provider import Provider


@dataclasses.dataclass(frozen=True)
class InAggregates(Requirement):
    """Membership of at least one aggregate, given by uuid."""

    kind = 'required-aggregates'

    aggregates: frozenset[str]

    @property
    def label(self) -> str:
        return f'{self.where}in one of {", ".join(sorted(self.aggregates))}'

    def add_to(self, request: ResourceRequest) -> None:
        request.group(self.suffix or '').aggregates.append(self.aggregates)

    def objection(self, provider: Provider, host: HostProviders) -> str:
        if self.aggregates & _held(provider, self.suffix, host):
            return ''
        return f'not in {host.context.aggregates(self.aggregates)}'


@dataclasses.dataclass(frozen=True)
class OutsideAggregates(Requirement):
    """Membership of none of the aggregates, given by uuid."""

    kind = 'forbidden-aggregates'

    aggregates: frozenset[str]

    @property
    def label(self) -> str:
        return f'{self.where}not in {", ".join(sorted(self.aggregates))}'

    def add_to(self, request: ResourceRequest) -> None:
        group = request.group(self.suffix or '')
        group.forbidden_aggregates |= self.aggregates

    def objection(self, provider: Provider, host: HostProviders) -> str:
        wrong = self.aggregates & _held(provider, self.suffix, host)
        return f'in {host.context.aggregates(wrong)}' if wrong else ''


def _held(
    provider: Provider, suffix: str | None, host: HostProviders
) -> frozenset[str]:
    """Return the aggregates that apply to a provider.

    In the unsuffixed group, the aggregates of the root apply to its tree.
    """
    if not suffix and host.owns(provider):
        return provider.aggregates | host.root.aggregates
    return provider.aggregates


@dataclasses.dataclass(frozen=True)
class WithinTree(Requirement):
    """Membership of a provider's tree, given by the uuid of the provider."""

    kind = 'provider-tree'

    provider: str

    @property
    def label(self) -> str:
        return f'{self.where}in the tree of provider {self.provider}'

    def add_to(self, request: ResourceRequest) -> None:
        request.group(self.suffix or '').in_tree = self.provider

    def objection(self, provider: Provider, host: HostProviders) -> str:
        index = host.context.index
        number = index.numbers.get(self.provider)
        root = index.root_of[index.numbers[provider.uuid]]
        if number is not None and index.root_of[number] == root:
            return ''
        return "not in the requested host's tree"


@dataclasses.dataclass(frozen=True)
class RootTrait(Requirement):
    """A trait that the root provider must have or must not have."""

    kind = 'root-trait'

    trait: str
    required: bool

    @property
    def label(self) -> str:
        verb = 'requires' if self.required else 'forbids'
        return f'root provider: {verb} trait {self.trait}'

    def add_to(self, request: ResourceRequest) -> None:
        traits = (
            request.root_required if self.required else request.root_forbidden
        )
        traits.add(self.trait)

    def reason(self, host: HostProviders) -> str:
        has = 'has no' if self.required else 'has forbidden'
        return f'root provider {has} trait {self.trait}'
