# SPDX-License-Identifier: Apache-2.0
"""The conclusion of a request filter, as a requirement of the request."""

from collections.abc import Hashable
import dataclasses

import os_traits

from isolate_aggregates.filters.constraints import Conclusion
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates_tools.explain.host import HostProviders
from isolate_aggregates_tools.explain.requirements import (
    InAggregates,
    OutsideAggregates,
    Requirement,
    WithinTree,
)
from isolate_aggregates_tools.placement.provider import Provider
from isolate_aggregates_tools.request import constraints

_DISABLED = os_traits.COMPUTE_STATUS_DISABLED


@dataclasses.dataclass(frozen=True)
class Concluded(Requirement):
    """The conclusion of a request filter.

    All of them are applied as one destination, so none adds itself.
    """

    conclusion: Conclusion

    @property
    def kind(self) -> str:
        return self.conclusion.kind

    @property
    def label(self) -> str:
        constraint = self.conclusion.constraint
        return f'{self.conclusion.filter_name}: {constraint.reason}'

    @lazy_property
    def _parts(self) -> list[tuple[Requirement, str]]:
        """The equivalent requirements, each with a separator.

        The separator joins the message of the requirement and the cause.
        """
        alone = self.conclusion.alone
        parts: list[tuple[Requirement, str]] = []
        if alone.forbidden_aggregates:
            forbidden = frozenset(alone.forbidden_aggregates)
            parts.append((OutsideAggregates('', forbidden), ', '))
        for choice in alone.required_aggregates:
            parts.append((InAggregates('', choice), ': '))
        if tree := constraints.tree(alone):
            parts.append((WithinTree('', tree), ': '))
        return parts

    @lazy_property
    def _cause(self) -> str:
        constraint = self.conclusion.constraint
        return str(getattr(constraint, 'cause', None) or constraint.reason)

    def objection(self, provider: Provider, host: HostProviders) -> str:
        for part, comma in self._parts:
            text = part.objection(provider, host)
            if text:
                return f'{text}{comma}{self._cause}'
        return ''

    def depends_on(self, root: Provider) -> Hashable:
        alone = self.conclusion.alone
        if constraints.objections(alone):
            return None
        return (
            root.aggregates & alone.forbidden_aggregates,
            root.traits & constraints.forbidden_root(alone),
            frozenset(constraints.required_root(alone) - root.traits),
        )

    def reason(self, host: HostProviders) -> str:
        alone = self.conclusion.alone
        constraint = self.conclusion.constraint
        if alone.refusals:
            return '; '.join(alone.refusals)
        traits = constraints.forbidden_root(alone) & host.root.traits
        if _DISABLED in traits:
            return 'compute service disabled'
        if traits:
            return (
                f'has trait {", ".join(sorted(traits))}: {constraint.reason}'
            )
        missing_traits = constraints.required_root(alone) - host.root.traits
        if missing_traits:
            names = ', '.join(sorted(missing_traits))
            return f'has no trait {names}: {self._cause}'
        if constraints.objections(alone):
            objections = constraints.dropped(alone, host.root.host or '')
            name = self.conclusion.filter_name
            reasons = '; '.join(objections)
            return f'dropped after Placement by {name}: {reasons}'
        if host.root.aggregates & alone.forbidden_aggregates:
            # A forbidden aggregate of the root excludes the whole tree.
            return self.objection(host.root, host)
        return super().reason(host)
