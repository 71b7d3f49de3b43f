# SPDX-License-Identifier: Apache-2.0
"""Keep the hosts of a tier for the flavors of that tier.

An aggregate with the metadata ``tier=gold`` takes only servers of flavors with
the extra spec ``tier:name=gold``. Aggregates without ``tier`` are for all.
"""

import dataclasses

from isolate_aggregates.aggregates import Lock
from isolate_aggregates.filters import Forbid, RequestFilter


@dataclasses.dataclass(frozen=True)
class Tiers(RequestFilter):
    """Forbid the aggregates of the other tiers.

    :param key: The metadata key that names the tier of an aggregate.
    :param extra_spec: The extra spec that names the tier of a flavor. It has
        a colon because Nova's ComputeCapabilitiesFilter takes extra specs
        without one for capabilities that a host must have.
    """

    key: str = 'tier'
    extra_spec: str = 'tier:name'

    def __call__(self, request, aggregates):
        """Yield one constraint for each other tier.

        :param request: What is being scheduled.
        :param aggregates: The aggregates as of one moment.
        """
        own = request.flavor.extra_specs.get(self.extra_spec)
        for tier, members in self._tiers(aggregates).items():
            if tier != own:
                yield Forbid(
                    tuple(members),
                    f'kept for tier {tier}, and flavor {request.flavor.name} '
                    f'does not have {self.extra_spec}={tier}',
                )

    def locks(self, aggregates):
        """Yield one lock for each tier, by which other commands know it.

        :param aggregates: The aggregates as of one moment.
        """
        for tier, members in sorted(self._tiers(aggregates).items()):
            yield Lock(self.key, f'{self.key}={tier}', tuple(members))

    def _tiers(self, aggregates):
        tiers = {}
        for aggregate in aggregates.with_key(self.key):
            tier = aggregate.metadata[self.key]
            tiers.setdefault(tier, []).append(aggregate)
        return tiers
