# SPDX-License-Identifier: Apache-2.0
"""Tries again what another client was faster with."""

import logging

import tenacity

from isolate_aggregates import exception

LOG = logging.getLogger(__name__)

# Each server that boots or goes is one reason for a conflict.
_ATTEMPTS = 20
_LONGEST_PAUSE = 0.5  # seconds

retried = tenacity.retry(
    retry=tenacity.retry_if_exception_type(exception.ServiceConflict),
    stop=tenacity.stop_after_attempt(_ATTEMPTS),
    # Two clients would otherwise meet again and again.
    wait=tenacity.wait_random_exponential(0.02, _LONGEST_PAUSE),
    before_sleep=tenacity.before_sleep_log(LOG, logging.DEBUG),
    reraise=True,
)
