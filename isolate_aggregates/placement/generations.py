# SPDX-License-Identifier: Apache-2.0
"""Writes a part of a resource provider at the generation that it was read at.

Each part can only be replaced as a whole, together with the generation of the
resource provider. Placement refuses a generation that is not the newest. See
`Resource provider generation and consumer generation
<https://docs.openstack.org/placement/latest/contributor/generations.html>`_.
"""

from collections.abc import Collection
import logging
from typing import Any

import tenacity

from isolate_aggregates import exception
from isolate_aggregates.placement.client import PlacementClient

LOG = logging.getLogger(__name__)

KEY = 'resource_provider_generation'

_ATTEMPTS = 5
_LONGEST_PAUSE = 0.2  # seconds


# Placement answers 500 if its database ends one of two transactions that wait
# for each other, as MariaDB does now and then, and instead of 409 if another
# client writes between its reading and its writing of traits. Neither writes
# anything. If the first request was carried out nevertheless, its generation
# keeps it from being carried out twice.
@tenacity.retry(
    retry=tenacity.retry_if_exception_type(exception.ServiceFailed),
    stop=tenacity.stop_after_attempt(_ATTEMPTS),
    wait=tenacity.wait_random_exponential(0.02, _LONGEST_PAUSE),
    before_sleep=tenacity.before_sleep_log(LOG, logging.DEBUG),
    reraise=True,
)
def replace(
    placement: PlacementClient,
    provider: str,
    part: str,
    value: Collection[object],
    generation: int,
) -> Any:
    """Replace a part of a resource provider, and try again after a 500.

    :param provider: The uuid of the resource provider.
    :param part: ``aggregates``, ``inventories`` or ``traits``.
    :param value: The part as it is to be, as Placement's API has it.
    :param generation: The generation at which that was decided.
    :returns: What Placement answers: the part, and the new generation.
    :raises ServiceNotFound: if there is no such provider.
    :raises ServiceConflict: if another client changed the provider since, an
        inventory to be taken away is in use, or the request was carried out
        although the first answer was 500.
    :raises ServiceError: if it cannot be done.
    """
    return placement.send(
        'PUT',
        f'/resource_providers/{provider}/{part}',
        {KEY: generation, part: value},
    )
