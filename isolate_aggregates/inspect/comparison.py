# SPDX-License-Identifier: Apache-2.0
"""Compares Placement's response with its documentation.

The simulator computes the documented response. If the query may trigger a
known bug, the real Placement is queried as well. Nova always uses the response
of the real Placement.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
import dataclasses
import functools

import os_traits

from isolate_aggregates import exception
from isolate_aggregates.cloud.cloud import Cloud
from isolate_aggregates.decision import Decision
from isolate_aggregates.inspect.capacity import simulator
from isolate_aggregates.inspect.mistakes import (
    Difference,
    Mistake,
    is_added,
    suspects,
)
from isolate_aggregates.placement.client import AllocationCandidates
from isolate_aggregates.placement.group import ResourceRequest
from isolate_aggregates.placement.provider import Provider, nodes_by_host
from isolate_aggregates.request import Request
from isolate_aggregates.request import extra_specs as xs


def difference(
    cloud: Cloud, request: Request, decision: Decision
) -> Difference | None:
    """Return how Placement's response differs from its documentation.

    :returns: None if it does not differ, or the query triggers no known bug.
    :raises RequestRefused: if the request was refused.
    """
    query = decision.query(request)
    return _Comparison(cloud, request, decision, query).difference()


def difference_behind(
    cloud: Cloud, request: Request, decision: Decision
) -> Difference | None:
    """Return the same as :func:`difference`, after Placement has answered.

    The resource providers are read only if the query may trigger a known bug.

    :raises RequestRefused: if the request was refused.
    :raises IsolateAggregatesError: if they cannot be read.
    """
    query = decision.query(request)
    found = _Comparison(cloud, request, decision, query)
    shares = os_traits.MISC_SHARES_VIA_AGGREGATE
    if not is_added(query) and (
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
    """Add the known bug that may have caused a failure of Placement.

    :returns: The unchanged failure if no known bug is found.
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


# A candidate, independent of the order of providers and resource classes, and
# the number of times that each host has it.
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
            # A compute service for bare metal can have many nodes.
            node.uuid: host if len(nodes) == 1 else f'{host} ({node.name})'
            for host, nodes in nodes_by_host(self._providers).items()
            for node in nodes
        }

    @functools.cached_property
    def _suspects(self) -> tuple[Mistake, ...]:
        return suspects(self.query, self._providers)

    def difference(self) -> Difference | None:
        """Return the difference; None if there is none."""
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
            # This bug only removes candidates.
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
        """Add extra specs that get the documented response, if possible."""
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
    """Return the hosts with candidates that are not documented."""
    return {
        root
        for root, ways in answered.items()
        if root in documented and not ways <= documented[root]
    }


def _variants(
    specs: Mapping[str, str], mistakes: Iterable[Mistake]
) -> Iterator[dict[str, str]]:
    """Yield extra specs with the same meaning, the least changed first."""
    if Mistake.ADDED_AMOUNTS in mistakes and xs.GROUP_POLICY not in specs:
        yield {**specs, xs.GROUP_POLICY: 'none'}
    suffixes = [spec.suffix for spec in xs.parse(specs) if spec.suffix]
    each = [[suffix] for suffix in dict.fromkeys(suffixes)]
    for some in (*each, suffixes) if len(each) > 1 else each:
        yield _without_suffixes(specs, some)


def _without_suffixes(
    specs: Mapping[str, str], suffixes: Iterable[str]
) -> dict[str, str]:
    """Move the contents of suffixed request groups to the unsuffixed one."""
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
