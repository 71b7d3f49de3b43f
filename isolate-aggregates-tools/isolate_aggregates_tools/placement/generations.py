# SPDX-License-Identifier: Apache-2.0
"""Replaces a part of a resource provider, with the generation it was read at.

Each part can only be replaced as a whole, together with the generation of the
resource provider. Placement rejects an outdated generation. See
`Resource provider generation and consumer generation
<https://docs.openstack.org/placement/latest/contributor/generations.html>`_.
"""

from collections.abc import Collection
import logging
from typing import Any

import tenacity

from isolate_aggregates import exception
from isolate_aggregates_tools.placement.client import PlacementClient
from isolate_aggregates_tools.placement.providers import GENERATION

LOG = logging.getLogger(__name__)

_ATTEMPTS = 5
_LONGEST_PAUSE = 0.2  # seconds


# Placement answers 500 if its database aborts a transaction because of a
# deadlock, which occurs with MariaDB. It also answers 500 instead of 409 if
# another client writes while Placement is between reading and writing traits.
# Nothing is written in these cases. If a request was carried out although the
# answer was 500, the generation prevents that it is carried out twice.
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
    """Replace a part of a resource provider, and retry after a 500.

    :param part: ``aggregates``, ``inventories`` or ``traits``.
    :param value: The new value, in the format of Placement's API.
    :param generation: The generation that the new value is based on.
    :returns: The response of Placement: the part, and the new generation.
    :raises ServiceConflict: if another client has changed the provider since,
        an inventory to be deleted is in use, or the request was carried out
        although the first answer was 500.
    """
    return placement.send(
        'PUT',
        f'/resource_providers/{provider}/{part}',
        {GENERATION: generation, part: value},
    )
