# SPDX-License-Identifier: Apache-2.0
"""How much of a resource class is used."""

from dataclasses import dataclass
from typing import Annotated

from isolate_aggregates_tools.documents import Count


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Free and used amounts of a resource class, summed over providers."""

    free: Annotated[int, 'Negative if more is used than there is.']
    used: Count

    @property
    def total(self) -> int:
        """The capacity, as Placement counts it with reserved and ratio."""
        return self.free + self.used

    def __add__(self, other: 'Usage') -> 'Usage':
        return Usage(free=self.free + other.free, used=self.used + other.used)

    def __mul__(self, times: int) -> 'Usage':
        return Usage(free=self.free * times, used=self.used * times)
