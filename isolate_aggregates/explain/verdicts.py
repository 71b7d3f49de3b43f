# SPDX-License-Identifier: Apache-2.0
"""A verdict with its reasons for every host, and what they come to.

A reason is a constraint that has to be dropped before the host would be
offered. Those that a host does not meet by themselves all are; where the rest
still leaves no way, as in trees where one provider has the room and another
the trait, further ones are added until there is a way.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import functools
import itertools

from isolate_aggregates import exception
from isolate_aggregates.cloud.snapshot import Snapshot
from isolate_aggregates.destination import Destination
from isolate_aggregates.explain.constraints import Cloud, Constraint
from isolate_aggregates.explain.question import Question
from isolate_aggregates.placement.group import ResourceRequest
from isolate_aggregates.simulator import Simulator
from isolate_aggregates.simulator.index import ProviderSet

# Constraints of a host, by their places in the question.
_Places = frozenset[int]


@dataclasses.dataclass(frozen=True)
class Reason:
    """Why a host is not offered.

    :param constraint: The constraint that has to be dropped.
    :param text: What to say of this host.
    """

    constraint: Constraint
    text: str


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What there is to say of one host.

    :param host: The name of its compute service.
    :param provider: The uuid of its root provider.
    :param reasons: All that keeps it from being offered; none if it is.
    """

    host: str
    provider: str
    reasons: tuple[Reason, ...]

    @property
    def is_candidate(self) -> bool:
        """Whether Placement offers the host."""
        return not self.reasons


