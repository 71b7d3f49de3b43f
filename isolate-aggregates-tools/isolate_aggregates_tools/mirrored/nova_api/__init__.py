# SPDX-License-Identifier: Apache-2.0
"""Which flavors and images nova-api refuses, before it asks the scheduler.

nova-api answers 400 to a flavor that contradicts itself or the image
(``API._validate_flavor_image_nostatus`` in ``nova.compute.api``, and what it
calls in ``nova.virt.hardware``). The rules are repeated here: commands run
where Nova is not installed, and for any release. See decision record 0032.
What :mod:`isolate_aggregates_tools.request.implied` refuses is not repeated.
"""

from collections.abc import Iterator

from isolate_aggregates_tools.mirrored.nova_api import (
    cpus,
    devices,
    image,
    memory,
    numa,
)
from isolate_aggregates_tools.mirrored.nova_api.combination import (
    Combination,
    Refusal,
    Source,
)
from isolate_aggregates_tools.request import Request

__all__ = ['Refusal', 'Source', 'refusals']

RULES = (
    *image.RULES,
    *cpus.RULES,
    *numa.RULES,
    *memory.RULES,
    *devices.RULES,
)


def refusals(request: Request) -> Iterator[Refusal]:
    """Yield why nova-api refuses a request, the flavor's own faults first.

    If the image of the request is unknown, an image may exist with which a
    refusal does not hold, unless its source is the flavor.
    """
    yield from sorted(_refusals(request), key=lambda each: each.source.value)


def _refusals(request: Request) -> Iterator[Refusal]:
    combination = Combination.of(request)
    for rule in RULES:
        try:
            rule(combination)
        except Refusal as refusal:
            yield refusal
