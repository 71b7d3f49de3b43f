# SPDX-License-Identifier: Apache-2.0
"""Decides about requests for servers, also after rebuilds nobody accepted.

Nova records the image of a rebuild before anybody accepts it. For a rebuild
from the same image, which may have changed, it never calls the scheduler. If
it calls the scheduler, and that refuses, the record remains. So when a server
is moved after a rebuild, the record is checked first, on the host where the
server is. If the server could not be there with it, the host tells what the
server was accepted with: the keys to the locks of that host hold it in.
"""

from __future__ import annotations

from collections.abc import Set
import dataclasses

from nova import objects
from nova.scheduler import utils as scheduler_utils
from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex, Membership
from isolate_aggregates.decision import Decision, decide
from isolate_aggregates.filters import host_check
from isolate_aggregates.filters.held import HeldImage
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.nova import adapter, images, messages
from isolate_aggregates.rest.deadline import Deadline
from isolate_aggregates.text import escaped

LOG = logging.getLogger(__name__)

# Seconds to wait for Nova's databases. Nova itself may wait for a minute.
LONGEST = 10.0


class Decider:
    """Runs the request filters for a request of nova-scheduler.

    :param longest: Seconds that a request waits for a database at most.
    """

    def __init__(
        self,
        members: Membership,
        read_record: images.Read = images.read,
        longest: float = LONGEST,
    ) -> None:
        self._members = members
        self._read_record = read_record
        self._longest = longest
        # By uuid of the cell: one that hangs must not hold up the others.
        self._records: dict[str, Deadline] = {}
        self._memberships = Deadline('Nova', longest)

    def decide(
        self,
        spec: objects.RequestSpec,
        aggregates: AggregateIndex,
        pipeline: Pipeline,
    ) -> Decision:
        """Run the request filters.

        :param spec: Nova's request spec. If its image was refused for the
            server, the traits of the image are replaced.
        :raises RequestRefused: if the image of the server is not known.
        """
        if not images.is_for_existing(spec) or not adapter.has_image(spec):
            request = adapter.NovaRequest(spec, read_record=self._read)
            return decide(request, aggregates, pipeline)
        record = self._read(spec)
        if (
            record is None
            or not record.was_rebuilt
            # This record is that of the rebuild itself.
            or scheduler_utils.request_is_rebuild(spec)
        ):
            return _decide(spec, record, aggregates, pipeline)
        return self._decide_rebuilt(spec, record, aggregates, pipeline)

    def _decide_rebuilt(
        self,
        spec: objects.RequestSpec,
        record: images.Record,
        aggregates: AggregateIndex,
        pipeline: Pipeline,
    ) -> Decision:
        """Run the request filters for a server that was rebuilt."""
        is_refused = record.is_refused(spec.image)
        if not record.host:
            if is_refused:
                images.refuse_without(['of the server'])
            return _decide(spec, record, aggregates, pipeline)
        uuids = self._aggregates_of(record.host)
        image = pipeline.held(
            adapter.without_image(spec, record.flavor),
            [each for each in aggregates if each.uuid in uuids],
        )
        if record.is_other(spec.image):
            adapter.replace_traits(spec, image.traits)
        if not is_refused and _is_allowed(
            spec, record, aggregates, pipeline, uuids
        ):
            return _decide(spec, record, aggregates, pipeline)
        LOG.info(
            'The properties that Nova has recorded for the image of '
            '%(server)s were never accepted on its host %(host)s; those that '
            'the host requires are used instead: %(held)s',
            {
                'server': messages.server(spec),
                'host': record.host,
                'held': escaped(', '.join(sorted(image.properties)) or 'none'),
            },
        )
        return _decide_held(spec, record, aggregates, pipeline, image)

    def _read(self, spec: objects.RequestSpec) -> images.Record | None:
        cell = images.cell_of(spec)
        deadline = self._records.setdefault(
            cell.uuid if cell is not None and 'uuid' in cell else '',
            Deadline("Nova's database", self._longest),
        )
        return deadline.run(lambda: self._read_record(spec))

    def _aggregates_of(self, host: str) -> Set[str]:
        members = self._memberships.run(
            lambda: self._members.aggregates_of([host])
        )
        return members.get(host, frozenset())


def _is_allowed(
    spec: objects.RequestSpec,
    record: images.Record,
    aggregates: AggregateIndex,
    pipeline: Pipeline,
    uuids: Set[str],
) -> bool:
    """Return whether the recorded image is allowed on the server's host.

    The filters that no image matters to are left out: what they object to is
    not the fault of the image.
    """
    try:
        decision = _decide(spec, record, aggregates, pipeline.of_images)
    except exception.RequestRefused:
        return False
    return not host_check.objections(decision.destination, uuids)


def _decide_held(
    spec: objects.RequestSpec,
    record: images.Record,
    aggregates: AggregateIndex,
    pipeline: Pipeline,
    image: HeldImage,
) -> Decision:
    """Run the request filters with the image that the host requires."""
    images.refuse_without(image.missing)
    record = dataclasses.replace(
        record, properties=image.properties, has_failed=False
    )
    decision = _decide(spec, record, aggregates, pipeline)
    for name, constraint in image.requirements(aggregates):
        decision.destination.add(constraint, name)
    return decision


def _decide(
    spec: objects.RequestSpec,
    record: images.Record | None,
    aggregates: AggregateIndex,
    pipeline: Pipeline,
) -> Decision:
    request = adapter.NovaRequest(spec, read_record=lambda _: record)
    return decide(request, aggregates, pipeline)
