# SPDX-License-Identifier: Apache-2.0
"""What all requirements of a request have in common."""

import abc
from collections.abc import Hashable
import dataclasses

from isolate_aggregates.inspect.explain.host import HostProviders
from isolate_aggregates.placement.group import ResourceRequest
from isolate_aggregates.placement.provider import Provider


@dataclasses.dataclass(frozen=True)
class Requirement(abc.ABC):
    """One part of a request that can be dropped by itself.

    :param suffix: The suffix of the request group it belongs to; None if it
        is about the request as a whole.
    """

    suffix: str | None

    @property
    @abc.abstractmethod
    def label(self) -> str:
        """What it asks for, the same for every host."""

    @property
    def where(self) -> str:
        """The request group, for the start of a sentence."""
        return f'group {self.suffix}: ' if self.suffix else ''

    @abc.abstractmethod
    def ask(self, request: ResourceRequest) -> None:
        """Put it onto a request."""

    def waive(self, request: ResourceRequest) -> None:  # noqa: B027
        """Leave something in its place on a request that does without it.

        Most leave nothing.
        """

    def objection(self, provider: Provider, host: HostProviders) -> str:
        """Say what keeps a provider from meeting it; nothing if it does.

        :param provider: A provider around the host.
        """
        return ''

    def depends_on(self, root: Provider) -> Hashable:
        """Return what of a host's only provider its reason depends on.

        None if there may be more to it, as there is for most.
        """
        return None

    def reason(self, host: HostProviders) -> str:
        """Say why a host is excluded by this requirement alone."""
        givers = host.givers(self.suffix or '')
        own = {self.objection(p, host) for p in givers if host.owns(p)}
        if len(own) == 1 and '' not in own:
            # It is true of the host as a whole.
            return f'{self.where}{own.pop()}'
        # Of providers that offer the same, one that meets it clears all.
        blamed = {
            provider.uuid
            for alike in host.givers_by_class(self.suffix or '')
            if all(self.objection(provider, host) for provider in alike)
            for provider in alike
        }
        told = host.told(
            (provider, self.objection(provider, host))
            for provider in givers
            if provider.uuid in blamed
        )
        return f'{self.where}{told or self.label}'
