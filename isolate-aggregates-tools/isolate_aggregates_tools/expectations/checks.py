# SPDX-License-Identifier: Apache-2.0
"""What expectations can expect."""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses
from typing import Protocol

from isolate_aggregates.aggregates import Aggregate, tags
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request.extra_specs import REQUIRED, TRAIT_PREFIX
from isolate_aggregates.text import counted, listed, named, quoted
from isolate_aggregates_tools import ranges
from isolate_aggregates_tools.answers import scope
from isolate_aggregates_tools.expectations import matching
from isolate_aggregates_tools.expectations.answers import Answers
from isolate_aggregates_tools.expectations.expectation import (
    NothingMatches,
    Violation,
    subject,
)
from isolate_aggregates_tools.expectations.matching import Place
from isolate_aggregates_tools.request import Request

_NONE: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Servers:
    """Servers, as an expectation names them.

    :param flavors: The names or ids of their flavors.
    :param images: Those of their images; empty for an image without
        properties.
    :param projects: Those of their projects; empty for a project that no
        aggregate is reserved for.
    :param zone: The availability zone that they request.
    """

    flavors: tuple[str, ...]
    images: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    zone: str | None = None

    def __str__(self) -> str:
        text = _named('flavor', self.flavors)
        if self.images:
            text += f' with {_named("image", self.images)}'
        if self.projects:
            text += f' in {_named("project", self.projects)}'
        return text + (f' in zone {self.zone}' if self.zone else '')

    def requests(self, answers: Answers) -> Iterator[tuple[Request, str]]:
        """Yield the request of each flavor, image and project, and its name.

        :raises NothingMatches: if a name has no match.
        """
        flavors = matching.flavors(answers, self.flavors)
        images: list[Image | None] = [None]
        if self.images:
            images = [*matching.images(answers, self.images)]
        projects: list[tuple[str | None, str | None]] = [(None, None)]
        if self.projects:
            projects = [*matching.projects(answers, self.projects)]
        for flavor in flavors:
            for image in images:
                for project, name in projects:
                    request = answers.request(
                        flavor, image, project, self.zone
                    )
                    yield request, subject(request, name)


class Rule(Protocol):
    """What is expected of the hosts of servers."""

    def __str__(self) -> str:
        """Return the end of a sentence that begins with the servers."""

    def prepare(self, answers: Answers) -> frozenset[str]:
        """Return the hosts that the rule names."""

    def violation(
        self, answers: Answers, request: Request, place: frozenset[str]
    ) -> Violation | None:
        """Return how a request violates the rule; the text is a predicate.

        :param place: The hosts that the rule names.
        """


@dataclasses.dataclass(frozen=True)
class ServersCheck:
    """Expects a rule of all servers of some kinds."""

    servers: Servers
    rule: Rule

    def __str__(self) -> str:
        return f'{self.servers} {self.rule}'

    def violations(self, answers: Answers) -> Iterator[Violation]:
        """Yield the servers that violate the rule."""
        place = self.rule.prepare(answers)
        for request, name in self.servers.requests(answers):
            violation = self.rule.violation(answers, request, place)
            if violation:
                yield dataclasses.replace(
                    violation, text=f'{name} {violation.text}', request=request
                )


@dataclasses.dataclass(frozen=True)
class Only:
    """Servers may use hosts of a place, and no others.

    :param is_exact: Whether they may use all hosts of the place.
    """

    place: Place
    is_exact: bool = False

    def __str__(self) -> str:
        extent = 'all hosts' if self.is_exact else 'hosts'
        return f'may use {extent} of {self.place} and no others'

    def prepare(self, answers: Answers) -> frozenset[str]:
        return self.place.members(answers)

    def violation(
        self, answers: Answers, request: Request, place: frozenset[str]
    ) -> Violation | None:
        hosts = answers.hosts(request)
        extra_hosts = hosts - place
        # If it may use none at all, nothing is kept to the place.
        missing_hosts = place - hosts if self.is_exact or not hosts else _NONE
        texts = []
        if extra_hosts:
            texts.append(f'may use {ranges.folded(extra_hosts)}')
        if not hosts:
            texts.append('may use no host')
        elif missing_hosts:
            texts.append(f'may not use {ranges.folded(missing_hosts)}')
        if not texts:
            return None
        return Violation(
            ' and '.join(texts),
            missing_hosts=missing_hosts,
            extra_hosts=extra_hosts,
        )


@dataclasses.dataclass(frozen=True)
class Never:
    """Servers may use no host of a place."""

    place: Place

    def __str__(self) -> str:
        return f'may use no host of {self.place}'

    def prepare(self, answers: Answers) -> frozenset[str]:
        return self.place.members(answers)

    def violation(
        self, answers: Answers, request: Request, place: frozenset[str]
    ) -> Violation | None:
        hosts = answers.hosts(request) & place
        if not hosts:
            return None
        return Violation(f'may use {ranges.folded(hosts)}', extra_hosts=hosts)


