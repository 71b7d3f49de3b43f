# SPDX-License-Identifier: Apache-2.0
"""Retries after conflicts with other clients (409)."""

import logging

import tenacity

from isolate_aggregates import exception

LOG = logging.getLogger(__name__)

# Each server that is created or deleted can cause a conflict.
_ATTEMPTS = 20
_LONGEST_PAUSE = 0.5  # seconds

retried = tenacity.retry(
    retry=tenacity.retry_if_exception_type(exception.ServiceConflict),
    stop=tenacity.stop_after_attempt(_ATTEMPTS),
    # Random, or two clients could conflict again on every attempt.
    wait=tenacity.wait_random_exponential(0.02, _LONGEST_PAUSE),
    before_sleep=tenacity.before_sleep_log(LOG, logging.DEBUG),
    reraise=True,
)
