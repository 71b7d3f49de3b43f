# SPDX-License-Identifier: Apache-2.0
"""The answers of a cloud to the questions of expectations.

The request filters decide on each request, and the simulator answers its
queries, as for all other commands. Every answer is computed once. Answers for
a cloud that differs in a single tag, trait or extra spec share what the
difference cannot change.
"""

from collections.abc import Hashable, Mapping
import dataclasses

import os_traits
from oslo_config import cfg

from isolate_aggregates.aggregates import AggregateIndex, Lock
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request.extra_specs import RESERVATION_CLASS
from isolate_aggregates_tools.answers import deciding, offers, scope
from isolate_aggregates_tools.answers.deciding import Question
from isolate_aggregates_tools.answers.offers import Offers
from isolate_aggregates_tools.answers.requests import STRANGER, Requests
from isolate_aggregates_tools.cloud.snapshot import Snapshot, provider_index
from isolate_aggregates_tools.placement.provider import trees
from isolate_aggregates_tools.request import Request, constraints
from isolate_aggregates_tools.simulator.index import ProviderIndex

_Hosts = frozenset[str]
_NONE: _Hosts = frozenset()
_GIB = 1_073_741_824
_SHARING = os_traits.MISC_SHARES_VIA_AGGREGATE
# The parts of a request, by identity: these objects are kept with it.
_Parts = tuple[int, int, str | None, str | None]


@dataclasses.dataclass(frozen=True)
class Context:
    """What is the same for a cloud and for all its variations.

    :param conf: The configuration of nova-scheduler.
    :param pipeline: The filters that decide, and those of Nova.
    :param filters: All configured filters, which define the locks.
    :param builder: Completes requests as Nova does.
    :param project_ids: The ids of projects by the names in expectations; None
        if there is no such project.
    """

    conf: cfg.ConfigOpts
    pipeline: Pipeline
    filters: Pipeline
    builder: Requests
    project_ids: Mapping[str, str | None] = dataclasses.field(
        default_factory=dict
    )
    # Caches. A request keeps its flavor and image, so no id is used twice.
    requests: dict[_Parts, Request] = dataclasses.field(default_factory=dict)
    images: dict[frozenset[tuple[str, str]], Image] = dataclasses.field(
        default_factory=dict
    )
    enlarged: dict[tuple[int, int], tuple[Flavor, Image, Flavor]] = (
        dataclasses.field(default_factory=dict)
    )


