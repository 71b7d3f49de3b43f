# SPDX-License-Identifier: Apache-2.0
"""Decides about requests for servers that may have been rebuilt.

Nova records the image of a rebuild before anybody accepts it. For a rebuild
from the same image, which may have changed, it never calls the scheduler. If
it calls the scheduler, and that refuses, the record remains. So when a server
is moved after a rebuild, filters also get to know its past.
"""

from __future__ import annotations

from collections.abc import Callable
import datetime

from nova import objects
from nova.scheduler import utils as scheduler_utils
from oslo_log import log as logging

from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.decision import Decision, decide
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.nova import adapter, images, messages, source
from isolate_aggregates.rest.deadline import Deadline

LOG = logging.getLogger(__name__)

# Seconds to wait for Nova's databases. Nova itself may wait for a minute.
LONGEST = 10.0

ReadKeys = Callable[[str, datetime.datetime], frozenset[tuple[str, str]]]


class Decider:
    """Runs the request filters for a request of nova-scheduler.

    :param longest: Seconds that a request waits for a database at most.
    """

    def __init__(
        self,
        read_record: images.Read = images.read,
        read_keys: ReadKeys = source.keys_since,
        longest: float = LONGEST,
    ) -> None:
        self._read_record = read_record
        self._read_keys = read_keys
        self._longest = longest
        # By uuid of the cell: one that hangs must not hold up the others.
        self._records: dict[str, Deadline] = {}
        self._keys = Deadline('Nova', longest)

    def decide(
        self,
        spec: objects.RequestSpec,
        aggregates: AggregateIndex,
        pipeline: Pipeline,
    ) -> Decision:
        """Run the request filters.

        :param spec: Nova's request spec. If its image was refused for the
            server, the traits of the image are removed.
        :raises RequestRefused: if the image of the server is not known.
        """
        if not images.is_for_existing(spec) or not adapter.has_image(spec):
            request = adapter.NovaRequest(spec, read_record=self._read)
            return decide(request, aggregates, pipeline)
        record = self._read(spec)
        past = None
        if (
            record is not None
            and record.rebuilt_at
            # This record is that of the rebuild itself.
            and not scheduler_utils.request_is_rebuild(spec)
        ):
            past = adapter.past(spec, record, self._host_keys(record))
            if past.is_refused:
                LOG.info(
                    'The image that Nova has recorded for %s was refused in a '
                    'rebuild: its traits do not count, and of its keys only '
                    'those of its own project do',
                    messages.server(spec),
                )
                adapter.remove_traits(spec)
        request = adapter.NovaRequest(
            spec, read_record=lambda _: record, past=past
        )
        return decide(request, aggregates, pipeline)

    def _host_keys(self, record: images.Record) -> frozenset[tuple[str, str]]:
        host, time = record.host, record.rebuilt_at
        if not host or not time:
            return frozenset()
        return self._keys.run(lambda: self._read_keys(host, time))

    def _read(self, spec: objects.RequestSpec) -> images.Record | None:
        cell = images.cell_of(spec)
        deadline = self._records.setdefault(
            cell.uuid if cell is not None and 'uuid' in cell else '',
            Deadline("Nova's database", self._longest),
        )
        return deadline.run(lambda: self._read_record(spec))
