# SPDX-License-Identifier: Apache-2.0
"""The speller: finds what is misspelled in flavors, images and aggregates.

It corrects the side that is misspelled: a tag on one aggregate that nothing
names, beside several flavors that name another one, is the mistake. Names that
merely resemble each other, such as those of other resource classes, options
and filters, are never proposed.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
import dataclasses
import re

import os_resource_classes as orc
import os_traits

from isolate_aggregates.aggregates import Aggregate, collation, domains
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.filters.required_metadata import (
    HOST_FILTER,
    REQUEST_FILTER,
    RequiredMetadata,
    required_metadata,
    values_of,
)
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.text import quoted
from isolate_aggregates.tools import filter_keys, trait_requirements
from isolate_aggregates.tools import tags as tools_tags
from isolate_aggregates.tools.advice import commands
from isolate_aggregates.tools.advice.commands import Commands
from isolate_aggregates.tools.advice.near_names import (
    LIKE_PREFIX,
    VALUES,
    closest,
    closest_id,
    looks_like_trait,
    meant_value,
)
from isolate_aggregates.tools.advice.repair import Repair
from isolate_aggregates.tools.answers import scope
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.mirrored import nova_image
from isolate_aggregates.tools.operate.sync import marks

_LIKE_TENANTS = re.compile(
    r'filter[-_ ]?(?:tenant|project)s?[-_ ]?ids?', re.IGNORECASE
)
# The scopes of extra specs, which are never taken for a misspelling.
_SCOPES = frozenset({
    'accel', REQUEST_FILTER, 'capabilities', 'hw', 'hw_rng', 'hw_video', 'os',
    'pci_passthrough', 'powervm', 'quota', 'resources', 'trait', 'vmware',
})  # fmt: skip


def groups_without_resources(flavor: Flavor) -> set[str]:
    specs = list(xs.parse(flavor.extra_specs))
    suffixes = {spec.suffix for spec in specs if spec.kind == 'resources'}
    return {spec.suffix for spec in specs if spec.suffix} - suffixes


@dataclasses.dataclass(frozen=True)
class Misspelling:
    """Something misspelled, which has not the effect that is meant.

    :param kind: The kind of the finding.
    :param severity: ``info``, ``warning`` or ``error``.
    :param problem: A predicate, without a full stop.
    :param repairs: The correction comes first, and its removal last.
    """

    kind: str
    severity: str
    thing: Aggregate | Flavor | Image
    problem: str
    consequence: str
    repairs: tuple[Repair, ...]


@dataclasses.dataclass(frozen=True)
class Speller:
    """Finds what is misspelled in a cloud.

    :param pipeline: The filters that decide, and those of Nova.
    :param filters: All configured filters.
    :param projects: Projects that exist, beside those that the cloud names.
    """

    snapshot: Snapshot
    pipeline: Pipeline
    filters: Pipeline
    projects: frozenset[str] = frozenset()

    # Flavors.

    def of_flavor(self, flavor: Flavor) -> Iterator[Misspelling]:
        """Yield the extra specs that have not the effect that is meant."""
        without = groups_without_resources(flavor)
        for key, value in sorted(flavor.extra_specs.items()):
            spec = next(xs.parse({key: value}), None)
            if LIKE_PREFIX.match(key):
                if spec and spec.suffix in without and value in VALUES:
                    yield self._group_alone(flavor, spec)
                elif (not spec or value not in VALUES) and (
                    spec or value.strip().lower() in VALUES
                ):
                    yield self._no_demand(flavor, key, value)
            elif looks_like_trait(key) and not self._is_metadata(key):
                if value.strip().lower() in VALUES:
                    yield self._no_demand(flavor, key, value)
            elif spec is None:
                yield from self._scope(flavor, key, value)
            elif spec.kind == 'resources':
                yield from self._no_class(flavor, key, spec)

    def _group_alone(self, flavor: Flavor, spec: xs.ExtraSpec) -> Misspelling:
        key = f'{spec.kind}{spec.suffix}:{spec.name}'
        return Misspelling(
            'group-without-resources',
            'error',
            flavor,
            f'has {key}={spec.value}, which is request group {spec.suffix!r} '
            'without any resources',
            'Placement refuses the query, and servers get "No valid host was '
            'found."',
            tuple(self._corrections(flavor, key, spec.value)),
        )

    def _no_demand(self, flavor: Flavor, key: str, value: str) -> Misspelling:
        return Misspelling(
            'extra-spec-without-effect',
            'warning',
            flavor,
            f'has {key}={value}, but only {xs.TRAIT_PREFIX}<name> with '
            f'{" or ".join(VALUES)} has an effect',
            'the flavor does not require the trait',
            tuple(self._corrections(flavor, key, value)),
        )

    def _corrections(
        self, flavor: Flavor, key: str, value: str
    ) -> Iterator[Repair]:
        """Yield how to correct what resembles a required trait.

        If its meaning is a guess, how to remove it comes last.
        """
        trait = looks_like_trait(key)
        right_value = meant_value(value)
        if trait in self.snapshot.required_by:
            # It is the key of a lock.
            right_value = right_value or xs.REQUIRED
        if right_value and tools_tags.is_trait_name(trait):
            spec = next(xs.parse({key: value}), None)
            is_alone = spec and spec.suffix in groups_without_resources(flavor)
            right = key if spec and not is_alone else xs.TRAIT_PREFIX + trait
            yield Repair(
                commands.replace_spec(
                    flavor, right, right_value, instead_of=key
                )
            )
            if value.strip().lower() == right_value:
                return
        yield Repair(commands.unset(flavor, key))

    def _scope(
        self, flavor: Flavor, key: str, value: str
    ) -> Iterator[Misspelling]:
        """Yield an extra spec whose scope is misspelled."""
        scope, colon, name = key.partition(':')
        if not colon or scope in _SCOPES or not name:
            return
        right = closest(scope, (REQUEST_FILTER, 'resources'))
        if right is None or (right == REQUEST_FILTER and not self.reads_specs):
            return
        yield Misspelling(
            'extra-spec-without-effect',
            'warning',
            flavor,
            f'has {key}={value}, but the scope is called {right}',
            'Nova ignores it',
            (
                Repair(
                    commands.replace_spec(
                        flavor, f'{right}:{name}', value, instead_of=key
                    )
                ),
                Repair(commands.unset(flavor, key)),
            ),
        )

    def _no_class(
        self, flavor: Flavor, key: str, spec: xs.ExtraSpec
    ) -> Iterator[Misspelling]:
        """Yield an extra spec whose resource class cannot exist."""
        if spec.name in orc.STANDARDS or orc.is_custom(spec.name):
            return
        right = closest(spec.name, self._classes)
        put = f'resources{spec.suffix}:{right}'
        yield Misspelling(
            'extra-spec-without-effect',
            'warning',
            flavor,
            f'has {key}={spec.value}, and there can be no such resource class',
            'Nova ignores it',
            (
                *(
                    [
                        Repair(
                            commands.replace_spec(
                                flavor, put, spec.value, instead_of=key
                            )
                        )
                    ]
                    if right
                    else []
                ),
                Repair(commands.unset(flavor, key)),
            ),
        )

    @lazy_property
    def _classes(self) -> frozenset[str]:
        """The resource classes that hosts have, without those of slots."""
        return frozenset(
            name
            for provider in self.snapshot.providers
            for name in provider.inventories
            if not name.startswith(xs.RESERVATION_CLASS)
        )

    @lazy_property
    def reads_specs(self) -> bool:
        """Whether a filter reads the metadata that flavors require."""
        return any(
            entry.name in (HOST_FILTER, REQUEST_FILTER)
            for entry in self.pipeline.filters
        )

    def _is_metadata(self, key: str) -> bool:
        """Return whether flavors and aggregates agree on a key."""
        return (
            self.reads_specs
            and key in self._required_keys
            and any(key in a.metadata for a in self.snapshot.aggregates)
        )

    @lazy_property
    def _requirements(self) -> tuple[RequiredMetadata, ...]:
        return tuple(
            requirement
            for flavor in self.snapshot.flavors
            for requirement in required_metadata(flavor.extra_specs)
        )

    @lazy_property
    def _required_keys(self) -> frozenset[str]:
        return frozenset(each.key for each in self._requirements)

    def trait(
        self, thing: Flavor | Image, key: str, trait: str
    ) -> Iterator[Commands]:
        """Yield how to correct a required trait that no host has.

        :param key: Where it is required.
        """
        right = closest(trait, self._known_traits)
        if right is None:
            return
        names = self._trait_names
        if names[trait] > names[right] and right in self.snapshot.required_by:
            sync = commands.SYNC if os_traits.is_custom(trait) else ()
            yield (
                tuple(
                    command
                    for aggregate in self.snapshot.required_by[right]
                    for command in commands.replace_value(
                        aggregate,
                        xs.TRAIT_PREFIX + right,
                        xs.TRAIT_PREFIX + trait,
                        xs.REQUIRED,
                        xs.TRAIT_PREFIX,
                    )
                )
                + sync
            )
            return
        spec = next(xs.parse({key: xs.REQUIRED}), None)
        put = f'trait{spec.suffix if spec else ""}:{right}'
        yield commands.replace_value(thing, key, put, xs.REQUIRED)

    def keys(
        self, flavor: Flavor, traits: Collection[str]
    ) -> Iterator[Repair]:
        """Yield how to correct a flavor that is meant to require traits."""
        for key, value in sorted(flavor.extra_specs.items()):
            trait = looks_like_trait(key)
            if not trait or value == xs.FORBIDDEN:
                continue
            if trait in traits:
                if (key, value) != (xs.TRAIT_PREFIX + trait, xs.REQUIRED):
                    yield next(self._corrections(flavor, key, value))
            elif trait not in self.snapshot.required_by and (
                closest(trait, traits)
            ):
                yield from map(Repair, self.trait(flavor, key, trait))

    @lazy_property
    def _known_traits(self) -> frozenset[str]:
        """The traits that lock aggregates, and those that hosts have."""
        return frozenset(
            trait
            for trait in self.snapshot.provider_traits
            if not marks.is_mark(trait)
        ).union(self.snapshot.required_by)

    @lazy_property
    def _trait_names(self) -> Counter[str]:
        """How often each trait is named."""
        named = Counter[str]()
        for flavor in self.snapshot.flavors:
            named.update(
                trait_requirements.required_traits(flavor.extra_specs)
            )
        for image in self.snapshot.images:
            named.update(
                trait_requirements.image_required_traits(image.properties)
            )
        for trait, aggregates in self.snapshot.required_by.items():
            named[trait] += len(aggregates)
        return named

    def resource_class(
        self, flavor: Flavor, key: str, name: str
    ) -> Iterator[Commands]:
        """Yield how to correct a resource class that no host has."""
        right = closest(name, self._classes)
        if right is not None:
            put = key.removesuffix(name) + right
            yield commands.replace_spec(
                flavor, put, flavor.extra_specs[key], instead_of=key
            )

    def metadata(
        self, flavor: Flavor, requirement: RequiredMetadata
    ) -> Iterator[Commands]:
        """Yield how to correct required metadata that no aggregate has."""
        if not requirement.is_plain:
            return
        wanted = requirement.key, requirement.value
        found: Counter[tuple[str, str]] = Counter()
        holders: dict[tuple[str, str], list[Aggregate]] = {}
        for aggregate in self.snapshot.aggregates:
            for key, text in aggregate.metadata.items():
                for value in values_of(text):
                    pair = key, value
                    if pair != wanted and self._are_alike(wanted, pair):
                        found[pair] += 1
                        holders.setdefault(pair, []).append(aggregate)
        if not found:
            return
        named = Counter((each.key, each.value) for each in self._requirements)
        pair = max(found, key=lambda p: (found[p] + named[p], p))
        key, value = pair
        if named[wanted] > found[pair] + named[pair]:
            yield tuple(
                command
                for aggregate in holders[pair]
                for command in commands.replace_value(
                    aggregate,
                    key,
                    requirement.key,
                    ','.join(
                        requirement.value if each == value else each
                        for each in sorted(values_of(aggregate.metadata[key]))
                    ),
                )
            )
            return
        put = requirement.extra_spec.removesuffix(requirement.key) + key
        yield commands.replace_spec(
            flavor, put, value, instead_of=requirement.extra_spec
        )

    @staticmethod
    def _are_alike(wanted: tuple[str, str], had: tuple[str, str]) -> bool:
        """Return whether a key and value may be meant for another one."""
        (key, value), (other_key, other_value) = wanted, had
        same_key = key == other_key or closest(key, [other_key])
        same_value = value == other_value or closest(value, [other_value])
        return bool(same_key and same_value)

    def reservation(
        self, thing: Flavor | Image, key: str
    ) -> Iterator[Commands]:
        """Yield how to correct the key of a reservation that is not there."""
        prefixes = self._reservation_prefixes(lambda keys: keys.required)
        known = {
            other
            for aggregate in self.snapshot.aggregates
            for other in aggregate.metadata
            if prefixes and other.startswith(prefixes)
        }
        right = closest_id(key, known)
        values = (
            thing.extra_specs
            if isinstance(thing, Flavor)
            else thing.properties
        )
        if right is not None:
            yield commands.replace_value(thing, key, right, values[key])

    # Images.

    def of_image(self, image: Image) -> Iterator[Misspelling]:
        """Yield the properties that have not the effect that is meant."""
        for key, value in sorted(image.properties.items()):
            trait = looks_like_trait(key)
            is_key = key.startswith(xs.TRAIT_PREFIX)
            if trait and not (is_key and value == xs.REQUIRED):
                if is_key or value.strip().lower() == xs.REQUIRED:
                    yield Misspelling(
                        'image-property-without-effect',
                        'info',
                        image,
                        f'has {quoted(key)}={quoted(value)}, but only '
                        f'{xs.TRAIT_PREFIX}<name>={xs.REQUIRED} has an effect',
                        'the image does not require the trait',
                        tuple(self._of_property(image, key, value, trait)),
                    )
            elif key not in nova_image.KNOWN:
                right = _known_property(key)
                if right and right not in image.properties:
                    yield Misspelling(
                        'image-property-without-effect',
                        'info',
                        image,
                        f'has {quoted(key)}={quoted(value)}, but Nova calls '
                        f'the property {right}',
                        'Nova ignores it',
                        (
                            Repair(
                                commands.replace_value(
                                    image, key, right, value
                                )
                            ),
                            Repair(commands.unset(image, key)),
                        ),
                    )

    @staticmethod
    def _of_property(
        image: Image, key: str, value: str, trait: str
    ) -> Iterator[Repair]:
        """Yield how to correct a property, and how to remove it."""
        right = xs.TRAIT_PREFIX + (
            key.removeprefix(xs.TRAIT_PREFIX)
            if key.startswith(xs.TRAIT_PREFIX)
            else trait
        )
        if (
            tools_tags.is_trait_name(right.removeprefix(xs.TRAIT_PREFIX))
            and not image.is_tenants
            and meant_value(value) == xs.REQUIRED
        ):
            yield Repair(
                commands.replace_value(image, key, right, xs.REQUIRED)
            )
        yield Repair(commands.unset(image, key))

    # Aggregates.

    def of_aggregate(self, aggregate: Aggregate) -> Iterator[Misspelling]:
        """Yield the metadata that has not the effect that is meant."""
        # Placement may have a newer os-traits with more traits.
        traits = self.snapshot.provider_traits
        for key, value in sorted(aggregate.metadata.items()):
            trait = looks_like_trait(key)
            if key == xs.TRAIT_PREFIX + trait and (
                value == xs.REQUIRED and trait in traits
            ):
                continue
            looks_required = trait and value.strip().lower() == xs.REQUIRED
            if tools_tags.is_lock(key, value) or (
                looks_required and not self._is_metadata(key)
            ):
                yield from self._tag(aggregate, key, value, trait)
            elif trait and key == xs.TRAIT_PREFIX + trait:
                yield Misspelling(
                    'tag-without-effect',
                    'info',
                    aggregate,
                    f'has {key}={value}, but only the value {xs.REQUIRED} '
                    'locks',
                    'the tag has no effect',
                    (Repair(commands.unset(aggregate, key)),),
                )
            else:
                yield from self._other_key(aggregate, key, value)

    def _tag(
        self, aggregate: Aggregate, key: str, value: str, trait: str
    ) -> Iterator[Misspelling]:
        right = xs.TRAIT_PREFIX + trait
        problem = tools_tags.problem(key, value)
        if not problem:
            if key.startswith(xs.TRAIT_PREFIX):
                return
            problem = f'isolates nothing; the key must be {right}'
        has_lock = tools_tags.is_lock(key, value)
        if not has_lock:
            kind = 'tag-without-effect'
            consequence = (
                'the aggregate is not locked: any server may land there'
            )
        elif tools_tags.problem(key, xs.REQUIRED):
            kind = 'tag-that-nothing-opens'
            consequence = 'no server can land there'
        else:
            kind = 'tag-depends-on-database'
            consequence = 'without isolate-aggregates it may not be locked'
        yield Misspelling(
            kind,
            'error',
            aggregate,
            f'has {key}={value}, which {problem}',
            consequence,
            tuple(self._correct_tag(aggregate, key, right, has_lock)),
        )

    @staticmethod
    def _correct_tag(
        aggregate: Aggregate, key: str, right: str, has_lock: bool
    ) -> Iterator[Repair]:
        """Yield how to correct a tag, or how to remove it."""
        if not tools_tags.problem(right, xs.REQUIRED):
            yield Repair(
                commands.replace_value(
                    aggregate, key, right, xs.REQUIRED, xs.TRAIT_PREFIX
                )
            )
            return
        if has_lock and aggregate.hosts:
            # No trait can have the name, so it has to be another one.
            lock = commands.shown(commands.lock(aggregate.name, 'TRAIT'))
            yield Repair(
                text=f'{lock}, and give TRAIT to the flavors whose servers '
                'belong there; then remove this tag'
            )
        yield Repair(commands.unset(aggregate, key))

    def _other_key(
        self, aggregate: Aggregate, key: str, value: str
    ) -> Iterator[Misspelling]:
        """Yield a key of reservations, projects or a scope."""
        for prefix in self._reservation_prefixes(lambda keys: keys.forbidden):
            if _only_looks_like(prefix, key):
                yield Misspelling(
                    'tag-that-nothing-opens',
                    'error',
                    aggregate,
                    f'has {key}, but the prefix of reservations is {prefix}',
                    'servers without a reservation are kept out, and no '
                    'server can name this one',
                    (
                        Repair(
                            commands.replace_value(
                                aggregate,
                                key,
                                prefix + key[len(prefix) :],
                                value,
                                prefix,
                            )
                        ),
                    ),
                )
        for prefix in self._project_prefixes:
            if key.startswith(prefix):
                yield from self._project(aggregate, key, value)
                return
            rest = _after_tenants(prefix, key)
            if rest is not None:
                yield Misspelling(
                    'tag-without-effect',
                    'error',
                    aggregate,
                    f'has {key}, but only keys that start with {prefix} name '
                    'projects',
                    'servers of other projects may land there',
                    (
                        Repair(
                            commands.replace_value(
                                aggregate, key, prefix + rest, value
                            )
                        ),
                    ),
                )
                return
        scope, colon, name = key.partition(':')
        if not colon or not name or not self.reads_specs:
            return
        if scope == REQUEST_FILTER or closest(scope, [REQUEST_FILTER]):
            yield Misspelling(
                'tag-without-effect',
                'error',
                aggregate,
                f'has {key}={value}, but the scope {REQUEST_FILTER} belongs '
                f'to extra specs of flavors; an aggregate has just {name}',
                'flavors that require it do not find its hosts',
                (
                    Repair(
                        commands.unset(aggregate, key)
                        if name in aggregate.metadata
                        else commands.replace_value(
                            aggregate, key, name, value
                        )
                    ),
                ),
            )

    def _project(
        self, aggregate: Aggregate, key: str, value: str
    ) -> Iterator[Misspelling]:
        """Yield the ids of projects that nothing has, but for a letter."""
        if domains.is_of_domain(key):
            return
        ids = [each.strip() for each in value.split(',')]
        right = [
            each
            if each in self._projects
            else closest_id(each, self._projects) or each
            for each in ids
        ]
        if ids != right:
            wrong, meant = next(
                pair
                for pair in zip(ids, right, strict=True)
                if pair[0] != pair[1]
            )
            yield Misspelling(
                'tag-without-effect',
                'error',
                aggregate,
                f'has {key}={value}; no project {wrong} is known, and '
                f'project {meant} is',
                f'servers of project {meant} do not land there',
                (
                    Repair(
                        (
                            commands.set_value(
                                aggregate, key, ','.join(dict.fromkeys(right))
                            ),
                        )
                    ),
                ),
            )

    @lazy_property
    def _projects(self) -> frozenset[str]:
        """The projects that are known to exist."""
        snapshot = self.snapshot
        servers = snapshot.servers.placed if snapshot.servers else ()
        known = {
            *self.projects,
            *(server.project_id for server in servers),
            *(image.owner for image in snapshot.images),
            *(p for flavor in snapshot.flavors for p in flavor.projects),
            *(p for some in snapshot.domains.values() for p in some or ()),
        }
        return frozenset(filter(None, known))

    @lazy_property
    def _project_prefixes(self) -> tuple[str, ...]:
        return scope.project_prefixes(self.filters, self.pipeline)

    def _reservation_prefixes(
        self,
        part: Callable[[filter_keys.ReservationKeys], Iterable[str]],
    ) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(
                prefix
                for entry in self.filters.filters
                for prefix in part(
                    filter_keys.of_reservations(entry.request_filter)
                )
            )
        )


def _only_looks_like(prefix: str, key: str) -> bool:
    return not key.startswith(prefix) and collation.may_start_with(
        key, prefix.lower()
    )


def _after_tenants(prefix: str, key: str) -> str | None:
    """Return the rest of a key with a misspelled prefix of projects.

    None if it does not have one.
    """
    if _only_looks_like(prefix, key):
        return key[len(prefix) :]
    like = _LIKE_TENANTS.match(key)
    return key[like.end() :] if like and prefix == domains.TENANTS else None


def _known_property(key: str) -> str | None:
    """Return the property of Nova that differs in case or separators."""
    right = re.sub('[^a-z0-9]+', '_', key.lower().strip())
    for name in (right, right.removesuffix('s')):
        if name in nova_image.KNOWN and name != key:
            return name
    return None
