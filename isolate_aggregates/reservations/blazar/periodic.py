# SPDX-License-Identifier: Apache-2.0
"""Completes unfinished work later.

blazar-manager runs the events of leases one after the other and calls monitor
plugins from threads of their own. So an event does what it can at once, and
the rest is done from here.
"""

from collections.abc import Callable
import logging
from typing import Any

from blazar.plugins import base

from isolate_aggregates import exception

LOG = logging.getLogger(__name__)


class PeriodicCompletion(base.BaseMonitorPlugin):
    """Called by blazar-manager now and then.

    :param complete: Completes what can be completed by now.
    :param interval: Gives the seconds between two calls.
    """

    def __init__(
        self, complete: Callable[[], None], interval: Callable[[], int]
    ) -> None:
        self._complete = complete
        self._interval = interval

    def is_notification_enabled(self) -> bool:
        """Tell that no notifications are wanted."""
        return False

    def get_notification_event_types(self) -> list[str]:
        """Return no types of notifications."""
        return []

    def get_notification_topics(self) -> list[str]:
        """Return no topics of notifications."""
        return []

    def notification_callback(
        self, event_type: str, payload: Any
    ) -> dict[str, Any]:
        """Take no notice of a notification."""
        return {}

    def is_polling_enabled(self) -> bool:
        """Tell that it wants to be called."""
        return True

    def get_polling_interval(self) -> int:
        """Return the seconds between two calls."""
        return self._interval()

    def poll(self) -> dict[str, Any]:
        """Complete what can be completed by now.

        :returns: No flags of reservations to change.
        """
        try:
            self._complete()
        except exception.IsolateAggregatesError as exc:
            LOG.warning('Unfinished work is tried again later: %s', exc)
        return {}

    def get_healing_interval(self) -> int:
        """Return 0: healing is left to Blazar's own monitor."""
        return 0

    def heal(self) -> dict[str, Any]:
        """Heal nothing."""
        return {}
