# SPDX-License-Identifier: Apache-2.0
"""Finds the causes that exclude each host, and counts them over all hosts.

A *cause* is a minimal set of requirements that excludes a host: as long as the
request has all of them, the host is not offered, no matter which others are
dropped. A cause is usually a single requirement. In provider trees it can be
several requirements that the host meets separately but not together.

Dropping a requirement never excludes further hosts. So causes are found by
computing which hosts would be offered without some of the requirements.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
import dataclasses
import itertools
import operator

from isolate_aggregates import exception
from isolate_aggregates.filters.constraints import Conclusion, Destination
from isolate_aggregates_tools.capacity import check_traits
from isolate_aggregates_tools.cloud.snapshot import Snapshot, provider_index
from isolate_aggregates_tools.explain import joint_requirements
from isolate_aggregates_tools.explain.conclusions import Concluded
from isolate_aggregates_tools.explain.host import Context, HostProviders
from isolate_aggregates_tools.explain.offers import Offers
from isolate_aggregates_tools.explain.requirements import (
    Accepted,
    AtRoot,
    FromNode,
    Requirement,
)
from isolate_aggregates_tools.explain.splitting import DividedRequest
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.placement.provider import Provider
from isolate_aggregates_tools.request import constraints
from isolate_aggregates_tools.simulator.index import ProviderSet

Cause = tuple[Requirement, ...]
# Messages that are the same for several hosts, by what they depend on.
Messages = dict[Hashable, str]

# Requirements, as indexes into DividedRequest.requirements.
_Places = frozenset[int]


@dataclasses.dataclass(frozen=True)
class Reason:
    """A reason why a host is excluded.

    :param cause: The requirements that exclude it together, usually one.
    """

    cause: Cause
    text: str


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """The result for one host.

    :param causes: The causes that exclude it; empty for a candidate.
    :param by_fallback: Whether only Nova's fallback query offers it.
    """

    context: Context = dataclasses.field(repr=False)
    root: Provider
    causes: tuple[Cause, ...]
    by_fallback: bool = False

    @property
    def host(self) -> str:
        """The name of its compute service."""
        return self.root.host or ''

    @property
    def node(self) -> str:
        """The name of its root provider."""
        return self.root.name

    @property
    def provider(self) -> str:
        """The uuid of its root provider."""
        return self.root.uuid

    @property
    def is_candidate(self) -> bool:
        """Whether Placement offers the host and no host filter drops it."""
        return not self.causes

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The causes with their messages, which are built on access."""
        if not self.causes:
            return ()
        host = HostProviders(self.context, self.root)
        return tuple(
            Reason(cause, _text(cause, host)) for cause in self.causes
        )

    def texts(self, messages: Messages) -> Iterator[tuple[Cause, str]]:
        """Yield the causes with their messages.

        :param messages: The messages of previous hosts; it is updated.
        """
        host = None
        is_alone = self.context.is_alone(self.root)
        for cause in self.causes:
            message = None
            if is_alone and len(cause) == 1:
                depends = cause[0].depends_on(self.root)
                if depends is not None:
                    message = id(cause[0]), depends
            if message in messages:
                yield cause, messages[message]
                continue
            host = host or HostProviders(self.context, self.root)
            text = _text(cause, host)
            if message:
                messages[message] = text
            yield cause, text


def _text(cause: Cause, host: HostProviders) -> str:
    """Return the message for a host that a cause excludes."""
    if len(cause) == 1:
        return cause[0].reason(host)
    return joint_requirements.reason(cause, host)


