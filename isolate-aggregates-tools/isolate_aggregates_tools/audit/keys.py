# SPDX-License-Identifier: Apache-2.0
"""Finds locks without keys, and keys that tenants control."""

from collections.abc import Collection, Hashable, Iterator, Sequence
import functools
import re
from typing import NamedTuple

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.aggregates import Aggregate, AggregateIndex, tags
from isolate_aggregates.aggregates.aggregate import grants
from isolate_aggregates.filters.aggregate_instance_extra_specs import find
from isolate_aggregates.filters.required_metadata import (
    RequiredMetadata,
    metadata_of,
    required_metadata,
)
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request.extra_specs import TRAIT_PREFIX
from isolate_aggregates.text import listed, named, plural, quoted
from isolate_aggregates_tools import filter_keys
from isolate_aggregates_tools.audit.cloud import AuditedCloud
from isolate_aggregates_tools.audit.demands import traits_if_valid
from isolate_aggregates_tools.audit.finding import About, Finding, Severity
from isolate_aggregates_tools.diagnosis.spelling import missing
from isolate_aggregates_tools.filter_keys import ReservationKeys
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.repair import Repair

# The most flavors to which a key is suggested to be given.
_MOST = 3
_WORD = re.compile('[a-z]{2,}')
# Words that many names have.
_COMMON = frozenset(
    {'aggregate', 'custom', 'group', 'host', 'hosts', 'node', 'nodes', 'pool'}
    | {'tiny', 'small', 'medium', 'large', 'xlarge'}
)


