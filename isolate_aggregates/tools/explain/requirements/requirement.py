# SPDX-License-Identifier: Apache-2.0
"""The base class of requirements."""

import abc
from collections.abc import Hashable
import dataclasses

from isolate_aggregates.tools.explain.host import HostProviders
from isolate_aggregates.tools.placement.group import ResourceRequest
from isolate_aggregates.tools.placement.provider import Provider


@dataclasses.dataclass(frozen=True)
class Requirement(abc.ABC):
    """A part of a request that can be dropped separately.

    :param suffix: The suffix of its request group; None if it applies to the
        whole request.
    """

    suffix: str | None

    @property
    @abc.abstractmethod
    def kind(self) -> str:
        """The kind of the requirement, for documents."""

    @property
    @abc.abstractmethod
    def label(self) -> str:
        """A description of the requirement, independent of hosts."""

    @property
    def where(self) -> str:
        """The request group, as a prefix of messages."""
        return f'group {self.suffix}: ' if self.suffix else ''

    @abc.abstractmethod
    def add_to(self, request: ResourceRequest) -> None:
        """Add the requirement to a request."""

    def waive(self, request: ResourceRequest) -> None:  # noqa: B027
        """Add a placeholder to a request that is built without it.

        Most requirements need none.
        """

    def objection(self, provider: Provider, host: HostProviders) -> str:
        """Return why a provider does not meet it; empty if it does."""
        return ''

    def depends_on(self, root: Provider) -> Hashable:
        """Return a key; hosts with equal keys have the same reason.

        It is called for hosts with a single provider. None if the reason may
        differ between hosts, which is the default.
        """
        return None

    def reason(self, host: HostProviders) -> str:
        """Return why this requirement excludes a host."""
        providers = host.providers_for(self.suffix or '')
        own = {self.objection(p, host) for p in providers if host.owns(p)}
        if len(own) == 1 and '' not in own:
            # The same objection applies to the whole host.
            return f'{self.where}{own.pop()}'
        # Of the providers of a resource class, one that meets the requirement
        # is enough, so the others are not reported.
        unfit = {
            provider.uuid
            for alike in host.providers_by_class(self.suffix or '')
            if all(self.objection(provider, host) for provider in alike)
            for provider in alike
        }
        objections = host.in_words(
            (provider, self.objection(provider, host))
            for provider in providers
            if provider.uuid in unfit
        )
        return f'{self.where}{objections or self.label}'
