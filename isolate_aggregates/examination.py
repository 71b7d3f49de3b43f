# SPDX-License-Identifier: Apache-2.0
"""Finds out why Placement had no candidate for a query.

Placement is asked again, with some of the constraints of the query left out.
The query is a text, so this needs no class of Nova. It is imported with the
first request that got no host.
"""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import time
from typing import Any
from urllib import parse

from isolate_aggregates import exception
from isolate_aggregates.placement import Feature, PlacementReader
from isolate_aggregates.text import short

_FEATURE = Feature(36, 'finding out why there was no candidate', 'Train')
# The most requests to Placement for one query, and the seconds for all.
_REQUESTS, _SECONDS = 40, 5.0
# The most hosts whose locks are named, and that are checked for being used up.
MOST_HOSTS, _TREES = 5, 10
# Hosts have some of these left, unless they are used up.
_COMMON = ('MEMORY_MB', 'DISK_GB', 'VCPU')
_ROOT_TRAITS = 'root_required'
_OF_TRAITS = ('required', _ROOT_TRAITS)
# The constraints of a query that are about whole hosts.
_OF_ROOT = ('member_of', 'in_tree', _ROOT_TRAITS)

Pairs = list[tuple[str, str]]

# What Placement answers to a query that it would not answer later, either.
_REJECTIONS = (
    exception.BadQuery,
    exception.QueryTooLong,
    exception.ServiceDenied,
    exception.ServiceNotFound,
)


@dataclasses.dataclass(frozen=True)
class Question:
    """A request without a host, and whose constraints it has.

    :param cause: Its cause as far as that is known: ``no_candidates``,
        ``placement_rejected`` or ``locked``.
    :param queries: The query strings that Nova has sent. The second one of a
        request for pinned CPUs differs in resource classes.
    :param forbidden: The aggregates that only our filters forbid.
    :param required: The choices of aggregates that only our filters require.
    :param ignored: The uuids of hosts that Nova ignores.
    :param hosts: The uuids of hosts that our host filter closed.
    """

    cause: str
    queries: tuple[str, ...]
    forbidden: frozenset[str] = frozenset()
    required: tuple[frozenset[str], ...] = ()
    ignored: frozenset[str] = frozenset()
    hosts: tuple[str, ...] = ()


def examine(
    placement: PlacementReader,
    question: Question,
    origin: Callable[[frozenset[str]], str],
    closing: Callable[[frozenset[str]], list[dict[str, Any]]],
) -> dict[str, Any]:
    """Find out why a request got no host.

    :param origin: Returns whose choice of aggregates one is that is not ours:
        ``zone``, ``project`` or ``aggregates``.
    :param closing: Returns what keeps the request from a host, from the uuids
        of its aggregates.
    :returns: Those of ``cause``, ``detail`` and ``examined`` that are to be in
        its record, and ``examination``. ``examined`` says what is not known.
    """
    examination = _Examination(placement, question, origin, closing)
    began_at = time.monotonic()
    try:
        found = examination.found()
    except (exception.IsolateAggregatesError, TimeoutError) as exc:
        found = {'examined': f'no: {short(exc)}'}
    took = 1000 * (time.monotonic() - began_at)
    return found | {
        'examination': {'queries': examination.number, 'ms': round(took)}
    }


