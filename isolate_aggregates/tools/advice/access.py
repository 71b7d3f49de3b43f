# SPDX-License-Identifier: Apache-2.0
"""Computes who may use which hosts, regardless of what is in use."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
import contextlib
import dataclasses
import itertools
import logging

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.decision import decide
from isolate_aggregates.filters.destination import Destination
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.placement.group import ResourceRequest
from isolate_aggregates.placement.provider import MAX_INT, Inventory, Provider
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.tools import filter_keys
from isolate_aggregates.tools.capacity import Packing
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.request import Request, asking, resources
from isolate_aggregates.tools.simulator import Simulator
from isolate_aggregates.tools.simulator.index import ProviderIndex

# Servers of any flavor without extra specs, also of one that does not exist
# yet.
ANY_FLAVOR = Flavor('', vcpus=1, ram=1)
# A project that owns nothing.
STRANGER = '-'
# The most projects that are asked about.
_PROJECTS = 20
_ENDLESS = ('VCPU', 'PCPU', 'MEMORY_MB', 'DISK_GB')


@dataclasses.dataclass(frozen=True)
class Asker:
    """Servers that are alike, by the names of what they are made of.

    :param flavor: The name of the flavor; empty for any without extra specs.
    :param image: The name of the image; None for one without keys.
    :param project: The id of the project; None for one that owns nothing.
    """

    flavor: str
    image: str | None
    project: str | None

    @property
    def is_plain(self) -> bool:
        """Whether neither the image nor the project opens anything."""
        return self.image is None and self.project is None


@dataclasses.dataclass(frozen=True)
class Question:
    """The queries of servers to Placement, of which a host needs one.

    :param destination: The conclusions of the filters, for hosts that a host
        filter drops.
    """

    queries: Sequence[ResourceRequest]
    destination: Destination


class Questions:
    """The queries of servers in a cloud.

    :param snapshot: The cloud; only its aggregates matter.
    """

    def __init__(self, snapshot: Snapshot, pipeline: Pipeline) -> None:
        self._index = snapshot.index
        self._pipeline = pipeline
        self._questions: dict[Hashable, Question | None] = {}

    def of(
        self, flavor: Flavor, image: Image | None, project: str | None
    ) -> Question | None:
        """Return the query of servers; None if they are refused."""
        key = id(flavor), id(image), project
        if key not in self._questions:
            request = Request(flavor, image, project or STRANGER)
            self._questions[key] = question(
                request, self._index, self._pipeline
            )
        return self._questions[key]


def question(
    request: Request, index: AggregateIndex, pipeline: Pipeline
) -> Question | None:
    """Return the query of servers; None if they are refused."""
    try:
        return asked(request, index, pipeline)
    except (exception.InvalidRequest, exception.RequestRefused):
        return None


def asked(
    request: Request, index: AggregateIndex, pipeline: Pipeline
) -> Question:
    """Return the query of servers.

    :raises InvalidRequest: if a flavor or an image is not valid.
    :raises RequestRefused: if the filters refuse them.
    """
    decision = decide(request, index, pipeline)
    return Question(asking.every(decision, request), decision.destination)


class Offers:
    """The hosts that Placement offers.

    :param in_use: Whether what is in use counts, or all hosts are empty.
    """

    def __init__(self, snapshot: Snapshot, in_use: bool = False) -> None:
        self._simulator = Simulator(
            (
                provider
                if in_use
                else dataclasses.replace(provider, usages={})
                for provider in snapshot.providers
            ),
            snapshot.traits,
            snapshot.resource_classes,
        )
        self._members = frozenset[str]().union(
            *(provider.aggregates for provider in snapshot.providers)
        )

    def hosts(self, question: Question | None) -> frozenset[str]:
        """Return the hosts that servers may use."""
        if question is None:
            return frozenset()
        hosts = self.offered(question.queries)
        if not question.destination.host_objections:
            return hosts
        return frozenset(
            host for host in hosts if not question.destination.dropped(host)
        )

    def offered(self, queries: Iterable[ResourceRequest]) -> frozenset[str]:
        """Return the hosts that Placement offers for at least one query."""
        roots = 0
        try:
            for query in queries:
                roots |= self._simulator.hosts(self.relevant(query))
        except exception.BadQuery:
            return frozenset()
        index = self._simulator.index
        return frozenset(
            itertools.compress(index.host_of, index.flags(roots & index.nodes))
        )

    def relevant(self, query: ResourceRequest) -> ResourceRequest:
        """Return a query without forbidden aggregates that nothing is in.

        There can be thousands, and the simulator checks each.
        """
        return dataclasses.replace(
            query,
            groups={
                suffix: dataclasses.replace(
                    group,
                    forbidden_aggregates=set(
                        self._members & group.forbidden_aggregates
                    ),
                )
                for suffix, group in query.groups.items()
            },
        )


def room(
    snapshot: Snapshot,
    question: Question | None,
    offers: Offers,
    index: ProviderIndex | None = None,
) -> int:
    """Return the number of servers for which there is room now.

    :param offers: The offers of the cloud.
    :param index: The index of its providers; None to build it.
    """
    if question is None:
        return 0
    first, *fallbacks = map(offers.relevant, question.queries)
    try:
        packing = Packing(
            snapshot, first, question.destination, fallbacks, index
        )
    except exception.BadQuery:
        return 0
    return packing.total()


def flavors(snapshot: Snapshot) -> tuple[Flavor, ...]:
    """Return the flavors to ask about."""
    return (*snapshot.flavors, ANY_FLAVOR)


def images(snapshot: Snapshot, pipeline: Pipeline) -> Iterator[Image | None]:
    """Yield the images to ask about: one of each kind that matters."""
    yield None
    declaration = pipeline.image_properties
    kinds = set()
    for image in snapshot.images:
        kind = frozenset(
            (key, value)
            for key, value in image.properties.items()
            if key.startswith(xs.TRAIT_PREFIX) or declaration.has(key)
        )
        if kind and (kind, image.owner) not in kinds:
            kinds.add((kind, image.owner))
            yield image


def projects(
    aggregates: Iterable[Aggregate], pipeline: Pipeline
) -> tuple[str | None, ...]:
    """Return the projects to ask about: those that aggregates name."""
    return (None, *sorted(named_projects(aggregates, pipeline))[:_PROJECTS])


def named_projects(
    aggregates: Iterable[Aggregate], pipeline: Pipeline
) -> frozenset[str]:
    """Return the ids of all projects that aggregates name."""
    filters = [entry.request_filter for entry in pipeline.filters]
    prefixes = tuple(
        prefix for each in filters for prefix in filter_keys.of_projects(each)
    )
    owner_keys = {
        filter_keys.of_reservations(each).owner_key for each in filters
    }
    project_ids = {
        project.strip()
        for aggregate in aggregates
        for key, value in aggregate.metadata.items()
        if key in owner_keys or (prefixes and key.startswith(prefixes))
        for project in value.split(',')
    }
    return frozenset(project_ids - {''})


def completed(snapshot: Snapshot, hosts: Iterable[str]) -> Snapshot:
    """Return the snapshot with a compute node for each host.

    A host that has none yet may get one at any time.
    """
    missing = sorted(set(hosts) - {p.host for p in snapshot.providers})
    if not missing:
        return snapshot
    return dataclasses.replace(
        snapshot,
        providers=(
            *snapshot.providers,
            *(
                Provider(
                    uuid=f'compute node of {host}',
                    name=host,
                    host=host,
                    inventories={
                        name: Inventory(MAX_INT) for name in _ENDLESS
                    },
                    aggregates=snapshot.index.aggregates_of.get(
                        host, frozenset()
                    ),
                )
                for host in missing
            ),
        ),
    )


def affected(before: Snapshot, after: Snapshot) -> frozenset[str] | None:
    """Return the hosts whose use a change may affect; None for all."""
    if (
        before.flavors is not after.flavors
        or before.images is not after.images
        or before.traits is not after.traits
    ):
        return None
    hosts: set[str] = set()
    for old, new in changed_aggregates(before, after):
        for aggregate in filter(None, (old, new)):
            hosts |= aggregate.hosts
    for was, now in zip(before.providers, after.providers, strict=True):
        if was is not now and was.host:
            hosts.add(was.host)
    return frozenset(hosts)


def changed_aggregates(
    before: Snapshot, after: Snapshot
) -> Iterator[tuple[Aggregate | None, Aggregate | None]]:
    """Yield the aggregates that differ, as they were and as they are."""
    was, now = (
        {aggregate.uuid: aggregate for aggregate in snapshot.aggregates}
        for snapshot in (before, after)
    )
    for uuid in dict.fromkeys((*was, *now)):
        old, new = was.get(uuid), now.get(uuid)
        if old is not new:
            yield old, new


def among(snapshot: Snapshot, hosts: frozenset[str]) -> Snapshot:
    """Return the snapshot without the compute nodes of other hosts."""
    uuids: set[str] = set()
    providers = []
    for provider in snapshot.providers:
        # Parents come before their children.
        if (
            provider.parent in uuids
            if provider.parent
            else not provider.host or provider.host in hosts
        ):
            uuids.add(provider.uuid)
            providers.append(provider)
    return dataclasses.replace(
        snapshot,
        providers=tuple(providers),
        aggregates=tuple(
            aggregate
            if aggregate.hosts <= hosts
            else dataclasses.replace(aggregate, hosts=aggregate.hosts & hosts)
            for aggregate in snapshot.aggregates
        ),
        traits=snapshot.traits.union(*(p.traits for p in snapshot.providers)),
    )


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