@dataclasses.dataclass(frozen=True)
class Count:
    """The hosts that a cause excludes.

    :param excludes: The uuids of the root providers of the hosts that have it
        among their causes.
    :param only: The uuids of the root providers of the hosts that would be
        candidates without it. For a single requirement these include hosts
        that it excludes only together with others.
    """

    cause: Cause
    excludes: frozenset[str]
    only: frozenset[str]


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The result for a request.

    :param divided: The requirements; None if Placement rejects the query.
    :param verdicts: A verdict for every compute host, sorted by name.
    :param counts: The hosts that each requirement excludes, followed by those
        that causes of several requirements exclude.
    :param remedies: If there is no candidate: the smallest sets of
        requirements to drop so that there is one.
    """

    divided: DividedRequest | None
    verdicts: tuple[Verdict, ...]
    counts: tuple[Count, ...]
    remedies: tuple[tuple[Requirement, ...], ...]


def explain(
    snapshot: Snapshot,
    request: ResourceRequest,
    destination: Destination,
) -> Explanation:
    """Explain every host of a snapshot.

    Required traits and requested resource classes are assumed to exist, even
    if no provider has them.

    :param request: The request before any request filter has changed it.
    :param destination: The conclusions of the request filters, which may
        include a refusal.
    :raises BadQuery: if Placement would answer the query with 400.
    """
    parts = DividedRequest(request, destination.conclusions)
    check_traits(snapshot, parts.whole)
    return _Explainer(snapshot, parts).explain()


def rejected(snapshot: Snapshot) -> Explanation:
    """Explain that Placement rejects the query, so that no host fits."""
    context = Context(provider_index(snapshot), {}, {})
    causes: tuple[Cause, ...] = ((Accepted(None),),)
    verdicts = tuple(
        Verdict(context, provider, causes)
        for provider in sorted(
            (provider for provider in snapshot.providers if provider.host),
            key=operator.attrgetter('host', 'name'),
        )
    )
    return Explanation(None, verdicts, (), ())


@dataclasses.dataclass(frozen=True)
class _Alike:
    """Hosts with the same causes."""

    hosts: ProviderSet
    causes: tuple[_Places, ...]


class _Explainer:
    def __init__(self, snapshot: Snapshot, request: DividedRequest) -> None:
        self._request = request
        # The last two are not part of the request.
        self._requirements = (
            *request.requirements,
            FromNode(None),
            AtRoot(None),
        )
        self._node = frozenset({len(request.requirements)})
        self._root = frozenset({len(request.requirements) + 1})
        self._everything = frozenset(range(len(request.requirements)))
        self._offers = Offers(provider_index(snapshot), request)
        self._index = self._offers.index
        self._names = {
            **snapshot.placement_aggregates,
            **{a.uuid: a.name for a in snapshot.aggregates},
        }
        self._hosts = self._index.set_of(
            number
            for number, provider in enumerate(snapshot.providers)
            if provider.host
        )
        # Host filters add nothing to the query, so the hosts that each of them
        # drops are computed here.
        self._dropped: dict[int, ProviderSet] = {}
        for place, requirement in enumerate(self._requirements):
            if isinstance(requirement, Concluded) and constraints.objections(
                requirement.conclusion.alone
            ):
                hosts = self._dropped_by(requirement.conclusion)
                self._dropped[place] = hosts

    def explain(self) -> Explanation:
        alike = list(self._without_skipped(self._all_alike()))
        no_candidates = all(some.causes for some in alike)
        return Explanation(
            divided=self._request,
            verdicts=self._verdicts(alike),
            counts=tuple(self._counts(alike)),
            remedies=self._remedies(alike) if no_candidates else (),
        )

    def _offered(
        self, omissions: Collection[int], hosts: ProviderSet
    ) -> ProviderSet:
        """Return the hosts that are candidates without some requirements."""
        request = self._without(omissions)
        return self._among(hosts, omissions, request) if request else 0

    def _usable(
        self, omissions: Collection[int], hosts: ProviderSet
    ) -> ProviderSet:
        """Return those of the offered hosts that Nova does not skip."""
        request = self._without(omissions)
        if request and (offered := self._among(hosts, omissions, request)):
            return self._offers.on_node(offered, request)
        return 0

    def _without(self, omissions: Collection[int]) -> ResourceRequest | None:
        """Return the rest of the request; None if a filter refuses it."""
        try:
            return self._request.without(self._cause(omissions))
        except exception.RequestRefused:
            return None

    def _among(
        self,
        hosts: ProviderSet,
        omissions: Collection[int],
        request: ResourceRequest,
    ) -> ProviderSet:
        for place, some in self._dropped.items():
            if place not in omissions:
                hosts &= ~some
        return self._offers.among(hosts, request)

    def _dropped_by(self, conclusion: Conclusion) -> ProviderSet:
        """Return the hosts that a host filter drops.

        Hosts are left out that its request filter excludes already.
        """
        providers = self._index.providers
        hosts = self._hosts & ~self._said_before(conclusion.filter_name)
        return self._index.set_of(
            number
            for number in self._index.members(hosts)
            if constraints.dropped(
                conclusion.alone, providers[number].host or ''
            )
        )

    def _said_before(self, host_filter: str) -> ProviderSet:
        """Return the hosts that the filter's request filter excludes."""
        hosts = 0
        for other, requirement in enumerate(self._requirements):
            if isinstance(requirement, Concluded) and (
                requirement.conclusion.host_filter == host_filter
            ):
                others = self._everything - {other}
                hosts |= self._hosts & ~self._offered(others, self._hosts)
        return hosts

    def _cause(self, places: Collection[int]) -> Cause:
        return tuple(self._requirements[place] for place in sorted(places))

    def _all_alike(self) -> Iterator[_Alike]:
        """Yield all hosts, grouped by their causes.

        The first causes are single requirements that exclude a host even if
        all others are dropped. Conflicts of several requirements follow.
        """
        if moved := self._hosts & ~self._index.roots:
            yield _Alike(moved, (self._root,))
        parts = [_Alike(self._hosts & self._index.roots, ())]
        for place in sorted(self._everything):
            others = self._offered(self._everything - {place}, self._hosts)
            parts = [
                part
                for old in parts
                for part in (
                    _Alike(old.hosts & others, old.causes),
                    _Alike(
                        old.hosts & ~others, (*old.causes, frozenset({place}))
                    ),
                )
                if part.hosts
            ]
        for part in parts:
            yield from self._completed(part)

    def _without_skipped(self, alike: Iterable[_Alike]) -> Iterator[_Alike]:
        """Separate candidates of Placement that Nova skips."""
        for some in alike:
            if some.causes:
                yield some
                continue
            usable = self._usable((), some.hosts)
            for hosts, causes in (
                (usable, ()),
                (some.hosts & ~usable, (self._node,)),
            ):
                if hosts:
                    yield _Alike(hosts, causes)

    def _completed(self, alike: _Alike) -> Iterator[_Alike]:
        """Add causes of several requirements until hosts are offered."""
        omissions = frozenset().union(*alike.causes)
        candidates = self._offered(omissions, alike.hosts)
        if candidates:
            yield _Alike(candidates, alike.causes)
        rest = alike.hosts & ~candidates
        if rest:
            for hosts, cause in self._conflicts(rest, omissions):
                more = _Alike(hosts, (*alike.causes, cause))
                yield from self._completed(more)

    def _conflicts(
        self, hosts: ProviderSet, omissions: _Places
    ) -> Iterator[tuple[ProviderSet, _Places]]:
        """Yield one further cause for each host.

        Requirements are dropped one after the other. A requirement without
        which the host would be offered is kept: it is part of the cause.
        """
        parts = [(hosts, omissions)]
        for place in sorted(self._everything - omissions):
            halves = []
            for some, without in parts:
                less = without | {place}
                candidates = self._offered(less, some)
                halves += [(some & ~candidates, less), (candidates, without)]
            parts = [part for part in halves if part[0]]
        for some, without in parts:
            yield some, self._everything - without

    def _verdicts(self, alike: Sequence[_Alike]) -> tuple[Verdict, ...]:
        context = Context(self._index, self._names, self._request.classes)
        causes: dict[str, tuple[Cause, ...]] = {}
        for some in alike:
            value = tuple(map(self._cause, some.causes))
            causes.update(dict.fromkeys(self._uuids(some.hosts), value))
        numbers = self._index.members(self._hosts)
        roots = map(self._index.providers.__getitem__, numbers)
        return tuple(
            Verdict(context, root, causes[root.uuid])
            for root in sorted(roots, key=operator.attrgetter('host', 'name'))
        )

    def _counts(self, alike: Sequence[_Alike]) -> Iterator[Count]:
        """Yield a count per requirement, then per cause of several."""
        single = [frozenset({place}) for place in sorted(self._everything)]
        causes = dict.fromkeys(single)
        causes.update(dict.fromkeys(c for some in alike for c in some.causes))
        excludes, only = dict.fromkeys(causes, 0), dict.fromkeys(causes, 0)
        for some in alike:
            for cause in some.causes:
                excludes[cause] |= some.hosts
            if len(some.causes) == 1:
                [cause] = some.causes
                if cause == self._node:
                    only[cause] |= some.hosts
                    places = self._everything
                else:
                    only[cause] |= self._usable(cause, some.hosts)
                    places = cause if len(cause) > 1 else frozenset()
                for place in places:
                    candidates = self._usable({place}, some.hosts)
                    only[frozenset({place})] |= candidates
        for cause in causes:
            yield Count(
                self._cause(cause),
                self._uuids(excludes[cause]),
                self._uuids(only[cause]),
            )

    def _uuids(self, hosts: ProviderSet) -> frozenset[str]:
        if not hosts:
            return frozenset()
        flags = self._index.flags(hosts)
        return frozenset(itertools.compress(self._index.uuids, flags))

    def _remedies(
        self, alike: Sequence[_Alike]
    ) -> tuple[tuple[Requirement, ...], ...]:
        """Return the smallest sets of requirements to drop.

        At least one requirement of each cause of a host must be dropped.
        """
        for size in range(1, len(self._everything) + 1):
            remedies = {
                remedy
                for some in alike
                for remedy in self._breaking(some.causes, size)
                if self._usable(remedy, some.hosts)
            }
            if remedies:
                return tuple(map(self._cause, sorted(remedies, key=sorted)))
        return ()

    def _breaking(
        self, causes: Sequence[_Places], size: int
    ) -> Iterator[_Places]:
        """Yield the sets of this size that intersect every cause."""
        if len(causes) > size or self._node in causes or self._root in causes:
            return
        single = frozenset().union(*(c for c in causes if len(c) == 1))
        rest = sorted(self._everything - single)
        for more in itertools.combinations(rest, size - len(single)):
            remedy = single | set(more)
            if all(remedy & cause for cause in causes):
                yield remedy
