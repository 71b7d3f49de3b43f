# SPDX-License-Identifier: Apache-2.0
"""Requirements on several request groups together."""

import dataclasses

from isolate_aggregates.tools.explain.host import HostProviders
from isolate_aggregates.tools.explain.requirements.requirement import (
    Requirement,
)
from isolate_aggregates.tools.placement.group import ResourceRequest


@dataclasses.dataclass(frozen=True)
class Isolate(Requirement):
    """``group_policy=isolate``."""

    kind = 'group-policy'

    suffixes: frozenset[str]

    @property
    def label(self) -> str:
        return 'group_policy isolate'

    def add_to(self, request: ResourceRequest) -> None:
        request.group_policy = 'isolate'

    def waive(self, request: ResourceRequest) -> None:
        request.group_policy = 'none'

    def reason(self, host: HostProviders) -> str:
        groups = ', '.join(sorted(self.suffixes))
        return f'{self.label}: groups {groups} find no separate providers'


@dataclasses.dataclass(frozen=True)
class SameSubtree(Requirement):
    """``same_subtree`` for some request groups."""

    kind = 'same-subtree'

    suffixes: frozenset[str]

    @property
    def label(self) -> str:
        return f'same_subtree of groups {", ".join(sorted(self.suffixes))}'

    def add_to(self, request: ResourceRequest) -> None:
        request.same_subtree.append(self.suffixes)

    def reason(self, host: HostProviders) -> str:
        groups = ', '.join(sorted(self.suffixes))
        return f'groups {groups} find no providers in a single subtree'
