# SPDX-License-Identifier: Apache-2.0
"""Grants flavors and images the key to a lock, and revokes it.

The key is a required trait: ``trait:CUSTOM_A=required`` among the extra specs
of a flavor or the properties of an image.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
import functools
import itertools

from isolate_aggregates.aggregates import tags
from isolate_aggregates.request import Image, trait_requirements
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.suggestions import meant
from isolate_aggregates.text import quoted
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.cloud import changes
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates_tools.operate.plan import Plan, Step

_CUSTOM = 'CUSTOM_'

_NOT_OLD_SERVERS = 'existing servers keep what they were booted with'


def grant_flavor(cloud: LiveCloud, name: str, trait: str) -> Plan:
    """Return the plan to grant a flavor the key.

    :raises InvalidRequest: if Placement does not know the trait, or the
        flavor forbids it.
    """
    _check_known(cloud, trait)
    flavor = cloud.flavor(name)
    return _granted(
        f'flavor {flavor.name}',
        flavor.extra_specs,
        trait_requirements.required_traits(flavor.extra_specs),
        trait,
        lambda key, value: cloud.nova.set_extra_specs(flavor, {key: value}),
        functools.partial(changes.values, flavor),
        _useless(cloud, trait),
    )


def grant_image(
    cloud: LiveCloud, name: str, trait: str, trait_sources: Collection[str]
) -> Plan:
    """Return the plan to grant an image the key."""
    _check_known(cloud, trait)
    image = cloud.image(name)
    return _granted(
        f'image {quoted(image.name)}',
        image.properties,
        trait_requirements.image_required_traits(image.properties),
        trait,
        functools.partial(cloud.glance.set_property, image),
        functools.partial(changes.values, image),
        itertools.chain(
            _image_notes(cloud, image, trait_sources), _useless(cloud, trait)
        ),
    )


def _granted(
    subject: str,
    settings: Mapping[str, str],
    required: frozenset[str],
    trait: str,
    put: Callable[[str, str], object],
    change: Callable[[changes.Values], changes.Change],
    notes: Iterable[str],
) -> Plan:
    key = xs.TRAIT_PREFIX + trait
    if settings.get(key) == xs.FORBIDDEN:
        raise errors.InvalidRequest(
            f'The {subject} has {key}={xs.FORBIDDEN}, which deliberately '
            'keeps its servers away from such hosts; remove it first if this '
            'is a mistake.'
        )
    if trait in required:
        return Plan(notes=tuple(notes))
    step = Step(
        f'set {key}={xs.REQUIRED} on {subject}',
        functools.partial(put, key, xs.REQUIRED),
        change({key: xs.REQUIRED}),
    )
    return Plan((step,), (trait,), (_NOT_OLD_SERVERS, *notes))


def revoke_flavor(cloud: LiveCloud, name: str, trait: str) -> Plan:
    """Return the plan to revoke the key from a flavor."""
    flavor = cloud.flavor(name)
    # A trait in a suffixed request group is more than a key.
    problems = tuple(
        f'flavor {flavor.name} still requires {trait} through '
        f'trait{spec.suffix}:{trait}, which belongs to a request group; '
        'change the flavor yourself'
        for spec in xs.parse(flavor.extra_specs)
        if (spec.kind, spec.name, spec.value) == ('trait', trait, xs.REQUIRED)
        and spec.suffix
    )
    return _revoked(
        f'flavor {flavor.name}',
        flavor.extra_specs,
        trait,
        functools.partial(cloud.nova.unset_extra_spec, flavor),
        functools.partial(changes.values, flavor),
        problems,
    )


def revoke_image(cloud: LiveCloud, name: str, trait: str) -> Plan:
    """Return the plan to revoke the key from an image."""
    image = cloud.image(name)
    return _revoked(
        f'image {quoted(image.name)}',
        image.properties,
        trait,
        functools.partial(cloud.glance.unset_property, image),
        functools.partial(changes.values, image),
    )


def _revoked(
    subject: str,
    settings: Mapping[str, str],
    trait: str,
    unset: Callable[[str], object],
    change: Callable[[changes.Values], changes.Change],
    problems: tuple[str, ...] = (),
) -> Plan:
    key = xs.TRAIT_PREFIX + trait
    if settings.get(key) != xs.REQUIRED:
        return Plan(problems=problems)
    step = Step(
        f'unset {key} on {subject}',
        functools.partial(unset, key),
        change({key: None}),
    )
    return Plan((step,), (trait,), (_NOT_OLD_SERVERS,), problems)


def _check_known(cloud: LiveCloud, trait: str) -> None:
    known = cloud.traits()
    if trait not in known:
        # Booting would always fail.
        raise errors.InvalidRequest(
            f'Placement knows no trait {trait}{meant(trait, known, _CUSTOM)}; '
            'lock an aggregate with it first.'
        )


def _useless(cloud: LiveCloud, trait: str) -> Iterator[str]:
    if not any(trait in tags.required_traits(a) for a in cloud.index):
        yield (
            f'no aggregate requires {trait}, so it opens nothing yet; it only '
            'restricts servers to hosts with the trait'
        )


def _image_notes(
    cloud: LiveCloud, image: Image, trait_sources: Collection[str]
) -> Iterator[str]:
    if 'image' not in trait_sources:
        yield (
            'images open nothing here, because [isolate_aggregates] '
            'trait_sources does not name them; use a flavor instead'
        )
    if image.owner not in (None, cloud.own_project):
        yield (
            f'image {quoted(image.name)} belongs to project {image.owner}, '
            'whose members can change it and copy the property to other images'
        )