class Answers:
    """The answers of a cloud.

    :param base: The answers of a cloud with the same resource providers; None
        if there is none.
    :param same_aggregates: Whether the aggregates are the same, too.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        context: Context,
        base: 'Answers | None' = None,
        same_aggregates: bool = False,
    ) -> None:
        self.snapshot = snapshot
        self.context = context
        self.questions: dict[int, Question | None] = (
            base.questions if base and same_aggregates else {}
        )
        # The hosts of places, by the place.
        self.places: dict[Hashable, _Hosts] = (
            base.places if base and same_aggregates else {}
        )
        self._base = base
        self._same = base if same_aggregates else None
        self._hosts: dict[int, _Hosts] = {}
        self._room: dict[int, int] = {}
        self._fitting: dict[Hashable, int] = base._fitting if base else {}

    @lazy_property
    def offers(self) -> Offers:
        """The hosts that Placement offers, full or not."""
        return self._base.offers if self._base else Offers(self.snapshot)

    @lazy_property
    def index(self) -> ProviderIndex:
        """The resource providers, with what is in use."""
        if self._base:
            return self._base.index
        return provider_index(self.snapshot)

    @lazy_property
    def empty(self) -> Snapshot:
        """The cloud with nothing in use."""
        return dataclasses.replace(
            self.snapshot,
            providers=tuple(
                dataclasses.replace(provider, usages={})
                for provider in self.snapshot.providers
            ),
        )

    @lazy_property
    def aggregates(self) -> AggregateIndex:
        """All host aggregates."""
        return self._same.aggregates if self._same else self.snapshot.index

    @lazy_property
    def compute_hosts(self) -> _Hosts:
        """The names of all compute services with a compute node."""
        if self._base:
            return self._base.compute_hosts
        return frozenset(p.host for p in self.snapshot.providers if p.host)

    @lazy_property
    def locks(self) -> tuple[Lock, ...]:
        """All locks."""
        if self._same:
            return self._same.locks
        return self.context.filters.locks(self.aggregates)

    @lazy_property
    def locks_by_host(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the locks of each host that has one."""
        names: dict[str, list[str]] = {}
        for lock in self.locks:
            for host in frozenset[str]().union(
                *(aggregate.hosts for aggregate in lock.aggregates)
            ):
                names.setdefault(host, []).append(lock.name)
        return {host: tuple(some) for host, some in names.items()}

    @lazy_property
    def slot_hosts(self) -> Mapping[str, _Hosts]:
        """The hosts with slots of each reservation, by resource class."""
        if self._base:
            return self._base.slot_hosts
        hosts: dict[str, _Hosts] = {}
        for tree in trees(self.snapshot.providers).values():
            for provider in tree:
                for name in provider.inventories:
                    if name.startswith(RESERVATION_CLASS) and tree[0].host:
                        hosts[name] = hosts.get(name, _NONE) | {tree[0].host}
        return hosts

    @lazy_property
    def named_projects(self) -> _Hosts:
        """The ids of the projects that aggregates name."""
        if self._same:
            return self._same.named_projects
        return scope.named_projects(
            self.snapshot.aggregates, self.context.pipeline
        )

    @lazy_property
    def operator_images(self) -> tuple[Image | None, ...]:
        """An image of each kind that matters, and None; not of tenants."""
        images = scope.images(self.snapshot, self.context.pipeline)
        return tuple(i for i in images if i is None or not i.is_tenants)

    def request(
        self,
        flavor: Flavor,
        image: Image | None = None,
        project: str | None = None,
        zone: str | None = None,
    ) -> Request:
        """Return the request of servers, as Nova completes it.

        :param project: The id of the project; None for one that no aggregate
            is reserved for.
        """
        parts = id(flavor), id(image), project, zone
        if parts not in self.context.requests:
            self.context.requests[parts] = self.context.builder.new(
                flavor, image, project or STRANGER, zone
            )
        return self.context.requests[parts]

    def image(self, properties: Mapping[str, str]) -> Image:
        """Return an image that a tenant could upload, always the same."""
        key = frozenset(properties.items())
        return self.context.images.setdefault(
            key, Image('of any tenant', '', properties, visibility='private')
        )

    def enlarged(self, flavor: Flavor, image: Image) -> Flavor:
        """Return a flavor that is large enough for an image."""
        key = id(flavor), id(image)
        if key not in self.context.enlarged:
            disk = max(image.min_disk, -(-image.size // _GIB))
            large = flavor
            if flavor.ram < image.min_ram or flavor.disk < disk:
                large = dataclasses.replace(
                    flavor,
                    ram=max(flavor.ram, image.min_ram),
                    disk=max(flavor.disk, disk),
                )
            self.context.enlarged[key] = flavor, image, large
        return self.context.enlarged[key][2]

    def question(self, request: Request) -> Question | None:
        """Return the queries of a request; None if it is refused."""
        number = id(request)
        if number not in self.questions:
            self.questions[number] = deciding.question(
                request, self.aggregates, self.context.pipeline
            )
        return self.questions[number]

    def hosts(self, request: Request) -> _Hosts:
        """Return the hosts that servers may use, full or not."""
        number = id(request)
        if number not in self._hosts:
            self._hosts[number] = self.usable(self.question(request))
        return self._hosts[number]

    def room(self, request: Request) -> int:
        """Return the number of servers for which there is room now."""
        number = id(request)
        if number not in self._room:
            self._room[number] = self.packed(self.question(request))
        return self._room[number]

    def usable(self, question: Question | None) -> _Hosts:
        """Return the hosts that the servers of a question may use."""
        return self.offers.hosts(question)

    def packed(self, question: Question | None) -> int:
        """Return for how many servers of a question there is room."""
        if question is None:
            return 0
        if constraints.objections(question.destination):
            return self._fit(question)
        key = self.offers.key(question.queries)
        if key not in self._fitting:
            self._fitting[key] = self._fit(question)
        return self._fitting[key]

    def _fit(self, question: Question) -> int:
        return offers.room(self.snapshot, question, self.offers, self.index)


class AnswersWithoutTrait(Answers):
    """The answers of a cloud after a provider lost a trait.

    Only queries that name the trait are answered again, and only for the host
    of the provider.

    :param snapshot: The cloud without the trait.
    :param base: The answers of the cloud with it.
    :param host: The host whose provider it is; None if other hosts may use
        the provider, too.
    """

    def __init__(
        self, snapshot: Snapshot, base: Answers, trait: str, host: str | None
    ) -> None:
        super().__init__(snapshot, base.context, base, same_aggregates=True)
        self._before = base
        self._trait = trait
        self._host = host

    @lazy_property
    def _part(self) -> Answers:
        """The answers of the part of the cloud that the change may affect."""
        return self._of_part(self.snapshot)

    @lazy_property
    def _part_before(self) -> Answers:
        return self._of_part(self._before.snapshot)

    def _of_part(self, snapshot: Snapshot) -> Answers:
        if self._host is not None:
            snapshot = scope.among(snapshot, frozenset({self._host}))
        return Answers(snapshot, self.context)

    def hosts(self, request: Request) -> _Hosts:
        """Return the hosts that servers may use, full or not."""
        question = self.question(request)
        hosts = self._before.hosts(request)
        if not names_trait(question, self._trait):
            return hosts
        part = self._part.usable(question)
        return part if self._host is None else hosts - {self._host} | part

    def room(self, request: Request) -> int:
        """Return the number of servers for which there is room now."""
        question = self.question(request)
        room = self._before.room(request)
        if not names_trait(question, self._trait):
            return room
        before, after = (
            part.packed(question) for part in (self._part_before, self._part)
        )
        return room - before + after


def names_trait(question: Question | None, trait: str) -> bool:
    """Return whether the answer to a question can depend on a trait."""
    if question is None:
        return False
    return trait == _SHARING or any(
        trait in query.root_required
        or trait in query.root_forbidden
        or any(
            trait in group.required_traits
            or trait in group.forbidden_traits
            or any(trait in choice for choice in group.any_traits)
            for group in query.groups.values()
        )
        for query in question.queries
    )