@dataclasses.dataclass(frozen=True)
class MinHosts:
    """Servers may use a number of hosts, full or not."""

    number: int

    def __str__(self) -> str:
        return f'may use at least {counted(self.number, "host")}'

    def prepare(self, answers: Answers) -> frozenset[str]:
        return _NONE

    def violation(
        self, answers: Answers, request: Request, place: frozenset[str]
    ) -> Violation | None:
        hosts = answers.hosts(request)
        if len(hosts) >= self.number:
            return None
        return Violation(
            f'may use {counted(len(hosts), "host")}',
            missing_hosts=answers.compute_hosts - hosts,
        )


@dataclasses.dataclass(frozen=True)
class MinRoom:
    """There is room for a number of further servers now."""

    number: int

    def __str__(self) -> str:
        return f'has room for at least {self.number} more'

    def prepare(self, answers: Answers) -> frozenset[str]:
        return _NONE

    def violation(
        self, answers: Answers, request: Request, place: frozenset[str]
    ) -> Violation | None:
        room = answers.room(request)
        if room >= self.number:
            return None
        return Violation(
            f'has room for {room} more',
            missing_hosts=answers.compute_hosts,
            is_room=True,
        )


@dataclasses.dataclass(frozen=True)
class ImagesOfTenants:
    """No image of a tenant that exists lets a server behind a lock."""

    def __str__(self) -> str:
        return "no tenant's image opens a lock"

    def violations(self, answers: Answers) -> Iterator[Violation]:
        """Yield the images that open a lock."""
        images = [i for i in answers.snapshot.images if i.is_tenants]
        if not images:
            raise NothingMatches('the cloud has no image of a tenant')
        for image in images:
            yield from _opened(answers, image, image.owner)


@dataclasses.dataclass(frozen=True)
class AnyImage:
    """No image that a tenant can upload lets a server behind a lock."""

    def __str__(self) -> str:
        return 'no image that a tenant can upload opens a lock'

    def violations(self, answers: Answers) -> Iterator[Violation]:
        """Yield images with the keys to locked aggregates that open them."""
        kinds: dict[frozenset[str], Mapping[str, str]] = {}
        aggregates = {
            aggregate.uuid: aggregate
            for lock in answers.locks
            for aggregate in lock.aggregates
        }
        if not aggregates:
            raise NothingMatches('the cloud has no lock')
        for uuids in answers.aggregates.aggregates_of.values():
            locked = frozenset(uuids & aggregates.keys())
            if locked and locked not in kinds:
                kinds[locked] = {
                    key: value
                    for uuid in sorted(locked)
                    for key, value in _keys(answers, aggregates[uuid])
                }
        for properties in kinds.values():
            yield from _opened(answers, answers.image(properties), None)


def _keys(answers: Answers, aggregate: Aggregate) -> Iterator[tuple[str, str]]:
    """Yield the image properties that could open an aggregate.

    Other metadata could make Nova refuse the image, and hide that it does.
    """
    for trait in sorted(tags.required_traits(aggregate)):
        yield f'{TRAIT_PREFIX}{trait}', REQUIRED
    declaration = answers.context.pipeline.image_properties
    for key, value in aggregate.metadata.items():
        if not key.startswith(TRAIT_PREFIX) and declaration.has(key):
            yield key, value


def _opened(
    answers: Answers, image: Image, project: str | None
) -> Iterator[Violation]:
    """Yield the flavors whose servers use more locked hosts with an image."""
    for flavor in _sufficient(answers, image):
        plain = answers.request(flavor, None, project)
        request = answers.request(flavor, image, project)
        hosts = answers.hosts(request) - answers.hosts(plain)
        hosts &= answers.locks_by_host.keys()
        if hosts:
            keys = (
                f'an image with {_properties(image)}'
                if not image.id
                else f'image {quoted(image.name)} ({image.id}) of project '
                f'{quoted(image.owner or "unknown")}'
            )
            name = f'flavor {flavor.name}' if flavor.name else 'any flavor'
            yield Violation(
                f'{keys} lets {name} use {ranges.folded(hosts)}',
                request,
                extra_hosts=hosts,
            )


def _sufficient(answers: Answers, image: Image) -> Iterable[Flavor]:
    """Return a flavor with each kind of extra specs for an image.

    Each is large enough for the image, and else the smallest of its kind,
    which fits on most hosts.
    """
    flavors: dict[frozenset[tuple[str, str]], Flavor] = {}
    for flavor in sorted(scope.flavors(answers.snapshot), key=_size):
        flavors.setdefault(frozenset(flavor.extra_specs.items()), flavor)
    return [answers.enlarged(flavor, image) for flavor in flavors.values()]


def _size(flavor: Flavor) -> tuple[int, int, int]:
    return flavor.vcpus, flavor.ram, flavor.disk


def _properties(image: Image) -> str:
    return listed(f'{k}={quoted(v)}' for k, v in image.properties.items())


def _named(kind: str, names: tuple[str, ...]) -> str:
    if names == ('*',):
        return f'every {kind}'
    return named(kind, map(quoted, names), 3)
