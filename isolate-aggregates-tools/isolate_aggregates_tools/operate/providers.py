# SPDX-License-Identifier: Apache-2.0
"""Gives a resource provider one trait or membership, or takes one away.

Placement can only replace all of them. Each step reads them again, changes
one, and writes them with the generation that was read, so that what others
add or remove meanwhile stays.
"""

from collections.abc import Callable, Iterator
import functools

import os_traits
from oslo_utils import uuidutils

from isolate_aggregates_tools import errors, marks
from isolate_aggregates_tools.cloud import changes
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates_tools.locking_traits import (
    kept,
    opposite,
    why_not_put,
)
from isolate_aggregates_tools.operate import names
from isolate_aggregates_tools.operate.plan import Plan, Step
from isolate_aggregates_tools.placement import edits

_Names = frozenset[str]


def add_trait(cloud: LiveCloud, provider: str, trait: str) -> Plan:
    """Return the plan to give a provider a trait.

    The trait gets no mark: ``sync`` and ``lock delete`` leave it.

    :param provider: The name or the uuid of a resource provider.
    """
    uuid = _uuid(cloud, provider)
    existing = cloud.traits()
    reason = why_not_put(trait, existing)
    if reason:
        raise errors.InvalidRequest(
            f'Trait {trait} cannot be added to a host: {reason}.'
        )
    if uuid in _holders(cloud, trait, existing):
        return Plan()
    contrary = opposite(trait, existing)
    if contrary and uuid in _holders(cloud, contrary, existing):
        raise errors.InvalidRequest(
            f'Trait {trait} cannot be added to {_label(cloud, uuid)}: '
            f'{kept(contrary)}; remove that one first if it is wrong.'
        )
    step = _step(
        cloud,
        uuid,
        f'add trait {trait} to {_label(cloud, uuid)}',
        'traits',
        functools.partial(_with, trait),
    )
    return Plan((*_created(cloud, trait, existing), step), (trait,))


def remove_trait(cloud: LiveCloud, provider: str, trait: str) -> Plan:
    """Return the plan to take a trait from a provider, with its mark."""
    uuid = _uuid(cloud, provider)
    if uuid not in _holders(cloud, trait, cloud.traits()):
        return Plan()
    step = _step(
        cloud,
        uuid,
        f'remove trait {trait} from {_label(cloud, uuid)}',
        'traits',
        functools.partial(_without, {trait, marks.of_trait(trait)}),
    )
    return Plan((step,), (trait,))


def add_aggregate(cloud: LiveCloud, provider: str, aggregate: str) -> Plan:
    """Return the plan to make a provider a member of an aggregate.

    :param aggregate: Its name, uuid or number; of one that only Placement
        has, the uuid.
    """
    uuid, (member, label) = _uuid(cloud, provider), _group(cloud, aggregate)
    if uuid in _members(cloud, member):
        return Plan()
    step = _step(
        cloud,
        uuid,
        f'add {_label(cloud, uuid)} to aggregate {label} in Placement',
        'aggregates',
        frozenset({member}).union,
    )
    return Plan((step,))


def remove_aggregate(cloud: LiveCloud, provider: str, aggregate: str) -> Plan:
    """Return the plan to end the membership of a provider."""
    uuid, (member, label) = _uuid(cloud, provider), _group(cloud, aggregate)
    if uuid not in _members(cloud, member):
        return Plan()
    step = _step(
        cloud,
        uuid,
        f'remove {_label(cloud, uuid)} from aggregate {label} in Placement',
        'aggregates',
        functools.partial(_without, {member}),
    )
    return Plan((step,))


def _with(trait: str, traits: _Names) -> _Names:
    # Another client may have added the opposite since.
    return traits if opposite(trait, traits) else traits | {trait}


def _without(some: set[str], all_names: _Names) -> _Names:
    return all_names - some


def _step(
    cloud: LiveCloud,
    uuid: str,
    what: str,
    field: str,
    edit: Callable[[_Names], _Names],
) -> Step:
    make = (
        edits.change_traits if field == 'traits' else edits.change_aggregates
    )
    return Step(
        what,
        functools.partial(make, cloud.placement, uuid, edit),
        changes.names_of_provider(uuid, field, edit),
    )


def _created(cloud: LiveCloud, trait: str, existing: _Names) -> Iterator[Step]:
    if os_traits.is_custom(trait) and trait not in existing:
        yield Step(
            f'create trait {trait}',
            functools.partial(edits.create_trait, cloud.placement, trait),
            changes.new_trait(trait),
        )


def _uuid(cloud: LiveCloud, provider: str) -> str:
    """Return the uuid of a provider, whose name is unique in Placement."""
    known = cloud.provider_names
    matches = [
        uuid for uuid, name in known.items() if provider in (uuid, name)
    ]
    if not matches:
        raise errors.NotFound(
            'resource provider', provider, 'Placement', known.values()
        )
    return matches[0]


def _label(cloud: LiveCloud, uuid: str) -> str:
    return f'provider {cloud.provider_names[uuid]}'


def _group(cloud: LiveCloud, aggregate: str) -> tuple[str, str]:
    """Return the uuid of an aggregate and its name."""
    try:
        found = names.aggregate(cloud.aggregates(), aggregate, cloud.where)
    except errors.NotFound:
        # Only Placement has it.
        if uuidutils.is_uuid_like(aggregate):
            return aggregate, aggregate
        raise
    return found.uuid, found.name


def _holders(cloud: LiveCloud, trait: str, existing: _Names) -> set[str]:
    # Placement rejects queries for traits that do not exist.
    if trait not in existing:
        return set()
    return _uuids(cloud.placement.resource_providers(required=[trait]))


def _members(cloud: LiveCloud, aggregate: str) -> set[str]:
    return _uuids(cloud.placement.resource_providers(member_of=[aggregate]))


def _uuids(providers: list[dict[str, str]]) -> set[str]:
    return {provider['uuid'] for provider in providers}
