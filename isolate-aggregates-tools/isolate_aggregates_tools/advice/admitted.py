# SPDX-License-Identifier: Apache-2.0
"""Whom something lets in: first as data, then in words.

A flavor may need an image or a project for one host and none for another. So
servers are together only if each combination of them gains all the hosts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
import dataclasses
import functools
from typing import Annotated

from isolate_aggregates import text
from isolate_aggregates_tools import ranges, wording
from isolate_aggregates_tools.answers.scope import Asker
from isolate_aggregates_tools.documents import Names

_Hosts = frozenset[str]
_NONE: _Hosts = frozenset()
# What servers of a flavor gain: image, project and hosts.
_Gains = frozenset[tuple[str | None, str | None, _Hosts]]

# The most groups of flavors in a sentence.
_MOST = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Opening:
    """Hosts that all servers of some flavors gain."""

    flavors: Annotated[Names, 'Empty for any flavor without extra specs.']
    images: Annotated[
        Names, 'The servers need one of these images; empty if any will do.'
    ]
    projects: Annotated[
        Names, 'The servers need one of these projects; empty if any will do.'
    ]
    hosts: Names


# Who gains the same hosts, whichever they are: many repairs let in the same
# servers.
KnownOpenings = dict[frozenset[Asker], tuple[Opening, ...]]


def openings(
    gains: Mapping[Asker, _Hosts], known: KnownOpenings | None = None
) -> tuple[Opening, ...]:
    """Return who gains which hosts, without what follows from others.

    :param known: Those found before, to which this one is added.
    """
    if not any(gains.values()):
        return ()
    if known is None or len({*gains.values()}) > 1:
        return _openings(gains)
    askers = frozenset(gains)
    if askers not in known:
        known[askers] = _openings(gains)
    names = tuple(sorted(next(iter(gains.values()))))
    return tuple(
        dataclasses.replace(each, hosts=names) for each in known[askers]
    )


def _openings(gains: Mapping[Asker, _Hosts]) -> tuple[Opening, ...]:
    by_flavor: dict[str, set[tuple[str | None, str | None, _Hosts]]] = {}
    for asker, hosts in gains.items():
        for weaker in (
            Asker(asker.flavor, None, None),
            Asker(asker.flavor, asker.image, None),
            Asker(asker.flavor, None, asker.project),
        ):
            if weaker != asker:
                hosts -= gains.get(weaker, _NONE)
        if hosts:
            by_flavor.setdefault(asker.flavor, set()).add(
                (asker.image, asker.project, hosts)
            )
    flavors: dict[_Gains, list[str]] = {}
    for flavor, some in sorted(by_flavor.items()):
        flavors.setdefault(frozenset(some), []).append(flavor)
    return tuple(
        opening
        for some, names in sorted(flavors.items(), key=_needing)
        for opening in _of_flavors(tuple(filter(None, names)), some)
    )


def _needing(group: tuple[_Gains, list[str]]) -> tuple[bool, list[str]]:
    """Return the sort key of a group: who needs nothing comes first."""
    gains, names = group
    return all(image or project for image, project, _ in gains), names


def _of_flavors(flavors: Names, gains: _Gains) -> Iterator[Opening]:
    projects: dict[tuple[_Hosts, str | None], set[str | None]] = {}
    for image, project, hosts in gains:
        projects.setdefault((hosts, image), set()).add(project)
    images: dict[tuple[_Hosts, frozenset[str | None]], set[str | None]] = {}
    for (hosts, image), some in projects.items():
        images.setdefault((hosts, frozenset(some)), set()).add(image)
    # Something and nothing cannot be in one list.
    found = {
        Opening(
            flavors=flavors,
            images=tuple(sorted(filter(None, with_images))),
            projects=tuple(sorted(filter(None, in_projects))),
            hosts=tuple(sorted(hosts)),
        )
        for (hosts, every_project), every_image in images.items()
        for with_images in ({None} & every_image, every_image - {None})
        for in_projects in ({None} & every_project, every_project - {None})
        if with_images and in_projects
    }
    return iter(sorted(found, key=lambda o: (o.images, o.projects, o.hosts)))


def sentence(
    some: Iterable[Opening],
    flavors: int,
    former_hosts: _Hosts = _NONE,
    owned: _Hosts = _NONE,
) -> str:
    """Return whom something lets in; empty if it lets nobody in.

    :param flavors: The number of all flavors.
    :param former_hosts: The hosts that the flavor loses, if it is only one.
    :param owned: The hosts of some projects, of which it is said if every
        project gains them.
    """
    groups: dict[Names, list[Opening]] = {}
    for opening in some:
        groups.setdefault(opening.flavors, []).append(opening)
    if not groups:
        return ''
    # Most groups gain the same hosts.
    folded = functools.cache(ranges.folded)
    if len(groups) == 1:
        [(names, group)] = groups.items()
        if len(names) == 1:
            no_longer = (
                f', but no longer {ranges.folded(former_hosts)}'
                if former_hosts
                else ''
            )
            hosts = _hosts(group, folded, owned)
            return f'lets flavor {names[0]} use {hosts}{no_longer}'
    most = None if wording.is_unabridged() else _MOST
    parts = [
        f'{_hosts(group, folded, owned)} to {_flavors(names, flavors)}'
        for names, group in [*groups.items()][:most]
    ]
    rest = [*groups][len(parts) :]
    if rest:
        others = {name for names in rest for name in names}
        parts.append(f'hosts to {text.counted(len(others), "more flavor")}')
    return f'opens {"; ".join(parts)}'


def _flavors(names: Names, number: int) -> str:
    if not names:
        return 'any flavor without extra specs'
    if len(names) == 1:
        return f'flavor {names[0]}'
    return f'{len(names)} of {number} flavors: {text.listed(names)}'


def _hosts(
    group: Iterable[Opening], folded: Callable[[Names], str], owned: _Hosts
) -> str:
    """Return hosts, each with the images and projects that they need."""
    return ', and '.join(
        f'{folded(each.hosts)}{needed(each)}'
        + ' in every project'
        * (not each.projects and not owned.isdisjoint(each.hosts))
        for each in group
    )


def needed(opening: Opening) -> str:
    """Return the images and projects with which servers are let in."""
    condition = ''
    if opening.images:
        images = map(text.quoted, opening.images)
        condition = f' with {text.named("image", images)}'
    if opening.projects:
        condition += f' in {text.named("project", opening.projects)}'
    return condition