class _Examination:
    """Asks Placement about one request, with a limit on number and time."""

    def __init__(
        self,
        placement: PlacementReader,
        question: Question,
        origin: Callable[[frozenset[str]], str],
        closing: Callable[[frozenset[str]], list[dict[str, Any]]],
    ) -> None:
        self._placement, self._question = placement, question
        self._origin, self._closing = origin, closing
        self._queries = [
            [pair for pair in parse.parse_qsl(query) if pair[0] != 'limit']
            for query in question.queries
        ]
        self._until = time.monotonic() + _SECONDS
        #: How often Placement was asked.
        self.number = 0

    def found(self) -> dict[str, Any]:
        """Return what is found out.

        :raises IsolateAggregatesError: if Placement does not say.
        :raises TimeoutError: if it would take too long.
        """
        if self._question.cause == 'locked':
            return {'detail': {'hosts': self._blamed(self._question.hosts)}}
        if self._question.cause == 'placement_rejected':
            return self._rejection()
        return self._cause()

    def _rejection(self) -> dict[str, Any]:
        try:
            self._hosts(self._queries[0])
        except (exception.ServiceUnreachable, exception.ServiceTooOld):
            raise
        except exception.ServiceError as exc:
            # What Placement says is shortened in it.
            found: dict[str, Any] = {'detail': {'reason': exc.problem}}
            if not isinstance(exc, _REJECTIONS):
                found['cause'] = 'placement_down'
            return found
        # It was valid, so Placement did not reject it, but failed.
        return {
            'cause': 'placement_down',
            'examined': 'yes: Placement accepts the query now',
        }

    def _cause(self) -> dict[str, Any]:
        for pairs in self._queries:
            if self._hosts(pairs):
                # Another server has gone meanwhile, or a host has come.
                return {'examined': 'yes: Placement has a candidate now'}
            tried: list[Pairs] = [pairs]
            for name in _COMMON:
                less = _small(pairs, name)
                if less not in tried and self._hosts(less):
                    return self._full(pairs)
                tried.append(less)
        not_read = ''
        for pairs in self._queries:
            try:
                if self._is_used_up(pairs):
                    return self._full(pairs)
            except OverflowError as exc:
                not_read = f'in part: {exc}'
        found: dict[str, Any] = {}
        for pairs in self._queries:
            found = self._relaxed(pairs)
            if 'everywhere' not in found['detail']:
                break
        return {**found, 'examined': not_read} if not_read else found

    def _relaxed(self, pairs: Pairs) -> dict[str, Any]:
        """Return which constraint has to go for a host to have a unit."""
        rungs = list(self._rungs(_small(pairs)))
        low, high = 0, len(rungs)
        hosts: list[str] = []
        # Each query has the candidates of those before, so bisect.
        while low < high:
            middle = (low + high) // 2
            if here := self._hosts(rungs[middle][1], MOST_HOSTS):
                high, hosts = middle, here
            else:
                low = middle + 1
        if low == len(rungs):
            return self._full(pairs, everywhere=True)
        cause = rungs[low][0]
        detail: dict[str, Any] = {}
        if cause == 'locked':
            detail['room'] = bool(self._hosts(self._without_ours(pairs)))
            detail['hosts'] = self._blamed(hosts)
        elif cause == 'traits':
            detail['required'] = _traits(pairs, _OF_TRAITS)
            # By flavor and image.
            if forbidden := _traits(pairs, 'required', True):
                detail['forbidden'] = forbidden
            detail['nowhere'] = [
                trait
                for trait in detail['required'][:MOST_HOSTS]
                if not self._providers([('required', trait)])
            ]
        elif cause == 'host':
            detail['in_tree'] = dict(pairs).get('in_tree', '')
        return {'cause': cause, 'detail': detail}

    def _full(self, pairs: Pairs, everywhere: bool = False) -> dict[str, Any]:
        """Return that hosts that the request may use have too little room."""
        short_of = [
            amount for query in self._queries for amount in self._short(query)
        ]
        detail: dict[str, Any] = {'short': list(dict.fromkeys(short_of))}
        without = self._without_ours(pairs)
        if everywhere:
            detail['everywhere'] = True
        elif without != pairs:
            detail['room_behind_locks'] = bool(self._hosts(without))
        return {'cause': 'full', 'detail': detail}

    def _short(self, pairs: Pairs) -> list[str]:
        """Return the amounts of which one alone is too much."""
        common = [pair for pair in pairs if pair[0] in (*_OF_ROOT, 'required')]
        unit = [pair for pair in _small(pairs) if pair[0] == 'resources']
        found = []
        for key, value in pairs:
            if not key.startswith('resources'):
                continue
            suffix = key.removeprefix('resources')
            alone = (
                common
                if not suffix
                else [
                    *common,
                    *unit,
                    *(
                        pair
                        for pair in pairs
                        if pair[0] in (f'required{suffix}', f'in_tree{suffix}')
                    ),
                ]
            )
            found += [
                amount
                for amount in value.split(',')
                if not self._hosts([*alone, (key, amount)])
            ]
        return found

    def _is_used_up(self, pairs: Pairs) -> bool:
        """Return whether a permitted host would serve it if it were empty.

        A host is no candidate at all if a class is used up entirely, as on a
        bare metal node. So the inventories of permitted hosts are read.

        :raises OverflowError: if there are too many to read.
        """
        traits = [value for key, value in pairs if key in _OF_TRAITS]
        permitted = [pair for pair in pairs if pair[0] in _OF_ROOT[:2]]
        if traits:
            # Placement would ignore all but the last.
            permitted.append(('required', ','.join(traits)))
        roots = [
            each['uuid']
            for each in self._providers(permitted)
            if each['uuid'] == each['root_provider_uuid']
            and each['uuid'] not in self._question.ignored
        ]
        if any(self._would_serve(root, pairs) for root in roots[:_TREES]):
            return True
        if len(roots) > _TREES:
            raise OverflowError(
                f'of {len(roots)} hosts that it may use, the inventories of '
                f'{_TREES} were read'
            )
        return False

    def _would_serve(self, root: str, pairs: Pairs) -> bool:
        """Return whether a tree has inventories for each group."""
        constraints = dict(pairs)
        for key, value in pairs:
            if not key.startswith('resources'):
                continue
            suffix = key.removeprefix('resources')
            wanted = [('in_tree', root)]
            if suffix and f'required{suffix}' in constraints:
                wanted.append(('required', constraints[f'required{suffix}']))
            totals: dict[str, float] = {}
            for each in self._providers(wanted):
                for name, most in self._totals(each['uuid']).items():
                    totals[name] = max(totals.get(name, 0), most)
            if any(
                totals.get(name, 0) < amount
                for name, amount in _amounts(value)
                # Another provider may share its disk.
                if name != 'DISK_GB' or name in totals
            ):
                return False
        return True

    def _blamed(self, hosts: Sequence[str]) -> dict[str, Any]:
        """Return what keeps the request from hosts, by their names."""
        blamed = {}
        for uuid in hosts:
            for host in self._providers([('uuid', uuid)]):
                own = self._asked().aggregates(uuid)
                blamed[host['name']] = self._closing(own)
        return blamed

    def _rungs(self, pairs: Pairs) -> Iterator[tuple[str, Pairs]]:
        """Yield queries, each with fewer constraints than the one before."""
        for cause, relaxed in (
            ('locked', self._without_ours),
            ('zone', lambda p: self._without(p, 'zone')),
            ('project', lambda p: self._without(p, 'project')),
            ('aggregates', lambda p: _less(p, 'member_of')),
            ('disabled', _enabled),
            ('traits', lambda p: _less(p, _OF_TRAITS)),
            # Until here it is found out why just that host cannot serve it.
            ('host', lambda p: _less(p, 'in_tree')),
        ):
            less = relaxed(pairs)
            if less != pairs:
                yield cause, less
            pairs = less

    def _without_ours(self, pairs: Pairs) -> Pairs:
        ours, kept = self._question, []
        for key, value in pairs:
            if key == 'member_of' and value.startswith('!in:'):
                rest = set(value[4:].split(',')) - ours.forbidden
                if not rest:
                    continue
                value = f'!in:{",".join(sorted(rest))}'
            elif key == 'member_of' and _choice(value) in ours.required:
                continue
            kept.append((key, value))
        return kept

    def _without(self, pairs: Pairs, origin: str) -> Pairs:
        return [
            (key, value)
            for key, value in pairs
            if key != 'member_of'
            or value.startswith('!')
            or self._origin(_choice(value)) != origin
        ]

    # Requests to Placement.

    def _hosts(self, pairs: Pairs, most: int = 1) -> list[str]:
        """Return the roots of the first candidates, but ignored hosts."""
        ignored = self._question.ignored
        limit = 'limit', str(most + len(ignored))
        query = parse.urlencode([limit, *pairs])
        roots = self._asked().read(
            f'/allocation_candidates?{query}', _roots, _FEATURE
        )
        return sorted(roots - ignored)[:most]

    def _providers(self, pairs: Pairs) -> list[dict[str, Any]]:
        return self._asked().providers(pairs, _FEATURE)

    def _totals(self, provider: str) -> dict[str, float]:
        return self._asked().read(
            f'/resource_providers/{provider}/inventories', _totals
        )

    def _asked(self) -> PlacementReader:
        """Return what asks Placement once more."""
        if time.monotonic() > self._until or self.number >= _REQUESTS:
            raise TimeoutError('it would take too long')
        self.number += 1
        return self._placement


