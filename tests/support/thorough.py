# SPDX-License-Identifier: Apache-2.0
"""How many random cases and broken calls a test tries.

An ordinary run tries a few, and each run other ones. ``THOROUGH=1`` tries ten
times as many random cases, and breaks each call.
"""

import os

from hypothesis import HealthCheck, settings

THOROUGH = bool(os.environ.get('THOROUGH'))


def examples(number):
    """Return the settings of a property test."""
    return settings(
        max_examples=10 * number if THOROUGH else number,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def every(number):
    """Return the distance between the calls that are broken."""
    return 1 if THOROUGH else number
