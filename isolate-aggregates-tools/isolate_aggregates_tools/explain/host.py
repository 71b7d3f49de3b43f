# SPDX-License-Identifier: Apache-2.0
"""The data that messages about a host are built from."""

from collections.abc import Iterable, Mapping
import dataclasses

from isolate_aggregates import text
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates_tools.placement.provider import Provider
from isolate_aggregates_tools.simulator.index import ProviderIndex


@dataclasses.dataclass(frozen=True)
class Context:
    """The data that is the same for all hosts."""

    index: ProviderIndex
    names: Mapping[str, str]
    classes: Mapping[str, frozenset[str]]

    def aggregates(self, uuids: frozenset[str]) -> str:
        """Return the names of aggregates as text, given their uuids."""
        if uuids not in self._named:
            names = (self.names.get(uuid, uuid) for uuid in uuids)
            self._named[uuids] = text.named('aggregate', names)
        return self._named[uuids]

    @lazy_property
    def _named(self) -> dict[frozenset[str], str]:
        # A cache: few different sets occur for thousands of hosts.
        return {}

    def is_alone(self, root: Provider) -> bool:
        """Return whether the root is the only provider a host can use."""
        number = self.index.numbers[root.uuid]
        return len(self.index.trees.get(number, ())) == 1 and (
            number not in self.sharing
        )

    @lazy_property
    def sharing(self) -> Mapping[int, list[int]]:
        """The sharing providers in other trees, by root they share with."""
        sharing: dict[int, list[int]] = {}
        for number, anchors in self.index.anchors_of.items():
            for root in self.index.members(anchors):
                sharing.setdefault(root, []).append(number)
        return sharing


class HostProviders:
    """A host with all providers that can serve its servers."""

    def __init__(self, context: Context, root: Provider) -> None:
        number = context.index.numbers[root.uuid]
        providers = context.index.providers
        self.context = context
        self.root = root
        self.sharing = [providers[n] for n in context.sharing.get(number, ())]
        # The providers of the tree, root first, then those sharing with it.
        # A compute node that was moved below another provider has no tree.
        tree = context.index.trees.get(number, (number,))
        self.around = [providers[n] for n in tree]
        self.around += self.sharing

    def name_of(self, uuid: str | None) -> str:
        """Return the name of a provider; its uuid if it is unknown."""
        index = self.context.index
        number = index.numbers.get(uuid or '')
        return str(uuid) if number is None else index.providers[number].name

    def owns(self, provider: Provider) -> bool:
        """Return whether a provider is in the host's own tree."""
        return all(provider is not each for each in self.sharing)

    def providers_for(self, suffix: str) -> list[Provider]:
        """Return the providers with a resource class that a group requests.

        If no provider of the host's own tree has any, the root is added.
        """
        classes = self.context.classes[suffix]
        providers = [p for p in self.around if classes & p.inventories.keys()]
        if any(self.owns(provider) for provider in providers):
            return providers
        return [self.root, *providers]

    def providers_by_class(self, suffix: str) -> list[list[Provider]]:
        """Return the providers for each resource class of a group."""
        return [
            [p for p in self.around if resource_class in p.inventories]
            for resource_class in self.context.classes[suffix]
        ]

    def in_words(self, objections: Iterable[tuple[Provider, str]]) -> str:
        """Merge objections to providers into one text, equal ones once."""
        by_text: dict[str, list[Provider]] = {}
        for provider, objection in objections:
            by_text.setdefault(objection, []).append(provider)
        if len(self.around) == 1:
            return '; '.join(by_text)
        return '; '.join(
            f'{provider_names(providers)}: {objection}'
            for objection, providers in by_text.items()
        )


def provider_names(providers: Iterable[Provider]) -> str:
    """Return the names of providers as text."""
    return text.listed(provider.name for provider in providers)