def _roots(document: Any) -> set[str]:
    """Return the roots of allocation candidates, without what they share."""
    return {
        summary['root_provider_uuid']
        for request in document['allocation_requests']
        for uuid, summary in document['provider_summaries'].items()
        if uuid in request['allocations']
        and 'MISC_SHARES_VIA_AGGREGATE' not in summary['traits']
    }


def _totals(document: Any) -> dict[str, float]:
    """Return what an empty provider would have of each resource class."""
    return {
        # What Ironic reserves of a node is in use, too.
        name: inventory['total'] * inventory['allocation_ratio']
        for name, inventory in document['inventories'].items()
    }


def _choice(value: str) -> frozenset[str]:
    return frozenset(value.removeprefix('in:').split(','))


def _amounts(value: str) -> list[tuple[str, int]]:
    return [
        (name, int(amount))
        for name, _, amount in (
            each.partition(':') for each in value.split(',')
        )
    ]


def _less(pairs: Pairs, keys: str | tuple[str, ...]) -> Pairs:
    return [pair for pair in pairs if not pair[0].startswith(keys)]


def _enabled(pairs: Pairs) -> Pairs:
    """Return a query that takes disabled hosts, too."""
    kept = []
    for key, value in pairs:
        if key == _ROOT_TRAITS:
            value = ','.join(
                trait
                for trait in value.split(',')
                if not trait.startswith('!')
            )
        if value:
            kept.append((key, value))
    return kept


def _traits(
    pairs: Pairs, keys: str | tuple[str, ...], is_forbidden: bool = False
) -> list[str]:
    """Return the traits that some parameters require, or those they forbid."""
    return sorted(
        {
            trait.removeprefix('!')
            for key, value in pairs
            if key.startswith(keys)
            for trait in value.removeprefix('in:').split(',')
            if trait.startswith('!') == is_forbidden
        }
    )


def _small(pairs: Pairs, common: str = 'MEMORY_MB') -> Pairs:
    """Return the query for one unit of each resource class.

    :param common: The only one of the common classes that is asked for, if it
        is among them.
    """
    kept = []
    for key, value in pairs:
        if key.startswith('resources'):
            names = [name for name, _ in _amounts(value)]
            if common in names:
                names = [
                    name
                    for name in names
                    if name == common or name not in _COMMON
                ]
            value = ','.join(f'{name}:1' for name in names)
        kept.append((key, value))
    return kept
