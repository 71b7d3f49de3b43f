# SPDX-License-Identifier: Apache-2.0
"""Converts a snapshot to the document of a cloud file."""

from collections.abc import Mapping
from typing import Any

from isolate_aggregates.placement import names
from isolate_aggregates.placement.provider import Provider
from isolate_aggregates.tools.cloud.file.document import VERSION
from isolate_aggregates.tools.cloud.snapshot import Snapshot


def document(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as the document of a cloud file.

    Reading the document returns an equal snapshot, except for its origin.
    """
    children: dict[str | None, list[Provider]] = {}
    for provider in snapshot.providers:
        children.setdefault(provider.parent, []).append(provider)
    settings: dict[str, dict[str, object]] = {}
    for (group, option), value in snapshot.settings.items():
        settings.setdefault(group, {})[option] = value
    return {
        'version': VERSION,
        'settings': settings,
        **_without_empty(
            # A newer Placement may have standard traits that no file can have.
            traits=[
                trait
                for trait in sorted(snapshot.traits)
                if not names.wrong_trait(trait)
            ],
            resource_classes=sorted(snapshot.resource_classes),
        ),
        **_without_empty(
            domains=[
                {
                    'id': each,
                    'projects': None if ids is None else sorted(ids),
                }
                for each, ids in sorted(snapshot.domains.items())
            ],
        ),
        # All memberships are written explicitly, as the mirror in the live
        # cloud may be incomplete.
        'mirror_host_aggregates': False,
        'aggregates': [
            _without_empty(
                name=a.name,
                uuid=a.uuid,
                id=a.id,
                availability_zone=a.availability_zone,
                metadata=dict(sorted(a.metadata.items())),
                hosts=sorted(a.hosts),
            )
            for a in snapshot.aggregates
        ],
        'placement_aggregates': [
            {'name': name, 'uuid': key}
            for key, name in snapshot.placement_aggregates.items()
        ],
        'providers': [
            _tree_document(root, children) for root in children.get(None, [])
        ],
        'flavors': [
            _without_empty(
                name=f.name,
                id=f.id,
                vcpus=f.vcpus,
                ram=f.ram,
                disk=f.disk,
                ephemeral=f.ephemeral,
                swap=f.swap,
                extra_specs=dict(sorted(f.extra_specs.items())),
            )
            for f in snapshot.flavors
        ],
        'images': [
            {'name': i.name}
            | _without_empty(
                id=i.id,
                owner=i.owner,
                visibility=i.visibility,
                disk_format=i.disk_format,
                min_ram=i.min_ram,
                min_disk=i.min_disk,
                size=i.size,
                properties=dict(sorted(i.properties.items())),
            )
            for i in snapshot.images
        ],
    }


def _tree_document(
    provider: Provider, children: Mapping[str | None, list[Provider]]
) -> dict[str, Any]:
    document = _without_empty(
        name=provider.name,
        uuid=provider.uuid,
        inventories={
            resource_class: vars(inventory)
            for resource_class, inventory in sorted(
                provider.inventories.items()
            )
        },
        usages=dict(sorted(provider.usages.items())),
        traits=sorted(provider.traits),
        aggregates=sorted(provider.aggregates),
        children=[
            _tree_document(child, children)
            for child in children.get(provider.uuid, [])
        ],
    )
    if provider.parent is None:
        document['host'] = provider.host
    return document


def _without_empty(**fields: Any) -> dict[str, Any]:
    """Leave out empty values, which are the defaults of a cloud file."""
    return {
        key: value
        for key, value in fields.items()
        if value not in (None, 0, [], {})
    }