def hosts_that_nothing_opens(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find hosts whose locks no flavor or image opens."""
    if not cloud.snapshot.flavors:
        return
    keys = _Keys(cloud)
    beneficiaries = _Beneficiaries(cloud)
    by_host: dict[str, list[Aggregate]] = {}
    for aggregate in cloud.index:
        if aggregate.uuid in cloud.requiring:
            for host in aggregate.hosts:
                by_host.setdefault(host, []).append(aggregate)
    behind: dict[tuple[str, ...], tuple[tuple[Aggregate, ...], set[str]]] = {}
    for host, aggregates in by_host.items():
        # Without a compute node, another check finds it.
        if not cloud.nodes or host in cloud.nodes:
            uuids = tuple([aggregate.uuid for aggregate in aggregates])
            if uuids not in behind:
                behind[uuids] = tuple(aggregates), set()
            behind[uuids][1].add(host)
    for locking, hosts in behind.values():
        traits = frozenset().union(*map(tags.required_traits, locking))
        if keys.open(traits):
            continue
        problem = _unopened(locking, traits, cloud.images_open)
        yield Finding(
            'nothing-opens',
            Severity.WARNING,
            named('aggregate', (a.name for a in locking), 20),
            problem,
            f'no server can land on {listed(hosts)}',
            (
                *_giving_keys(cloud, beneficiaries, locking, hosts, traits),
                Repair(_opening(locking, hosts, keys)),
            ),
            about=About.of(hosts=hosts, aggregates=(a.name for a in locking)),
        )


def _unopened(
    locking: Collection[Aggregate], traits: Collection[str], images_open: bool
) -> str:
    """Return that nothing has the keys to hosts, as a predicate."""
    if len(traits) == 1:
        who = 'flavor or image' if images_open else 'flavor'
        return f'no {who} requires {listed(traits)}'
    verb = plural(len(locking), 'requires', 'together require')
    who = 'combination of flavor and image' if images_open else 'flavor'
    return f'{verb} {listed(traits, 20)}, and no {who} does'


def _giving_keys(
    cloud: AuditedCloud,
    beneficiaries: '_Beneficiaries',
    locking: Collection[Aggregate],
    hosts: Collection[str],
    traits: frozenset[str],
) -> Iterator[Repair]:
    """Yield how to give the keys to the flavors that should have them."""
    flavors = beneficiaries.of(locking, hosts, traits)
    for flavor in flavors[:_MOST]:
        fixes = list(missing.keys(cloud.names, flavor, traits))
        missing_traits = sorted(traits - traits_if_valid(cloud, flavor))
        yield from fixes or [Repair(commands.grant(flavor, missing_traits))]
    if not flavors:
        grant = commands.shown(commands.grant_to_any(sorted(traits)))
        yield Repair(
            text=f'{grant}, for the flavor whose servers belong there; this '
            f'lets them use {listed(hosts)}, and no other hosts'
        )


class _Beneficiaries:
    """Finds the flavors that should probably have the keys to hosts.

    These have some of the traits, or a misspelled one, require metadata of the
    aggregates, have servers there, or share a word with the names.
    """

    def __init__(self, cloud: AuditedCloud) -> None:
        self._cloud = cloud
        self._flavors = [
            _Candidate(
                flavor,
                traits_if_valid(cloud, flavor),
                any(missing.suspects(cloud.names, flavor)),
                [
                    requirement
                    for requirement in required_metadata(flavor.extra_specs)
                    if not requirement.problem
                ],
                _words(flavor.name),
            )
            for flavor in cloud.snapshot.flavors
        ]
        # Many aggregates have the same.
        self._known: dict[Hashable, list[Flavor]] = {}

    def of(
        self,
        locking: Collection[Aggregate],
        hosts: Collection[str],
        traits: frozenset[str],
    ) -> list[Flavor]:
        """Return the flavors for some hosts."""
        words = _words(*traits, *(aggregate.name for aggregate in locking))
        servers = self._cloud.servers.by_host if self._cloud.servers else {}
        here = frozenset(
            server.flavor.name
            for host in hosts
            for server in servers.get(host, ())
            if server.flavor
        )
        metadata = frozenset(
            frozenset(metadata_of(each).items()) for each in locking
        )
        key = traits, words, metadata, here
        if key not in self._known:
            index = AggregateIndex(locking)
            scores = [
                (self._score(each, index, traits, words, here), each.flavor)
                for each in self._flavors
            ]
            best = max((score for score, _ in scores), default=())
            self._known[key] = [
                flavor
                for score, flavor in scores
                if any(best) and score == best
            ]
        return self._known[key]

    def _score(
        self,
        one: '_Candidate',
        index: AggregateIndex,
        traits: frozenset[str],
        words: frozenset[str],
        here: Collection[str],
    ) -> tuple[int, ...]:
        names, flavor = self._cloud.names, one.flavor
        return (
            len(list(missing.keys(names, flavor, traits)))
            if one.is_suspect
            else 0,
            len(traits & one.traits),
            sum(bool(find(each, index).aggregates) for each in one.metadata),
            int(flavor.name in here),
            len(words & one.words),
        )


class _Candidate(NamedTuple):
    """A flavor, with what tells which hosts it is for.

    :param is_suspect: Whether a trait may be misspelled.
    """

    flavor: Flavor
    traits: frozenset[str]
    is_suspect: bool
    metadata: Sequence[RequiredMetadata]
    words: frozenset[str]


@functools.lru_cache(maxsize=4096)
def _words(*names: str) -> frozenset[str]:
    """Return the words of names, without those that distinguish nothing."""
    words = (w for name in names for w in _WORD.findall(name.lower()))
    return frozenset(words) - _COMMON


def _opening(
    locking: tuple[Aggregate, ...],
    hosts: set[str],
    keys: '_Keys',
) -> commands.Commands:
    """Return the commands that remove as few locks as possible."""
    if len(locking) == 1:
        required = tags.required_traits(locking[0])
        missing_traits = sorted(required - keys.closest(required))
        return commands.unset(
            locking[0], *(TRAIT_PREFIX + trait for trait in missing_traits)
        )
    for aggregate in sorted(locking, key=lambda a: (len(a.hosts), a.name)):
        others = (
            tags.required_traits(a) for a in locking if a is not aggregate
        )
        traits = frozenset[str]().union(*others)
        if keys.open(traits):
            return commands.remove_hosts(aggregate, hosts)
    return ()


class _Keys:
    """The traits of each combination of flavor and image.

    Many aggregates require the same traits, so answers are kept.
    """

    def __init__(self, cloud: AuditedCloud) -> None:
        flavors = {
            traits_if_valid(cloud, flavor) for flavor in cloud.snapshot.flavors
        }
        images = {frozenset[str]()}
        if cloud.images_open:
            images |= {
                traits_if_valid(cloud, image=image)
                for image in cloud.snapshot.images
            }
        self._keys = {flavor | image for flavor in flavors for image in images}
        self.open = functools.cache(self._open)
        self.closest = functools.cache(self._closest)

    def _open(self, traits: frozenset[str]) -> bool:
        """Return whether some have all of the required traits."""
        return any(traits <= key for key in self._keys)

    def _closest(self, traits: frozenset[str]) -> frozenset[str]:
        """Return those with most of the required traits."""
        return max(
            self._keys, key=lambda key: (len(traits & key), sorted(key))
        )


def no_flavors(cloud: AuditedCloud) -> Iterator[Finding]:
    """Report that there are no flavors, so that no lock can be opened."""
    if not cloud.snapshot.flavors:
        yield Finding(
            'no-flavors',
            Severity.INFO,
            'the cloud',
            'it has no flavors',
            'it was not checked whether anything opens the locks',
        )


def tenants_images(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find images of tenants that open an isolated aggregate."""
    if not cloud.isolating or not cloud.images_open:
        return
    for image in cloud.snapshot.images:
        required = traits_if_valid(cloud, image=image)
        traits = required & cloud.required_by.keys()
        for trait in sorted(traits) if image.is_tenants else ():
            key = TRAIT_PREFIX + trait
            yield Finding(
                'tenant-image-opens',
                Severity.WARNING,
                f'image {quoted(image.name)} ({image.id})',
                f'of project {image.owner or "unknown"} requires trait '
                f'{trait}, and [{ia_conf.GROUP}] trait_sources has image',
                'its servers may land in aggregate '
                f'{listed(a.name for a in cloud.required_by[trait])}, whether '
                'or not an operator intended it',
                (Repair(commands.unset(image, key)),)
                if key in image.properties
                else (),
                about=About.of(
                    aggregates=(a.name for a in cloud.required_by[trait]),
                    images=[image.name],
                    projects=[image.owner] if image.owner else (),
                ),
            )


def reservation_keys(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find keys in flavors and images for reservations that do not exist."""
    for entry in cloud.filters:
        keys = filter_keys.of_reservations(entry.request_filter)
        yield from _flavor_keys(cloud, keys)
        if 'image' in filter_keys.sources(entry.request_filter):
            yield from _image_keys(cloud, keys)


def _flavor_keys(
    cloud: AuditedCloud, keys: ReservationKeys
) -> Iterator[Finding]:
    for flavor in cloud.snapshot.flavors:
        for key in sorted(flavor.extra_specs):
            if key.startswith(keys.required) and not cloud.index.with_key(key):
                yield Finding(
                    'reservation-key-left',
                    Severity.WARNING,
                    f'flavor {flavor.name}',
                    f'names {key}, which no aggregate has',
                    'its servers are refused',
                    (
                        *map(
                            Repair,
                            missing.reservation(cloud.names, flavor, key),
                        ),
                        Repair(commands.unset(flavor, key)),
                    ),
                    about=About.of(flavors=[flavor.name]),
                )


def _image_keys(
    cloud: AuditedCloud, keys: ReservationKeys
) -> Iterator[Finding]:
    for image in cloud.snapshot.images:
        for key in sorted(image.properties):
            if key.startswith(keys.required):
                yield from _image_key(cloud, image, key, keys.owner_key)


def _image_key(
    cloud: AuditedCloud, image: Image, key: str, owner_key: str
) -> Iterator[Finding]:
    reserved = cloud.index.with_key(key)
    if not reserved:
        problem = f'names {quoted(key)}, which no aggregate has'
        consequence = 'its servers are refused'
    elif image.is_tenants and not any(
        grants(aggregate, image.owner, owner_key) for aggregate in reserved
    ):
        problem = (
            f'names {quoted(key)}, which does not belong to its project '
            f'{image.owner or "unknown"}'
        )
        consequence = 'its servers are refused, except those of the owner'
    else:
        return
    yield Finding(
        'reservation-key-left' if not reserved else 'reservation-key-foreign',
        Severity.INFO,
        f'image {quoted(image.name)} ({image.id})',
        problem,
        consequence,
        (Repair(commands.unset(image, key)),),
        about=About.of(
            aggregates=(a.name for a in reserved),
            images=[image.name],
            projects=[image.owner] if image.owner else (),
        ),
    )
