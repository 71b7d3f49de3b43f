# SPDX-License-Identifier: Apache-2.0
"""Where Placement does not answer as its documentation says.

What a request comes to is worked out in memory by the documented rules, and
the service is asked as well where one of its known mistakes may show. Nova
only ever sees the service's answer.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import enum
import functools

import os_traits

from isolate_aggregates import exception, text
from isolate_aggregates.cloud.cloud import Cloud
from isolate_aggregates.decision import Decision
from isolate_aggregates.inspect import ranges
from isolate_aggregates.inspect.capacity import simulator
from isolate_aggregates.placement.client import AllocationCandidates
from isolate_aggregates.placement.group import ResourceRequest
from isolate_aggregates.placement.provider import Provider, nodes_by_host
from isolate_aggregates.request import Request
from isolate_aggregates.request import extra_specs as xs


class Mistake(enum.Enum):
    """A known mistake of Placement, as the documentation calls it."""

    LOST_ANCHORS = 'lost anchors'
    ADDED_AMOUNTS = 'added amounts'
    SHARING_CHILD = 'sharing child'

    @property
    def effect(self) -> str:
        """What Placement does wrong."""
        return _EFFECTS[self]


_EFFECTS = {
    Mistake.LOST_ANCHORS: (
        'where nothing but providers that share serves the request group '
        'without a suffix, it keeps one of the hosts that they share with'
    ),
    Mistake.ADDED_AMOUNTS: (
        'where several request groups ask for the same resource class, it '
        'adds up amounts of different candidates'
    ),
    Mistake.SHARING_CHILD: (
        'it fails over a provider that shares and is not the root of its tree'
    ),
}


@dataclasses.dataclass(frozen=True)
class Difference:
    """What a service answers, and by its documentation would not.

    :param documented: How many hosts may be used by the documentation.
    :param left_out: The hosts among them that the service leaves out.
    :param roots: The uuids of the root providers of these.
    :param added: The hosts that it offers beside them.
    :param other_amounts: The hosts of which it offers amounts that were not
        asked for.
    :param mistakes: The known mistakes that do so; perhaps none.
    :param suspects: Those that may show, where the service was not asked.
    :param failure: Why there is no answer; None if there is one.
    :param instead: Extra specs that say the same and are answered as
        documented; none if that was not found.
    :param of: The extra specs that they replace.
    :param sharing: Names and uuids of the providers that share and are not
        roots.
    """

    documented: int
    left_out: tuple[str, ...] = ()
    roots: frozenset[str] = frozenset()
    added: tuple[str, ...] = ()
    other_amounts: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    suspects: tuple[Mistake, ...] = ()
    failure: str | None = None
    instead: tuple[tuple[str, str], ...] = ()
    of: tuple[tuple[str, str], ...] = ()
    sharing: tuple[tuple[str, str], ...] = ()

    @property
    def sentences(self) -> Iterator[str]:
        """Sentences that say what is different and what to do."""
        for mistake in self.suspects:
            yield (
                'Placement may answer otherwise, by its known mistake '
                f'"{mistake.value}": {mistake.effect}.'
            )
        if self.suspects:
            yield (
                'It was not asked, as it takes long to put so many resource '
                'providers into it; candidates does so.'
            )
            return
        if self.failure:
            yield f'Placement itself gives no answer: {self.failure}'
        if self.left_out:
            yield (
                f'Placement leaves out {len(self.left_out)} of '
                f'{text.counted(self.documented, "host")} that it should '
                f'offer by its documentation: {ranges.folded(self.left_out)}.'
            )
        if self.added:
            yield (
                'Placement offers, against its documentation, also '
                f'{ranges.folded(self.added)}.'
            )
        if self.other_amounts:
            yield (
                'Placement offers other amounts than were asked for on '
                f'{ranges.folded(self.other_amounts)}.'
            )
        for mistake in self.mistakes:
            yield (
                'That is a known mistake of Placement, '
                f'"{mistake.value}": {mistake.effect}.'
            )
        if not self.mistakes and not self.failure:
            yield (
                'No known mistake of Placement does that; if the cloud has '
                'changed meanwhile, ask again.'
            )
        yield from self._advice()

    def _advice(self) -> Iterator[str]:
        if self.instead:
            less = f' in place of {_written(self.of)}' if self.of else ''
            yield (
                f'With {_written(self.instead)}{less} in the flavor, '
                'Placement answers as it should.'
            )
        elif Mistake.SHARING_CHILD in self.mistakes:
            for name, uuid in self.sharing:
                yield (
                    f'Make {name} a root provider: PUT '
                    f'/resource_providers/{uuid} with its name and '
                    '"parent_provider_uuid": null (microversion 1.37).'
                )
        elif self.mistakes:
            yield (
                'No other way to write the flavor was found to which '
                'Placement gives the documented answer.'
            )


def _written(specs: Iterable[tuple[str, str]]) -> str:
    return ' and '.join(f'{key}={value}' for key, value in specs)


def difference(
    cloud: Cloud, request: Request, decision: Decision
) -> Difference | None:
    """Return how the service answers otherwise than it should.

    :returns: None if it answers as documented, or no known mistake may show.
    :raises RequestRefused: if the request was refused.
    """
    query = decision.query(request)
    return _Comparison(cloud, request, decision, query).difference()


def difference_behind(
    cloud: Cloud, request: Request, decision: Decision
) -> Difference | None:
    """Return the same after the service has answered.

    The resource providers are only read where a known mistake may show.

    :raises RequestRefused: if the request was refused.
    :raises IsolateAggregatesError: if they cannot be read.
    """
    query = decision.query(request)
    found = _Comparison(cloud, request, decision, query)
    shares = os_traits.MISC_SHARES_VIA_AGGREGATE
    if not _is_added(query) and (
        len(query.groups) < 2
        or not cloud.placement.resource_providers(required=[shares])
    ):
        return None
    return found.difference()


def explained(
    cloud: Cloud,
    request: Request,
    decision: Decision,
    error: exception.ServiceFailed,
) -> exception.ServiceError:
    """Return the failure of a service with the known mistake behind it.

    :returns: The failure itself if there is none, or none to be found.
    """
    try:
        found = difference(cloud, request, decision)
    except exception.IsolateAggregatesError:
        return error
    if found is None or Mistake.SHARING_CHILD not in found.mistakes:
        return error
    _, *more = found.sentences
    problem = ' '.join([error.problem, *more])
    return exception.ServiceFailed(error.service, error.url, problem)


def suspects(
    query: ResourceRequest, providers: Iterable[Provider]
) -> tuple[Mistake, ...]:
    """Return the known mistakes that may show in the answer to a query."""
    sharing = [provider for provider in providers if provider.is_sharing]
    suspected = {
        Mistake.LOST_ANCHORS: _is_lent(query, sharing),
        Mistake.ADDED_AMOUNTS: _is_added(query),
        Mistake.SHARING_CHILD: any(provider.parent for provider in sharing),
    }
    return tuple(mistake for mistake, is_so in suspected.items() if is_so)


def _is_lent(query: ResourceRequest, sharing: Iterable[Provider]) -> bool:
    """Tell whether all of the group without a suffix may be borrowed."""
    group = query.groups.get('')
    if group is None or not group.resources or len(query.groups) < 2:
        return False
    lent = {rc for provider in sharing for rc in provider.inventories}
    return group.resources.keys() <= lent


def _is_added(query: ResourceRequest) -> bool:
    """Tell whether several groups ask for one resource class."""
    asked = Counter(
        resource_class
        for group in query.groups.values()
        for resource_class in group.resources
    )
    return query.group_policy != 'none' and any(
        count > 1 for count in asked.values()
    )


# A candidate, and how often each host has it.
_Candidate = frozenset[tuple[str, frozenset[tuple[str, int]]]]
_Ways = Mapping[str, Counter[_Candidate]]


@dataclasses.dataclass(frozen=True)
class _Comparison:
    cloud: Cloud
    request: Request
    decision: Decision
    query: ResourceRequest

    @functools.cached_property
    def _providers(self) -> tuple[Provider, ...]:
        return self.cloud.snapshot.providers

    @functools.cached_property
    def _hosts(self) -> Mapping[str, str]:
        """The names of the hosts, by uuid of their root providers."""
        return {
            # A service for bare metal has many nodes.
            node.uuid: host if len(nodes) == 1 else f'{host} ({node.name})'
            for host, nodes in nodes_by_host(self._providers).items()
            for node in nodes
        }

    @functools.cached_property
    def _suspects(self) -> tuple[Mistake, ...]:
        return suspects(self.query, self._providers)

    def difference(self) -> Difference | None:
        """Return what differs; None if nothing does."""
        if not self._suspects:
            return None
        documented = self._documented(self.query)
        if not self.cloud.placement_at_hand:
            return Difference(len(documented), suspects=self._suspects)
        try:
            answered = self._answered(self.query)
        except exception.IsolateAggregatesError as exc:
            return self._failed(documented, exc)
        left_out = documented.keys() - answered.keys()
        added = answered.keys() - documented.keys()
        other = _others(answered, documented)
        if not left_out and not added and not other:
            return None
        mistakes = tuple(
            mistake
            for mistake in self._suspects
            if mistake is not Mistake.SHARING_CHILD
            # It makes fewer of them, and no others.
            and not (mistake is Mistake.LOST_ANCHORS and not left_out)
        )
        if other and Mistake.ADDED_AMOUNTS not in mistakes:
            mistakes = ()
        found = Difference(
            len(documented),
            self._named(left_out),
            frozenset(left_out),
            self._named(added),
            self._named(other),
            mistakes,
        )
        return self._advised(found, documented) if mistakes else found

    def _failed(
        self, documented: _Ways, exc: exception.IsolateAggregatesError
    ) -> Difference:
        found = Difference(len(documented), failure=str(exc))
        if (
            not isinstance(exc, exception.ServiceFailed)
            or Mistake.SHARING_CHILD not in self._suspects
        ):
            return found
        return dataclasses.replace(
            found,
            left_out=self._named(documented),
            roots=frozenset(documented),
            mistakes=(Mistake.SHARING_CHILD,),
            sharing=tuple(
                (p.name, p.uuid)
                for p in self._providers
                if p.is_sharing and p.parent
            ),
        )

    def _advised(self, found: Difference, documented: _Ways) -> Difference:
        """Add a flavor that gets the documented answer, if there is one."""
        specs = self.request.flavor.extra_specs
        for written in _variants(specs, found.mistakes):
            flavor = dataclasses.replace(
                self.request.flavor, extra_specs=written
            )
            request = dataclasses.replace(self.request, flavor=flavor)
            try:
                query = self.decision.query(request)
                wanted = self._documented(query)
                answered = self._answered(query)
            except exception.IsolateAggregatesError:
                continue
            if (
                documented.keys() == wanted.keys() == answered.keys()
                and not _others(answered, wanted)
            ):
                return dataclasses.replace(
                    found,
                    instead=tuple(sorted(written.items() - specs.items())),
                    of=tuple(
                        (key, specs[key])
                        for key in sorted(specs.keys() - written.keys())
                    ),
                )
        return found

    def _documented(self, query: ResourceRequest) -> _Ways:
        documented = simulator(self._providers, query)
        return self._ways(query, documented.allocation_candidates(query))

    def _answered(self, query: ResourceRequest) -> _Ways:
        answer = self.cloud.placement.allocation_candidates(query)
        return self._ways(query, answer)

    def _ways(
        self, query: ResourceRequest, answer: AllocationCandidates
    ) -> _Ways:
        return {
            root: Counter(map(_frozen, candidates))
            for root, candidates in answer.by_root(query).items()
            if root in self._hosts
        }

    def _named(self, roots: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(map(self._hosts.__getitem__, roots)))


def _frozen(candidate: Mapping[str, Mapping[str, int]]) -> _Candidate:
    return frozenset(
        (provider, frozenset(amounts.items()))
        for provider, amounts in candidate.items()
    )


def _others(answered: _Ways, documented: _Ways) -> set[str]:
    """Return the hosts with candidates that they should not have."""
    return {
        root
        for root, ways in answered.items()
        if root in documented and not ways <= documented[root]
    }


def _variants(
    specs: Mapping[str, str], mistakes: Iterable[Mistake]
) -> Iterator[dict[str, str]]:
    """Yield extra specs that may say the same, least changed first."""
    if Mistake.ADDED_AMOUNTS in mistakes and xs.GROUP_POLICY not in specs:
        yield {**specs, xs.GROUP_POLICY: 'none'}
    suffixes = [spec.suffix for spec in xs.parse(specs) if spec.suffix]
    each = [[suffix] for suffix in dict.fromkeys(suffixes)]
    for some in (*each, suffixes) if len(each) > 1 else each:
        yield _without_suffixes(specs, some)


def _without_suffixes(
    specs: Mapping[str, str], suffixes: Iterable[str]
) -> dict[str, str]:
    """Write what some request groups ask for without their suffixes."""
    written = dict(specs)
    for spec in xs.parse(specs):
        if spec.suffix not in suffixes:
            continue
        del written[f'{spec.kind}{spec.suffix}:{spec.name}']
        key, value = f'{spec.kind}:{spec.name}', spec.value
        asked = written.get(key, '')
        if asked.isdecimal() and value.isdecimal():
            value = str(int(asked) + int(value))
        written[key] = value
    return written
