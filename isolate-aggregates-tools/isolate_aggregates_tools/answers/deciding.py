# SPDX-License-Identifier: Apache-2.0
"""Asks the request filters: the only place in the tools that does."""

from collections.abc import Hashable, Iterator, Sequence, Set
import contextlib
import dataclasses
import logging

from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.decision import Decision, decide
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.answers.requests import STRANGER, Requests
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.mirrored import compute_services
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.request import (
    Request,
    asking,
    constraints,
    resources,
)


def decided(
    request: Request, index: AggregateIndex, pipeline: Pipeline
) -> Decision:
    """Return what the filters conclude about a request in a cloud.

    :param index: The aggregates and compute services of the cloud.
    :param pipeline: The filters that decide, and those of Nova.
    :raises InvalidRequest: if nova-api would refuse it.
    """
    return decide(request, index, pipeline)


@dataclasses.dataclass(frozen=True)
class Question:
    """The queries of servers to Placement, of which a host needs one.

    :param destination: The conclusions of the filters, for hosts that a host
        filter drops.
    """

    queries: Sequence[ResourceRequest]
    destination: Destination


class Questions:
    """The queries of new servers in a cloud.

    :param snapshot: The cloud.
    :param requests: Builds requests for it, or for the cloud before a change.
    """

    def __init__(
        self, snapshot: Snapshot, pipeline: Pipeline, requests: Requests
    ) -> None:
        self._index = snapshot.index
        self._pipeline = pipeline
        self._requests = requests.on(snapshot)
        self._last: Request | None = None
        self._questions: dict[
            Hashable, tuple[Flavor, Image | None, Question | None]
        ] = {}

    def of(
        self, flavor: Flavor, image: Image | None, project: str | None
    ) -> Question | None:
        """Return the query of servers; None if they are refused."""
        key = id(flavor), id(image), project
        if key not in self._questions:
            found = self.once(flavor, image, project)
            # They are kept, so that no others get their identity.
            self._questions[key] = flavor, image, found
        *_, found = self._questions[key]
        return found

    def once(
        self, flavor: Flavor, image: Image | None, project: str | None
    ) -> Question | None:
        """Return the same as :meth:`of`, and do not keep it.

        For questions of which there can be too many to keep. Those of a flavor
        and an image are best asked one after the other.
        """
        request = self._request(flavor, image, project or STRANGER)
        return question(request, self._index, self._pipeline)

    def regardless(
        self, flavor: Flavor, image: Image | None
    ) -> Question | None:
        """Return the query of servers, even if their project is refused.

        :returns: None if nova-api refuses the flavor or the image.
        """
        if question := self.of(flavor, image, None):
            return question
        request = dataclasses.replace(
            self._requests.new(flavor, image, STRANGER), availability_zone=None
        )
        try:
            decision = decided(request, self._index, self._pipeline)
        except errors.InvalidRequest:
            return None
        decision.destination.refusals.clear()
        return Question(asking.every(decision, request), decision.destination)

    def _request(
        self, flavor: Flavor, image: Image | None, project: str
    ) -> Request:
        """Return a request, which may be the last one but for the project."""
        last = self._last
        if not last or last.flavor is not flavor or last.image is not image:
            self._last = self._requests.new(flavor, image, project)
            return self._last
        return dataclasses.replace(
            last, project_id=project, known_traits=last.required_traits
        )


def question(
    request: Request, index: AggregateIndex, pipeline: Pipeline
) -> Question | None:
    """Return the query of servers; None if they are refused."""
    try:
        return asked(request, index, pipeline)
    except (errors.InvalidRequest, exception.RequestRefused):
        return None


def asked(
    request: Request, index: AggregateIndex, pipeline: Pipeline
) -> Question:
    """Return the query of servers.

    :raises InvalidRequest: if a flavor or an image is not valid.
    :raises RequestRefused: if the filters refuse them.
    """
    decision = decided(request, index, pipeline)
    return Question(asking.every(decision, request), decision.destination)


def objections(
    destination: Destination, aggregates: Set[str], host: str
) -> list[str]:
    """Return why a server that runs on a host could not get it now.

    Host filters of Nova are asked where the request filters allow the host, as
    they mostly repeat what these say. That a compute service is down or
    disabled says nothing about the servers that run there.

    :param aggregates: The uuids of the aggregates of the host.
    """
    return destination.objections(aggregates) or [
        f'{name} of Nova drops the host: it is {why}'
        for name, objection in constraints.objections_by_filter(destination)
        if name != compute_services.NAME and (why := objection(host))
    ]


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Drop the warnings about flavors, which are evaluated again and again."""
    logger = logging.getLogger(resources.__name__)
    logger.addFilter(_nothing)
    try:
        yield
    finally:
        logger.removeFilter(_nothing)


def _nothing(record: logging.LogRecord) -> bool:
    return False
