# SPDX-License-Identifier: Apache-2.0
"""What is misspelled, and how to correct it."""

import dataclasses

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools.repairs.repair import Repair


@dataclasses.dataclass(frozen=True)
class Misspelling:
    """Something misspelled, which has not the effect that is meant.

    :param kind: The kind of the finding.
    :param severity: ``info``, ``warning`` or ``error``.
    :param problem: A predicate, without a full stop.
    :param repairs: The correction comes first, and its removal last.
    """

    kind: str
    severity: str
    thing: Aggregate | Flavor | Image
    problem: str
    consequence: str
    repairs: tuple[Repair, ...]
