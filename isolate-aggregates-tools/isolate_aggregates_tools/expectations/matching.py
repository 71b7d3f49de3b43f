# SPDX-License-Identifier: Apache-2.0
"""Finds what an expectation names in a cloud.

A name is the id or the name of an object, or a pattern with ``*`` and ``?``.
A name without a match is an error: an expectation about nothing would be met
by any cloud.
"""

from collections.abc import Callable, Iterable, Sequence
import dataclasses
import re
from typing import TypeVar

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request.extra_specs import RESERVATION_CLASS
from isolate_aggregates.suggestions import meant
from isolate_aggregates.text import listed, quoted
from isolate_aggregates_tools import filter_keys
from isolate_aggregates_tools.expectations.answers import Answers
from isolate_aggregates_tools.expectations.expectation import NothingMatches

_T = TypeVar('_T')
_WILDCARDS = re.compile(r'[*?]')


@dataclasses.dataclass(frozen=True)
class Place:
    """Hosts, as an expectation names them.

    :param aggregates: The names or ids of aggregates.
    :param hosts: The names of compute services.
    :param locks: The names of locks, such as ``trait:CUSTOM_LICENSED``.
    :param reservations: The ids of reservations.
    """

    aggregates: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()
    reservations: tuple[str, ...] = ()

    def __str__(self) -> str:
        return listed(
            (
                f'{kind} {quoted(name)}'
                for kind, names in (
                    ('aggregate', self.aggregates),
                    ('host', self.hosts),
                    ('lock', self.locks),
                    ('reservation', self.reservations),
                )
                for name in names
            ),
            3,
        )

    def members(self, answers: Answers) -> frozenset[str]:
        """Return the names of its compute services.

        They are remembered.

        :raises NothingMatches: if a name has no match, or a match no hosts.
        """
        if self not in answers.places:
            answers.places[self] = self._members(answers)
        return answers.places[self]

    def _members(self, answers: Answers) -> frozenset[str]:
        hosts: set[str] = set()
        for name in self.aggregates:
            hosts |= _hosts(answers, 'aggregate', name, _aggregates)
        for name in self.locks:
            hosts |= _hosts(answers, 'lock', name, _locked)
        for name in self.reservations:
            hosts |= _hosts(answers, 'reservation', name, _reserved)
        for name in self.hosts:
            if name in answers.compute_hosts:
                hosts.add(name)
            else:
                services = sorted(answers.compute_hosts)
                hosts |= set(matches('host', name, services, _one_name))
        return frozenset(hosts)


def matches(
    kind: str,
    name: str,
    things: Sequence[_T],
    names_of: Callable[[_T], Sequence[str]],
) -> list[_T]:
    """Return the things with an id, a name, or names like a pattern.

    :param names_of: Returns the id and the name of a thing, the id first.
    :raises NothingMatches: if there are none.
    """
    exact = _exact(name, things, names_of)
    if exact:
        return exact
    if _WILDCARDS.search(name):
        pattern = _pattern(name)
        like = [
            thing for thing in things if pattern.fullmatch(names_of(thing)[-1])
        ]
        if like:
            return like
        raise NothingMatches(f'no {kind} has a name like {quoted(name)}')
    names = [names_of(thing)[-1] for thing in things]
    raise NothingMatches(
        f'there is no {kind} {quoted(name)}{meant(name, names)}'
    )


def _exact(
    name: str,
    things: Sequence[_T],
    names_of: Callable[[_T], Sequence[str]],
) -> list[_T]:
    return [thing for thing in things if name in names_of(thing)[:-1]] or [
        thing for thing in things if name == names_of(thing)[-1]
    ]


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(
        re.escape(name).replace(r'\*', '.*').replace(r'\?', '.'), re.DOTALL
    )


def flavors(answers: Answers, names: Iterable[str]) -> list[Flavor]:
    """Return flavors, each once."""
    things = answers.snapshot.flavors
    return _each_once(
        flavor
        for name in names
        for flavor in matches('flavor', name, things, lambda f: (f.id, f.name))
    )


def images(answers: Answers, names: Iterable[str]) -> list[Image]:
    """Return images, each once."""
    things = answers.snapshot.images
    return _each_once(
        image
        for name in names
        for image in matches('image', name, things, lambda i: (i.id, i.name))
    )


def projects(answers: Answers, names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the ids of projects, each with the name to show."""
    ids: dict[str, str] = {}
    for name in names:
        if name in answers.context.project_ids:
            project = answers.context.project_ids[name]
            if project is None:
                raise NothingMatches(f'there is no project {quoted(name)}')
            ids.setdefault(project, name)
        else:
            known = sorted(answers.named_projects)
            for one in matches('project', name, known, _one_name):
                ids.setdefault(one, one)
    return list(ids.items())


def _one_name(name: str) -> tuple[str]:
    return (name,)


def is_pattern(name: str) -> bool:
    """Return whether a name can match several things."""
    return bool(_WILDCARDS.search(name))


def _each_once(things: Iterable[_T]) -> list[_T]:
    return list({id(thing): thing for thing in things}.values())


def _hosts(
    answers: Answers,
    kind: str,
    name: str,
    find: Callable[[Answers, str], list[frozenset[str]]],
) -> frozenset[str]:
    """Return the compute hosts of what a name of a place matches."""
    hosts: set[str] = set()
    for services in find(answers, name):
        members = services & answers.compute_hosts
        if not members:
            raise NothingMatches(f'{kind} {quoted(name)} has no compute host')
        hosts |= members
    return frozenset(hosts)


def _aggregates(answers: Answers, name: str) -> list[frozenset[str]]:
    def names_of(aggregate: Aggregate) -> tuple[str, ...]:
        number = '' if aggregate.id is None else str(aggregate.id)
        return aggregate.uuid, number, aggregate.name

    things = answers.snapshot.aggregates
    return [a.hosts for a in matches('aggregate', name, things, names_of)]


def _locked(answers: Answers, name: str) -> list[frozenset[str]]:
    return [
        frozenset().union(*(aggregate.hosts for aggregate in lock.aggregates))
        for lock in matches('lock', name, answers.locks, lambda k: (k.name,))
    ]


def _reserved(answers: Answers, name: str) -> list[frozenset[str]]:
    """Return the hosts of a reservation.

    They are in an aggregate that has its key, or have its slots.
    """
    prefixes = {
        prefix
        for entry in answers.context.filters.filters
        for keys in [filter_keys.of_reservations(entry.request_filter)]
        for prefix in (*keys.required, *keys.forbidden)
    }
    hosts: dict[str, frozenset[str]] = {}
    for aggregate in answers.snapshot.aggregates:
        for key in aggregate.metadata:
            for prefix in prefixes:
                if key.startswith(prefix):
                    reservation = key.removeprefix(prefix)
                    hosts[reservation] = (
                        hosts.get(reservation, frozenset()) | aggregate.hosts
                    )
    slots = RESERVATION_CLASS + name.upper().replace('-', '_')
    if slots in answers.slot_hosts:
        hosts[name] = hosts.get(name, frozenset()) | answers.slot_hosts[slots]
    things = sorted(hosts.items())
    return [
        services
        for _, services in matches(
            'reservation', name, things, lambda item: (item[0],)
        )
    ]
