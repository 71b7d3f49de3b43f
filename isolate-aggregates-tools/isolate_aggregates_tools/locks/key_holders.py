# SPDX-License-Identifier: Apache-2.0
"""Finds the flavors and images with the key to a lock.

It also finds the flavors that the metadata of an aggregate attracts, with or
without the key.
"""

from collections.abc import Collection, Iterable, Iterator
import dataclasses

from oslo_config import cfg

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception, options, text
from isolate_aggregates.aggregates import Aggregate, AggregateIndex, tags
from isolate_aggregates.filters.aggregate_instance_extra_specs import find
from isolate_aggregates.filters.required_metadata import (
    HOST_FILTER,
    REQUEST_FILTER,
    required_metadata,
)
from isolate_aggregates.request import Flavor, Image, trait_requirements
from isolate_aggregates_tools.cloud.cloud import Cloud


@dataclasses.dataclass(frozen=True)
class KeyHolders:
    """The flavors and images that require a trait.

    :param unread: Why the images could not be read; None if they were read.
    """

    flavors: tuple[Flavor, ...]
    images: tuple[Image, ...]
    unread: str | None = None

    @property
    def named(self) -> str:
        """The names as text; empty if there are none."""
        return ' and '.join(
            text.named(kind, (thing.name for thing in things), most=10)
            for kind, things in (
                ('flavor', self.flavors),
                ('image', self.images),
            )
            if things
        )


def key_holders(
    cloud: Cloud, trait: str, sources: Collection[str] = ('flavor', 'image')
) -> KeyHolders:
    """Return the flavors and images that require a trait.

    :param sources: The sources of traits that open an aggregate; see the
        option ``trait_sources``.
    """
    flavors = tuple(
        flavor
        for flavor in cloud.flavors
        if trait in trait_requirements.required_traits(flavor.extra_specs)
    )
    if 'image' not in sources:
        return KeyHolders(flavors, ())
    try:
        images = tuple(
            image
            for image in cloud.images
            if trait
            in trait_requirements.image_required_traits(image.properties)
        )
    except exception.ServiceError as exc:
        # Glance is optional.
        return KeyHolders(flavors, (), str(exc))
    return KeyHolders(flavors, images)


def flavors_drawn_to(
    cloud: Cloud, aggregate: Aggregate, conf: cfg.ConfigOpts
) -> tuple[Flavor, ...] | None:
    """Return the flavors that require metadata of an aggregate.

    :returns: The flavors; None if no configured filter checks the metadata.
    """
    # Not configured on every machine.
    after = conf[options.HOST_FILTERS].enabled_filters or ()
    before = conf[ia_conf.GROUP].request_filters
    if REQUEST_FILTER not in before and HOST_FILTER not in after:
        return None
    alone = AggregateIndex([aggregate])
    return tuple(
        flavor
        for flavor in cloud.flavors
        if any(
            find(requirement, alone).aggregates
            for requirement in required_metadata(flavor.extra_specs)
            if not requirement.problem
        )
    )


def flavors_without_key(
    cloud: Cloud,
    aggregate: Aggregate,
    traits: Collection[str],
    conf: cfg.ConfigOpts,
) -> Iterator[str]:
    """Yield a sentence if a lock excludes flavors sent there by metadata."""
    flavors = [
        flavor.name
        for flavor in flavors_drawn_to(cloud, aggregate, conf) or ()
        if not trait_requirements.required_traits(
            flavor.extra_specs
        ).issuperset(traits)
    ]
    if flavors:
        number = len(flavors)
        by_image = 'image' in conf[ia_conf.GROUP].trait_sources
        yield (
            f'{text.named("flavor", flavors, most=10)} '
            f'{text.plural(number, "requires", "require")} metadata of '
            f'aggregate {aggregate.name} but not '
            f'{text.named("trait", traits, most=None)}, so servers cannot use '
            f'its hosts{" unless their image requires it" if by_image else ""}'
        )


def after_lock(
    cloud: Cloud, traits: Iterable[str], sources: Collection[str]
) -> Iterator[tuple[bool, str]]:
    """Yield which flavors and images can use hosts that traits lock.

    :returns: One or more sentences per trait, each with whether it asks the
        operator to do something.
    """
    for trait in traits:
        holders = key_holders(cloud, trait, sources)
        if holders.unread:
            yield False, _unread(holders)
        if holders.named:
            yield False, f'{trait} is required by {holders.named}'
            continue
        nothing = 'no flavor requires'
        if 'image' in sources and not holders.unread:
            nothing = 'no flavor and no image requires'
        yield (
            True,
            f'{nothing} {trait} yet, so no server can use the hosts; next, '
            f'run key add --flavor <flavor> --trait {trait}',
        )


def after_unlock(
    cloud: Cloud, traits: Iterable[str], sources: Collection[str]
) -> Iterator[tuple[bool, str]]:
    """Yield which flavors and images require traits that no longer lock.

    :param cloud: The cloud; its aggregates may be those before the change.
    """
    for trait in traits:
        if any(trait in tags.required_traits(a) for a in cloud.index):
            continue
        holders = key_holders(cloud, trait, sources)
        if holders.unread:
            yield False, _unread(holders)
        if holders.named:
            yield (
                True,
                f'{trait} is still required by {holders.named}, but by no '
                'aggregate any more; their servers find a host only if '
                'another program added the trait; next, run key remove',
            )


def _unread(holders: KeyHolders) -> str:
    return f'the images were not checked: {str(holders.unread).rstrip(".")}'