@dataclasses.dataclass(frozen=True)
class Count:
    """How many hosts a constraint excludes.

    :param constraint: The constraint.
    :param alone: How many hosts do not meet it by itself.
    :param only: How many hosts only it excludes: without it they would be
        offered.
    """

    constraint: Constraint
    alone: int
    only: int


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What there is to say of a request.

    :param verdicts: A verdict for every compute host, by name.
    :param counts: How many hosts each constraint excludes.
    :param remedies: The smallest changes that would give a candidate, if
        there is none: the constraints to drop, for each way to do so.
    """

    verdicts: tuple[Verdict, ...]
    counts: tuple[Count, ...]
    remedies: tuple[tuple[Constraint, ...], ...]


def explain(
    snapshot: Snapshot, request: ResourceRequest, destination: Destination
) -> Explanation:
    """Explain every host of a snapshot.

    :param snapshot: The cloud.
    :param request: What is asked for, before any filter has spoken.
    :param destination: What the request filters concluded, even a refusal.
    :raises BadQuery: if Placement would call the query invalid.
    """
    question = Question(request, destination.conclusions)
    return _Explainer(snapshot, question).explain()


class _Explainer:
    def __init__(self, snapshot: Snapshot, question: Question) -> None:
        self._question = question
        self._constraints = question.constraints
        asked = _asked(question)
        # What is asked for exists, even if no provider has it.
        self._simulator = Simulator(snapshot, *asked)
        self._index = self._simulator.index
        self._cloud = Cloud(
            self._index,
            {
                **snapshot.placement_aggregates,
                **{a.uuid: a.name for a in snapshot.aggregates},
            },
        )
        self._hosts = {
            number: provider.host
            for number, provider in enumerate(snapshot.providers)
            if provider.host
        }
        self._host_set = self._index.set_of(self._hosts)

    def explain(self) -> Explanation:
        places = range(len(self._constraints))
        offered = self._offered(frozenset())
        bare = self._bare
        unmet = [
            self._host_set & ~constraint.met_by(self._cloud, bare)
            for constraint in self._constraints
        ]
        excluded = self._host_set & ~offered
        reasons = self._reasons(excluded, unmet)
        only = [
            self._offered(frozenset({place})) & excluded for place in places
        ]
        return Explanation(
            verdicts=self._verdicts(reasons),
            counts=tuple(
                Count(
                    self._constraints[place],
                    unmet[place].bit_count(),
                    only[place].bit_count(),
                )
                for place in places
            ),
            remedies=() if offered else self._remedies(only, reasons),
        )

    @functools.cached_property
    def _bare(self) -> ResourceRequest:
        """The request without what the filters concluded."""
        concluded = [c for c in self._constraints if hasattr(c, 'conclusion')]
        return self._question.without(concluded)

    def _reasons(
        self, excluded: ProviderSet, unmet: Sequence[ProviderSet]
    ) -> dict[int, _Places]:
        """Return for each excluded host what has to be dropped."""
        flags = [self._index.flags(hosts & excluded) for hosts in unmet]
        alike: dict[_Places, list[int]] = {}
        for number in self._index.members(excluded):
            alone = frozenset(
                place for place, flag in enumerate(flags) if flag[number]
            )
            alike.setdefault(alone, []).append(number)
        reasons: dict[int, _Places] = {}
        for alone, numbers in alike.items():
            self._complete(alone, self._index.set_of(numbers), reasons)
        return reasons

    def _complete(
        self,
        dropped: _Places,
        hosts: ProviderSet,
        reasons: dict[int, _Places],
    ) -> None:
        """Add what else has to be dropped until the hosts are offered.

        Fewest first, and an amount only when nothing else helps: each size of
        an addition is tried before the next, then everything goes.
        """
        rest = [p for p in range(len(self._constraints)) if p not in dropped]
        additions = itertools.chain(
            [()],
            itertools.combinations(rest, 1),
            itertools.combinations(rest, 2),
            (tuple(rest[:size]) for size in range(3, len(rest) + 1)),
        )
        for addition in additions:
            if not hosts:
                return
            together = dropped | set(addition)
            freed = self._offered(frozenset(together)) & hosts
            for number in self._index.members(freed):
                reasons[number] = frozenset(together)
            hosts &= ~freed

    @functools.cache  # noqa: B019 - lives as long as one explanation
    def _offered(self, dropped: _Places) -> ProviderSet:
        """Return the hosts that are offered without some constraints."""
        left_out = [self._constraints[place] for place in sorted(dropped)]
        try:
            request = self._question.without(left_out)
        except exception.RequestRefused:
            return 0
        if not any(group.resources for group in request.groups.values()):
            return self._host_set
        return self._simulator.hosts(request) & self._host_set

    def _verdicts(self, reasons: Mapping[int, _Places]) -> tuple[Verdict, ...]:
        verdicts = [
            Verdict(
                host,
                self._index.uuids[number],
                tuple(
                    Reason(
                        self._constraints[place],
                        self._constraints[place].reason(self._cloud, number),
                    )
                    for place in sorted(reasons.get(number, ()))
                ),
            )
            for number, host in self._hosts.items()
        ]
        return tuple(sorted(verdicts, key=lambda verdict: verdict.host))

    def _remedies(
        self, only: Sequence[ProviderSet], reasons: Mapping[int, _Places]
    ) -> tuple[tuple[Constraint, ...], ...]:
        """Return the smallest sets of constraints to drop."""
        single: Iterable[_Places] = [
            frozenset({place}) for place, hosts in enumerate(only) if hosts
        ]
        if not single and reasons:
            fewest = min(map(len, reasons.values()))
            single = dict.fromkeys(
                places for places in reasons.values() if len(places) == fewest
            )
        return tuple(
            tuple(self._constraints[place] for place in sorted(places))
            for places in sorted(single, key=sorted)
        )


def _asked(question: Question) -> tuple[set[str], set[str]]:
    """Return the traits and resource classes that a question names."""
    concluded = [c for c in question.constraints if hasattr(c, 'conclusion')]
    request = question.without(concluded)
    traits = request.root_required | request.root_forbidden
    classes: set[str] = set()
    for group in request.groups.values():
        traits |= group.required_traits | group.forbidden_traits
        traits |= frozenset().union(*group.any_traits)
        classes |= group.resources.keys()
    return traits, classes
