# SPDX-License-Identifier: Apache-2.0
"""Describes a cloud as it is by expectations, for a first file.

The cloud meets all of them. They name the hosts of each flavor, alone, with
each operators' image that matters, and in each project that aggregates name,
so that they notice every mutation.
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
from typing import Any

from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.text import named, quoted
from isolate_aggregates_tools import ranges
from isolate_aggregates_tools.expectations import checks
from isolate_aggregates_tools.expectations.answers import Answers
from isolate_aggregates_tools.expectations.expectation import NothingMatches
from isolate_aggregates_tools.expectations.matching import is_pattern

_Hosts = frozenset[str]
_Entry = Mapping[str, Any]
# The names of flavors, by the hosts that they may use.
_Partition = tuple[tuple[_Hosts, tuple[str, ...]], ...]


def entries(answers: Answers) -> Iterator[_Entry]:
    """Yield expectations that describe a cloud."""
    if not answers.snapshot.flavors:
        return
    all_images = answers.snapshot.images
    yield from _described(answers, [_Who()])
    yield from _described(
        answers,
        [
            _Who('image', _name(image, all_images), image=image)
            for image in answers.operator_images
            if image is not None
        ],
    )
    yield from _described(
        answers,
        [
            _Who('project', project, project=project)
            for project in sorted(answers.named_projects)
        ],
    )
    for check, word in (
        (checks.ImagesOfTenants(), 'open_no_lock'),
        (checks.AnyImage(), 'can_open_no_lock'),
    ):
        if _is_met(check, answers):
            yield {'name': str(check), 'tenant_images': word}


@dataclasses.dataclass(frozen=True)
class _Who:
    """An image or a project of servers, or neither.

    :param key: Its key in an expectation; empty for neither.
    :param name: Its value there.
    """

    key: str = ''
    name: str = ''
    image: Image | None = None
    project: str | None = None


def _described(answers: Answers, everyone: Sequence[_Who]) -> Iterator[_Entry]:
    """Yield the hosts of all flavors, of those who have the same together."""
    places = _places(answers)
    alike: dict[_Partition, list[_Who]] = {}
    for who in everyone:
        alike.setdefault(_partition(answers, who), []).append(who)
    for partition, some in alike.items():
        for hosts, flavors in partition:
            yield _entry(flavors, some, hosts, places)


def _partition(answers: Answers, who: _Who) -> _Partition:
    """Return the names of the flavors by the hosts that they may use."""
    flavors: dict[_Hosts, list[str]] = {}
    for flavor in answers.snapshot.flavors:
        request = answers.request(flavor, who.image, who.project)
        name = _name(flavor, answers.snapshot.flavors)
        flavors.setdefault(answers.hosts(request), []).append(name)
    return tuple((hosts, tuple(names)) for hosts, names in flavors.items())


def _entry(
    flavors: Sequence[str],
    everyone: Sequence[_Who],
    hosts: _Hosts,
    places: Mapping[_Hosts, str],
) -> _Entry:
    """Return the expectation that some servers may use exactly some hosts."""
    subject = named('flavor', flavors, 3)
    servers: dict[str, Any] = {'flavor': _one_or_all(flavors)}
    key = everyone[0].key
    if key:
        shown = [quoted(w.image.name if w.image else w.name) for w in everyone]
        subject += {'image': ' with ', 'project': ' in '}[key]
        subject += named(key, shown, 3)
        servers[key] = _one_or_all([who.name for who in everyone])
    text, rule = _rule(hosts, places)
    return {'name': f'{subject} {text}', **servers, **rule}


def _rule(hosts: _Hosts, places: Mapping[_Hosts, str]) -> tuple[str, _Entry]:
    """Return the rule for exactly some hosts, as text and as a document."""
    if not hosts:
        return 'may use no host', {'never': {'host': '*'}}
    if hosts in places:
        name = places[hosts]
        return (
            f'may use the hosts of aggregate {name}',
            {'exactly': {'aggregate': name}},
        )
    return (
        f'may use {ranges.folded(hosts)}',
        {'exactly': {'host': _one_or_all(sorted(hosts))}},
    )


def _one_or_all(names: Sequence[str]) -> str | list[str]:
    return names[0] if len(names) == 1 else list(names)


def _places(answers: Answers) -> dict[_Hosts, str]:
    """Return the aggregates by their compute hosts."""
    aggregates = answers.snapshot.aggregates
    places: dict[_Hosts, str] = {}
    for aggregate in aggregates:
        hosts = aggregate.hosts & answers.compute_hosts
        names = [a.name for a in aggregates if a.name == aggregate.name]
        if len(names) == 1 and not is_pattern(aggregate.name):
            places.setdefault(hosts, aggregate.name)
    return places


def _name(thing: Flavor | Image, things: Sequence[Flavor | Image]) -> str:
    """Return the name of a thing, or its id if others have the name."""
    others = [t for t in things if thing.name in (t.name, t.id)]
    return thing.name if others == [thing] else thing.id


def _is_met(
    check: checks.ImagesOfTenants | checks.AnyImage, answers: Answers
) -> bool:
    try:
        return not any(check.violations(answers))
    except NothingMatches:
        return False
