# SPDX-License-Identifier: Apache-2.0
"""Leave out hosts whose compute service is disabled.

Nova marks them with the trait COMPUTE_STATUS_DISABLED on the root provider,
and nova-scheduler always adds this constraint itself; see the spec `Pre-filter
disabled computes with a trait
<https://specs.openstack.org/openstack/nova-specs/specs/train/implemented/pre-filter-disabled-computes.html>`_.
"""

from collections.abc import Iterator
import dataclasses

import os_traits

from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.constraints import ForbidRootTrait
from isolate_aggregates.request import RequestSpec


@dataclasses.dataclass(frozen=True)
class DisabledService:
    """The cause: the compute service of a host is disabled."""

    def __str__(self) -> str:
        return 'hosts with a disabled compute service take no servers'


@dataclasses.dataclass(frozen=True)
class ComputeStatus:
    """Forbid root providers that say their compute service is disabled."""

    def __call__(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterator[ForbidRootTrait]:
        """Yield the one constraint.

        :param request: What is being scheduled; not looked at.
        :param aggregates: The aggregates; not looked at.
        """
        yield ForbidRootTrait(
            os_traits.COMPUTE_STATUS_DISABLED, DisabledService()
        )
