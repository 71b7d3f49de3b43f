# SPDX-License-Identifier: Apache-2.0
"""What a shortened query forbids, and which host filter does the rest."""

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isolate_aggregates.aggregates.rollups import Rollup

OUR_HOST_FILTER = 'IsolatedAggregatesFilter'


@dataclasses.dataclass(frozen=True)
class Replacement:
    """The aggregates that a shortened query forbids.

    :param forbidden: The uuids of the Placement aggregates to forbid.
    :param rollups: The rollups among them.
    :param left_out: The uuids of the forbidden aggregates that the query does
        not name, whether a rollup stands for them or not.
    """

    forbidden: frozenset[str]
    rollups: tuple['Rollup', ...] = ()
    left_out: frozenset[str] = frozenset()
