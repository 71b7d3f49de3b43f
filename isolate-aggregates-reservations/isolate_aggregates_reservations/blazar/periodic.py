# SPDX-License-Identifier: Apache-2.0
"""Completes unfinished work periodically.

blazar-manager handles lease events one after the other, but calls each monitor
plugin in its own thread. So an event handler does not wait, and the rest is
done here.
"""

from collections.abc import Callable
import logging
from typing import Any

from blazar.plugins import base

from isolate_aggregates import exception

LOG = logging.getLogger(__name__)


class PeriodicCompletion(base.BaseMonitorPlugin):
    """A monitor plugin that blazar-manager polls.

    :param interval: Returns the seconds between two calls.
    """

    def __init__(
        self, complete: Callable[[], None], interval: Callable[[], int]
    ) -> None:
        self._complete = complete
        self._interval = interval

    def is_notification_enabled(self) -> bool:
        return False

    def get_notification_event_types(self) -> list[str]:
        return []

    def get_notification_topics(self) -> list[str]:
        return []

    def notification_callback(
        self, event_type: str, payload: Any
    ) -> dict[str, Any]:
        return {}

    def is_polling_enabled(self) -> bool:
        return True

    def get_polling_interval(self) -> int:
        return self._interval()

    def poll(self) -> dict[str, Any]:
        try:
            self._complete()
        except exception.IsolateAggregatesError as exc:
            LOG.warning('Unfinished work will be retried later: %s', exc)
        return {}

    def get_healing_interval(self) -> int:
        """Return 0: healing is left to Blazar's own monitor."""
        return 0

    def heal(self) -> dict[str, Any]:
        return {}
