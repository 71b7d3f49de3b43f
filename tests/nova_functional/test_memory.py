# SPDX-License-Identifier: Apache-2.0
"""nova-scheduler keeps nothing of the requests that it has served."""

import collections
import gc
import logging
import threading

from nova import objects
import pytest
import scheduler_load

from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.nova.adapter import NovaRequest

ROUNDS = 150


class MemoryTest(scheduler_load.SchedulerLoad):
    """Requests of every kind, with aggregates that change."""

    @pytest.mark.slow
    def test_nothing_is_kept_of_requests(self):
        # Nova's fixture keeps what is logged, and log records keep errors.
        self.addCleanup(logging.disable, logging.root.manager.disable)
        logging.disable(logging.CRITICAL)
        for _ in range(len(self.kinds())):
            self.serve()
        before = self.live()
        for _ in range(ROUNDS):
            self.serve()
        # Requests of each kind were served, or were not.
        assert self.served > ROUNDS // 2
        assert self.refused > ROUNDS // 4
        after = self.live()
        for kind, number in after.items():
            assert number <= before[kind] + 1, kind

    @staticmethod
    def live():
        """Return the number of live objects by class, and of threads."""
        gc.collect()
        counted = collections.Counter(map(type, gc.get_objects()))
        kinds = objects.RequestSpec, AggregateIndex, NovaRequest
        return {
            **{kind.__name__: counted[kind] for kind in kinds},
            'threads': threading.active_count(),
        }
