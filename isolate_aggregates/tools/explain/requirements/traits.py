# SPDX-License-Identifier: Apache-2.0
"""Requirements on traits in a request group."""

from collections.abc import Hashable
import dataclasses

from isolate_aggregates import text
from isolate_aggregates.tools.explain.host import HostProviders, provider_names
from isolate_aggregates.tools.explain.requirements.requirement import (
    Requirement,
)
from isolate_aggregates.tools.placement.group import ResourceRequest
from isolate_aggregates.tools.placement.provider import Provider


@dataclasses.dataclass(frozen=True)
class RequiredTrait(Requirement):
    """A required trait, or a choice of several.

    :param choice: The traits, of which one is enough.
    :param is_choice: Whether the request has them as a choice (``in:``).
    """

    kind = 'required-trait'

    choice: frozenset[str]
    is_choice: bool = False

    @property
    def label(self) -> str:
        one_of = 'one of ' if self.is_choice else ''
        return f'{self.where}requires {one_of}{self._named}'

    @property
    def _named(self) -> str:
        return text.named('trait', self.choice, most=None)

    def add_to(self, request: ResourceRequest) -> None:
        group = request.group(self.suffix or '')
        if self.is_choice:
            group.any_traits.append(self.choice)
        else:
            group.required_traits |= self.choice

    def objection(self, provider: Provider, host: HostProviders) -> str:
        if self.choice & provider.traits:
            return ''
        none_of = 'has none of' if len(self.choice) > 1 else 'has no'
        return f'{none_of} {self._named}'

    def depends_on(self, root: Provider) -> Hashable:
        return ()

    def reason(self, host: HostProviders) -> str:
        holders = [p for p in host.around if self.choice & p.traits]
        if not holders:
            return f'{self.where}{self.objection(host.root, host)}'
        providers = {
            provider.uuid for provider in host.providers_for(self.suffix or '')
        }
        if providers.isdisjoint(holder.uuid for holder in holders):
            useless = 'where none of the requested resources are'
        else:
            useless = 'and the host itself would provide nothing'
        verb = text.plural(len(self.choice), 'is', 'are')
        return (
            f'{self.where}{self._named} {verb} only on '
            f'{provider_names(holders)}, {useless}'
        )


@dataclasses.dataclass(frozen=True)
class ForbiddenTrait(Requirement):
    """A forbidden trait."""

    kind = 'forbidden-trait'

    trait: str

    @property
    def label(self) -> str:
        return f'{self.where}forbids trait {self.trait}'

    def add_to(self, request: ResourceRequest) -> None:
        request.group(self.suffix or '').forbidden_traits.add(self.trait)

    def objection(self, provider: Provider, host: HostProviders) -> str:
        if self.trait not in provider.traits:
            return ''
        return f'has forbidden trait {self.trait}'
